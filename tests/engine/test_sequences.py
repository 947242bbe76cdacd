from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askline.engine.numpy_ops import IntArray
from askline.engine.sequences import MAX_CANDIDATE_TOKENS, TokenSequences, equal_length_batches
from askline.engine.tokenizer import WordPiece

from .tiny_cascades import tokenizer


@pytest.fixture
def pieces(tmp_path: Path) -> WordPiece:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer()), encoding="utf-8")
    return WordPiece.load(path)


def test_a_pair_is_marked_question_and_candidate(pieces: WordPiece) -> None:
    windows = TokenSequences.for_question(
        pieces, "who wrote", ["it", "emma wrote it"], positions=64
    )
    who, wrote, it = pieces.token_ids("who wrote it")
    numbers, kinds = windows.batch(np.array([0]))
    assert numbers.tolist() == [[pieces.cls_id, who, wrote, pieces.sep_id, it, pieces.sep_id]]
    assert kinds.tolist() == [[0, 0, 0, 0, 1, 1]]
    assert windows.tokens(2).tolist() == [6, 8]


def test_no_token_of_a_long_candidate_is_left_out(pieces: WordPiece) -> None:
    candidate = " ".join(f"{number}" for number in range(1000))
    windows = TokenSequences.for_question(pieces, "who", ["it", candidate, "she"], positions=64 * 3)
    numbers = pieces.token_ids(candidate)
    seen = set[int]()
    for part, owner, start in zip(windows.suffixes, windows.candidate, windows.start, strict=True):
        if owner == 1:
            own = part[:-1].tolist()
            assert numbers[start : start + len(own)] == own
            seen |= set(range(start, start + len(own)))
    assert seen == set(range(len(numbers)))
    assert windows.lengths.max() == 64 * 3
    assert windows.tokens(3)[1] == windows.lengths[windows.candidate == 1].sum()


def test_windows_of_a_candidate_overlap(pieces: WordPiece) -> None:
    windows = TokenSequences.for_question(pieces, "who", ["it " * 400], positions=256)
    ends = windows.start + windows.lengths - len(windows.prefixes[0]) - 1
    assert (ends[:-1] - windows.start[1:] >= 64).all()


def test_a_question_is_cut_at_half_a_sequence(pieces: WordPiece) -> None:
    windows = TokenSequences.for_question(pieces, "it " * 5000, ["she wrote"], positions=64)
    assert len(windows.prefixes[0]) == 2 + (64 - 3) // 2
    assert windows.lengths.tolist() == [len(windows.prefixes[0]) + 3]


def test_an_empty_candidate_has_a_window(pieces: WordPiece) -> None:
    windows = TokenSequences.for_question(pieces, "", ["", "it"], positions=64)
    assert len(windows) == 2
    assert windows.tokens(2).tolist() == [3, 4]


def _batches(
    lengths: list[int], levels: list[int] | None = None, threads: int = 2
) -> list[IntArray]:
    sizes = np.array(lengths, np.int64)
    known = np.array(levels or [0] * len(lengths), np.int64)
    return equal_length_batches(np.arange(len(lengths)) + 100, sizes, known, threads=threads)


def test_every_window_once_in_batches_of_one_length_and_level() -> None:
    random = np.random.default_rng(0)
    lengths, levels = random.integers(10, 30, 200), random.integers(0, 2, 200)
    batches = _batches(lengths.tolist(), levels.tolist())
    assert sorted(np.concatenate(batches).tolist()) == list(range(100, 300))
    for batch in batches:
        assert len({(lengths[one - 100], levels[one - 100]) for one in batch}) == 1


def test_longest_come_first() -> None:
    assert [batch.tolist() for batch in _batches([5, 9, 5, 7])] == [[101], [103], [100, 102]]


@pytest.mark.parametrize(
    ("count", "threads", "expected"),
    [(40, 1, [7, 7, 7, 7, 6, 6]), (8, 2, [2, 2, 2, 2]), (1, 8, [1])],
    ids=["no larger than the budget", "work for all threads", "one"],
)
def test_sizes(count: int, threads: int, expected: list[int]) -> None:
    assert [len(batch) for batch in _batches([50] * count, threads=threads)] == expected


def test_a_window_over_the_budget_stands_alone() -> None:
    assert [len(batch) for batch in _batches([5000, 5000])] == [1, 1]


def test_no_windows_no_batches() -> None:
    assert _batches([]) == []


def test_a_very_long_candidate_keeps_the_windows_with_words_of_the_question(
    pieces: WordPiece,
) -> None:
    filler, answer = "it she " * 20_000, "emma wrote "
    candidate = filler + answer + filler
    windows = TokenSequences.for_question(pieces, "who wrote emma", ["it", candidate], positions=64)
    own = windows.candidate == 1
    assert windows.tokens(2)[1] == MAX_CANDIDATE_TOKENS
    wrote = pieces.token_ids("wrote")[0]
    assert any(wrote in part for part in windows.suffixes)
    starts = windows.start[own]
    assert (np.diff(starts) > 0).all()


def test_a_very_long_candidate_without_words_of_the_question_keeps_its_first_windows(
    pieces: WordPiece,
) -> None:
    windows = TokenSequences.for_question(pieces, "who", ["it " * 50_000], positions=256)
    assert windows.tokens(1)[0] == MAX_CANDIDATE_TOKENS
    assert windows.start[:3].tolist() == [0, 188, 376]
