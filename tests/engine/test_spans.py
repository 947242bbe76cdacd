from __future__ import annotations

import numpy as np
import pytest

from askline.engine.spans import best_span


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
