from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askline.errors import InputError
from askline.phrases.tokenization import MAX_PHRASE_TOKENS, cut_windows

TEXT = "Jane Austen wrote Emma. Dune is a novel of Frank Herbert."


def _words(text: str, window: Any) -> list[str]:
    return [text[a:b] for a, b in zip(window.starts, window.ends, strict=True) if b > a]


def test_a_short_text_is_one_window_with_exact_characters(tokeniser: Any) -> None:
    (window,) = cut_windows(TEXT, tokeniser, size=128, overlap=80)
    assert _words(TEXT, window)[:4] == ["Jane", "Austen", "wrote", "Emma"]
    assert window.tokens[0] == tokeniser.token_to_id("[CLS]")
    assert window.tokens[-1] == tokeniser.token_to_id("[SEP]")
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
def test_offsets_hold_whatever_the_script(tokeniser: Any, text: str, words: list[str]) -> None:
    (window,) = cut_windows(text, tokeniser, size=128, overlap=80)
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
def test_no_phrase_is_cut_before_a_mark(tokeniser: Any, text: str, words: list[str]) -> None:
    (window,) = cut_windows(text, tokeniser, size=128, overlap=80)
    places = [text.index(word) for word in words]
    opens = {int(start) for start in window.starts[window.may_start]}
    closes = {int(end) for end in window.ends[window.may_end]}
    assert opens == {*places}
    assert closes == {at + len(word) for at, word in zip(places, words, strict=True)}


def test_the_space_before_a_word_is_not_part_of_it() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = [("<s>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -1.0)]
    pieces = [*words, ("▁la", -1.0), ("été", -1.0)]
    tokeniser = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokeniser.pre_tokenizer = pre_tokenizers.Metaspace()
    tokeniser.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    text = "la  été la "
    (window,) = cut_windows(text, tokeniser, size=128, overlap=80)
    assert _words(text, window) == ["la", "été", "la"]
    assert window.starts[window.may_start].tolist() == [0, 4, 8]
    assert window.ends[window.may_end].tolist() == [2, 7, 10]


def test_phrases_do_not_begin_or_end_inside_a_word(tokeniser: Any) -> None:
    (window,) = cut_windows("emmas paris", tokeniser, size=128, overlap=80)
    starts = {int(start) for start in window.starts[window.may_start]}
    assert starts == {0, 6}
    assert {int(end) for end in window.ends[window.may_end]} == {5, 11}


@pytest.mark.parametrize("count", [1, 125, 126, 127, 200, 400], ids=str)
def test_every_word_is_one_windows_own(tokeniser: Any, count: int) -> None:
    text = " ".join(["emma", "paris", "dune"][at % 3] for at in range(count))
    windows = cut_windows(text, tokeniser, size=128, overlap=80)
    opens = np.concatenate([window.starts[window.may_start] for window in windows])
    assert sorted(opens) == [at for at in range(len(text)) if at == 0 or text[at - 1] == " "]
    for window in windows[:-1]:
        last = np.flatnonzero(window.may_start)[-1]
        assert last + MAX_PHRASE_TOKENS < len(window)  # the longest phrase fits behind every start
    assert all(len(window) <= 128 for window in windows)


@pytest.mark.parametrize("text", ["", " \n\t "], ids=["empty", "white"])
def test_a_text_without_tokens_has_no_window(tokeniser: Any, text: str) -> None:
    assert cut_windows(text, tokeniser, size=128, overlap=80) == []


def test_one_character_and_no_letters_are_fine(tokeniser: Any) -> None:
    assert len(cut_windows("a", tokeniser, size=128, overlap=80)) == 1
    assert len(cut_windows("?!… 12 —", tokeniser, size=128, overlap=80)) == 1


def test_a_text_of_several_pieces_loses_nothing(tokeniser: Any) -> None:
    text = "emma " * 30_000
    windows = cut_windows(text, tokeniser, size=128, overlap=80)
    assert sum(int(window.may_start.sum()) for window in windows) == 30_000
    last = windows[-1]
    assert text[last.starts[-2] : last.ends[-2]] == "emma"


def test_an_overlap_too_small_for_a_phrase_is_refused(tokeniser: Any) -> None:
    with pytest.raises(InputError, match="overlap must be from 80 to under 126"):
        cut_windows("emma", tokeniser, size=128, overlap=20)
