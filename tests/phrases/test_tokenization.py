from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.errors import InputError, ModelError
from askline.phrases.tokenization import MAX_PHRASE_TOKENS, cut_windows, load_tokenizer

TEXTS = [
    "Jane Austen wrote Emma.",
    "emmas, caf\u00e9 cafe\u0301 \U0001f44d\U0001f3fd \u6771\u4eac",
    "",
    "   ",
    "d'emma\u00a0paris",
]


@pytest.fixture
def folder(tokenizer: Any, tmp_path: Path) -> Path:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_tokens_are_those_of_the_library(folder: Path, tokenizer: Any, text: str) -> None:
    ours, theirs = load_tokenizer(folder).encode(text), tokenizer.encode(text)
    assert ours.ids == theirs.ids
    assert [start for start, _ in ours.offsets] == [start for start, _ in theirs.offsets]


def test_nothing_is_cut_or_padded(folder: Path, tokenizer: Any) -> None:
    from tokenizers import Tokenizer

    short = Tokenizer.from_str(tokenizer.to_str())
    short.enable_truncation(8)
    short.enable_padding(length=8)
    short.save(str(folder / "tokenizer.json"))
    assert len(load_tokenizer(folder).encode("emma " * 20).ids) == 22


def test_another_family_is_read_by_the_library(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"emma": 0, "?": 1}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.enable_truncation(2)
    words.save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path).encode("emma emma who").ids == [0, 0, 1]


def test_a_file_that_is_not_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tokenizer.json is missing"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="is not a tokenizer"):
        load_tokenizer(tmp_path)


# Windows

TEXT = "Jane Austen wrote Emma. Dune is a novel of Frank Herbert."


def _words(text: str, window: Any) -> list[str]:
    return [text[a:b] for a, b in zip(window.starts, window.ends, strict=True) if b > a]


def test_a_short_text_is_one_window_with_exact_characters(tokenizer: Any) -> None:
    (window,) = cut_windows(TEXT, tokenizer, size=128, overlap=80)
    assert _words(TEXT, window)[:4] == ["Jane", "Austen", "wrote", "Emma"]
    assert window.tokens[0] == tokenizer.token_to_id("[CLS]")
    assert window.tokens[-1] == tokenizer.token_to_id("[SEP]")
    assert not window.may_start[[0, -1]].any()
    assert not window.may_end[[0, -1]].any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("👍🏽 emma", ["emma"]),
        ("cafe\u0301 emma", ["cafe\u0301", "emma"]),
        ("Éma, paris", ["Éma", "paris"]),
        ("emma 東京 dune", ["emma", "東", "京", "dune"]),
        ("дюна emma", ["дюна", "emma"]),
    ],
    ids=["emoji", "combining", "accent", "chinese", "cyrillic"],
)
def test_offsets_hold_whatever_the_script(tokenizer: Any, text: str, words: list[str]) -> None:
    (window,) = cut_windows(text, tokenizer, size=128, overlap=80)
    opens = window.starts[window.may_start]
    closes = window.ends[window.may_end]
    for word in words:
        at = text.index(word)
        assert at in opens
        assert at + len(word) in closes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("दिल्ली है emma", ["दिल्ली", "है", "emma"]),
        ("i \u2764\ufe0f emma", ["i", "\u2764\ufe0f", "emma"]),
        ("e\u0301mma\u20dd", ["e\u0301mma\u20dd"]),
    ],
    ids=["vowel signs", "variation selector", "enclosing"],
)
def test_no_phrase_is_cut_before_a_mark(tokenizer: Any, text: str, words: list[str]) -> None:
    (window,) = cut_windows(text, tokenizer, size=128, overlap=80)
    places = [text.index(word) for word in words]
    opens = {int(start) for start in window.starts[window.may_start]}
    closes = {int(end) for end in window.ends[window.may_end]}
    assert opens == {*places}
    assert closes == {at + len(word) for at, word in zip(places, words, strict=True)}


def test_the_space_before_a_word_is_not_part_of_it() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = [("<s>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -1.0)]
    pieces = [*words, ("▁la", -1.0), ("été", -1.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    text = "la  été la "
    (window,) = cut_windows(text, tokenizer, size=128, overlap=80)
    assert _words(text, window) == ["la", "été", "la"]
    assert window.starts[window.may_start].tolist() == [0, 4, 8]
    assert window.ends[window.may_end].tolist() == [2, 7, 10]


def test_phrases_do_not_begin_or_end_inside_a_word(tokenizer: Any) -> None:
    (window,) = cut_windows("emmas paris", tokenizer, size=128, overlap=80)
    starts = {int(start) for start in window.starts[window.may_start]}
    assert starts == {0, 6}
    assert {int(end) for end in window.ends[window.may_end]} == {5, 11}


@pytest.mark.parametrize("count", [1, 125, 126, 127, 200, 400], ids=str)
def test_every_word_belongs_to_one_window(tokenizer: Any, count: int) -> None:
    text = " ".join(["emma", "paris", "dune"][at % 3] for at in range(count))
    windows = cut_windows(text, tokenizer, size=128, overlap=80)
    opens = np.concatenate([window.starts[window.may_start] for window in windows])
    assert sorted(opens) == [at for at in range(len(text)) if at == 0 or text[at - 1] == " "]
    for window in windows[:-1]:
        last = np.flatnonzero(window.may_start)[-1]
        assert last + MAX_PHRASE_TOKENS < len(window)  # the longest phrase fits behind every start
    assert all(len(window) <= 128 for window in windows)


@pytest.mark.parametrize("text", ["", " \n\t "], ids=["empty", "white"])
def test_a_text_without_tokens_has_no_window(tokenizer: Any, text: str) -> None:
    assert cut_windows(text, tokenizer, size=128, overlap=80) == []


def test_texts_of_one_character_or_without_letters_are_accepted(tokenizer: Any) -> None:
    assert len(cut_windows("a", tokenizer, size=128, overlap=80)) == 1
    assert len(cut_windows("?!… 12 —", tokenizer, size=128, overlap=80)) == 1


def test_a_text_of_several_pieces_loses_nothing(tokenizer: Any) -> None:
    text = "emma " * 30_000
    windows = cut_windows(text, tokenizer, size=128, overlap=80)
    assert sum(int(window.may_start.sum()) for window in windows) == 30_000
    last = windows[-1]
    assert text[last.starts[-2] : last.ends[-2]] == "emma"


def test_an_overlap_too_small_for_a_phrase_is_refused(tokenizer: Any) -> None:
    with pytest.raises(InputError, match="overlap must be from 80 to under 126"):
        cut_windows("emma", tokenizer, size=128, overlap=20)
