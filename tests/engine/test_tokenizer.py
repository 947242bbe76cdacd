from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from askline.engine.tokenizer import WordPiece
from askline.errors import ModelError

from .tiny_cascades import VOCABULARY, tokenizer_entries


@pytest.fixture
def tokenizer(tmp_path: Path) -> WordPiece:
    return _load(tmp_path)


def _load(folder: Path, **options: bool) -> WordPiece:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_entries(**options)), encoding="utf-8")
    return WordPiece.load(path)


def _texts(tokens: WordPiece, text: str) -> list[str]:
    return [VOCABULARY[number] for number in tokens.token_ids(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Who wrote EMMA?", ["who", "wrote", "emma", "?"]),
        ("don't", ["d", "##o", "##n", "'", "t"]),
        ("opened", ["o", "##p", "##en", "##ed"]),
        ("it\u200b\x00 \tshe\n", ["it", "she"]),
        ("Élan", ["e", "##l", "##a", "##n"]),
        ("東a", ["[UNK]", "a"]),
        ("it \ufffd it", ["it", "it"]),
        ("x" * 101, ["[UNK]"]),
        ("[SEP]", ["[", "s", "##e", "##p", "]"]),
        ("", []),
        (" \n ", []),
    ],
    ids=[
        *("case", "punctuation", "longest token first", "unseen characters", "accents"),
        *("ideographs", "replacement character", "too long", "a mark in the text"),
        *("empty", "blank"),
    ],
)
def test_tokens(tokenizer: WordPiece, text: str, expected: list[str]) -> None:
    assert _texts(tokenizer, text) == expected


def test_case_and_accents_stay_if_the_tokenizer_keeps_them(tmp_path: Path) -> None:
    assert _texts(_load(tmp_path, lower=False), "It é") == ["[UNK]", "[UNK]"]


@pytest.mark.parametrize(
    "text",
    ["Who wrote Emma?", "  naïve,\x00 ZÜRICH! \u200bit\n东", "e\u0301lan ﬁn İt", "x" * 120],
    ids=["plain", "control", "combining", "too long"],
)
def test_offsets_point_at_the_source_of_a_token(tokenizer: WordPiece, text: str) -> None:
    found = tokenizer.tokens_with_offsets(text)
    assert [number for number, _, _ in found] == tokenizer.token_ids(text)
    ends = [0]
    for number, start, end in found:
        assert ends[-1] <= start < end <= len(text)
        ends.append(end)
        token = VOCABULARY[number].removeprefix("##")
        assert token == "[UNK]" or token[0] in tokenizer._normalize(text[start:end])


def test_a_full_cache_is_emptied_and_changes_no_result(
    tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askline.engine.tokenizer._MAX_CACHED_PARTS", 2)
    first = tokenizer.token_ids("who wrote the novel she wrote")
    assert tokenizer.token_ids("who wrote the novel she wrote") == first
    assert len(tokenizer._cache) <= 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda it: it["model"].update(type="BPE"), "got \\['BPE', 'BertNormalizer'"),
        (lambda it: it.update(normalizer=None), "must be a tokenizer of"),
        (lambda it: it["model"]["vocab"].pop("[SEP]"), "must have \\[SEP\\]"),
    ],
    ids=["model", "normalizer", "mark"],
)
def test_other_tokenizers_are_refused(tmp_path: Path, change: object, message: str) -> None:
    entries = tokenizer_entries()
    assert callable(change)
    change(entries)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        WordPiece.load(path)


def test_damaged_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No tokenizer.json"):
        WordPiece.load(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match="must be a JSON object"):
        WordPiece.load(tmp_path / "tokenizer.json")


TEXTS = [
    "Who wrote “Emma” – in 1815?",
    "naïve ΟΔΟΣ İstanbul 東京タワー a\u200bb x\u0085y \ufffd\u2028z",
    "½ ﬁ ｆｕｌｌ 한국어 हिन्दी العَرَبِيَّة \U0001f600 e\u0301",
    "ß ẞ ŉ ǰ \x1c$x^2$ `~|",
    "a" * 101,
]


@pytest.mark.parametrize("lower", [True, False], ids=["lower", "cased"])
def test_tokens_are_the_same_as_hugging_faces(tmp_path: Path, lower: bool) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the oracle is the tokenizers package")
    own = _load(tmp_path, lower=lower)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in TEXTS:
        encoded = theirs.encode(text, add_special_tokens=False)
        assert own.token_ids(text) == encoded.ids
        assert [(start, end) for _, start, end in own.tokens_with_offsets(text)] == encoded.offsets


LONG_PARTS = {
    "dots": "." * 5_000,
    "a URL": "https://example.org/" + "emma/it?she=wrote&" * 50,
    "letters": "x" * 5_000,
    "accents": "é\u0301" * 500,
    "marks alone": "a" + "\u0301" * 500,
    "ideographs": "東a" * 500 + "𠀀" * 300,
    "other punctuation": "it。she…" * 200 + "\U00010100" * 200,
    "symbols": "€" * 300 + "≮it" * 100 + "\u1fefit" * 50,
    "Korean": "한국어" * 100,
    "digits": "①12" * 100,
}


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("text", LONG_PARTS.values(), ids=LONG_PARTS.keys())
def test_the_pieces_of_a_long_part_give_its_tokens(tmp_path: Path, text: str, lower: bool) -> None:
    tokens = _load(tmp_path, lower=lower)
    whole = tokens._tokenize_piece(text)
    assert tokens.tokens_with_offsets(text) == whole
    assert tokens.token_ids(text) == [id_ for id_, _, _ in whole]
    assert tokens.count_tokens([text], limit=10**6) == len(whole)


def test_long_parts_are_not_cached(tokenizer: WordPiece) -> None:
    tokenizer.token_ids("x" * 100_000 + " " + "\U00010400" * 1_000)
    assert max(map(len, tokenizer._cache), default=0) <= 100


def test_counting_ends_soon_after_the_limit(tokenizer: WordPiece) -> None:
    assert tokenizer.count_tokens(["it she", "emma"], limit=100) == 3
    start = time.monotonic()
    assert tokenizer.count_tokens(["." * 4_000_000] * 3, limit=1_000) == 1_001
    assert time.monotonic() - start < 2
