from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askline.engine.sequences import MAX_CANDIDATE_TOKENS, TokenSequences, best_span
from askline.engine.tokenizer import WordPiece

from .tiny_cascades import tokenizer_entries


@pytest.fixture
def tokenizer(tmp_path: Path) -> WordPiece:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_entries()), encoding="utf-8")
    return WordPiece.load(path)


def test_a_pair_has_special_tokens_and_token_types(tokenizer: WordPiece) -> None:
    sequences = TokenSequences.for_question(
        tokenizer, "who wrote", ["it", "emma wrote it"], positions=64
    )
    who, wrote, it = tokenizer.token_ids("who wrote it")
    numbers, kinds = sequences.batch(np.array([0]))
    assert numbers.tolist() == [
        [tokenizer.cls_id, who, wrote, tokenizer.sep_id, it, tokenizer.sep_id]
    ]
    assert kinds.tolist() == [[0, 0, 0, 0, 1, 1]]
    assert sequences.tokens(2).tolist() == [6, 8]


def test_no_token_of_a_long_candidate_is_left_out(tokenizer: WordPiece) -> None:
    candidate = " ".join(f"{number}" for number in range(1000))
    sequences = TokenSequences.for_question(
        tokenizer, "who", ["it", candidate, "she"], positions=64 * 3
    )
    numbers = tokenizer.token_ids(candidate)
    seen = set[int]()
    for part, owner, start in zip(
        sequences.suffixes, sequences.candidate, sequences.start, strict=True
    ):
        if owner == 1:
            own = part[:-1].tolist()
            assert numbers[start : start + len(own)] == own
            seen |= set(range(start, start + len(own)))
    assert seen == set(range(len(numbers)))
    assert sequences.lengths.max() == 64 * 3
    assert sequences.tokens(3)[1] == sequences.lengths[sequences.candidate == 1].sum()


def test_sequences_of_a_candidate_overlap(tokenizer: WordPiece) -> None:
    sequences = TokenSequences.for_question(tokenizer, "who", ["it " * 400], positions=256)
    ends = sequences.start + sequences.lengths - len(sequences.prefixes[0]) - 1
    assert (ends[:-1] - sequences.start[1:] >= 64).all()


def test_a_question_is_truncated_to_half_a_sequence(tokenizer: WordPiece) -> None:
    sequences = TokenSequences.for_question(tokenizer, "it " * 5000, ["she wrote"], positions=64)
    assert len(sequences.prefixes[0]) == 2 + (64 - 3) // 2
    assert sequences.lengths.tolist() == [len(sequences.prefixes[0]) + 3]


def test_an_empty_candidate_has_a_sequence(tokenizer: WordPiece) -> None:
    sequences = TokenSequences.for_question(tokenizer, "", ["", "it"], positions=64)
    assert len(sequences) == 2
    assert sequences.tokens(2).tolist() == [3, 4]


def test_a_very_long_candidate_keeps_the_windows_with_words_of_the_question(
    tokenizer: WordPiece,
) -> None:
    filler, answer = "it she " * 20_000, "emma wrote "
    candidate = filler + answer + filler
    sequences = TokenSequences.for_question(
        tokenizer, "who wrote emma", ["it", candidate], positions=64
    )
    own = sequences.candidate == 1
    assert sequences.tokens(2)[1] == MAX_CANDIDATE_TOKENS
    wrote = tokenizer.token_ids("wrote")[0]
    assert any(wrote in part for part in sequences.suffixes)
    starts = sequences.start[own]
    assert (np.diff(starts) > 0).all()


def test_a_very_long_candidate_without_words_of_the_question_keeps_its_first_windows(
    tokenizer: WordPiece,
) -> None:
    sequences = TokenSequences.for_question(tokenizer, "who", ["it " * 50_000], positions=256)
    assert sequences.tokens(1)[0] == MAX_CANDIDATE_TOKENS
    assert sequences.start[:3].tolist() == [0, 188, 376]


def _logits(
    starts: list[float], ends: list[float]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.stack([starts, ends], axis=1).astype(np.float32)


def test_the_most_probable_span_starts_before_it_ends() -> None:
    #                  cls  q  sep   candidate       sep
    logits = _logits([0.0, 9, 9, 0.0, 5.0, 0.0, 1.0, 9], [0.0, 9, 9, 6.0, 0.0, 4.0, 1.0, 9])
    found = best_span(logits, 3)
    assert found is not None
    assert (found.start, found.end) == (4, 5)
    assert found.score > found.no_answer


def test_scores_are_log_probabilities() -> None:
    found = best_span(_logits([0, 0, 0, 0, 9], [0, 0, 0, 0, 9]), 2)
    assert found is not None
    assert found.score == pytest.approx(2 * np.log(1 / 3))
    assert found.no_answer == pytest.approx(2 * np.log(1 / 3))


def test_a_span_has_at_most_thirty_tokens() -> None:
    starts, ends = [0.0] * 60, [0.0] * 60
    starts[5], ends[50] = 9.0, 9.0
    found = best_span(_logits(starts, ends), 3)
    assert found is not None
    assert found.end - found.start < 30


def test_a_candidate_without_tokens_has_no_span() -> None:
    assert best_span(_logits([1, 2, 3, 4], [1, 2, 3, 4]), 3) is None
