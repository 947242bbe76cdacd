from __future__ import annotations

import numpy as np
import pytest

from askline.errors import InputError, UnknownNameError
from askline.phrases.extraction import Decoding, decode_spans

NO = -np.inf


def _tables() -> tuple[np.ndarray, np.ndarray]:
    starts = np.log(np.array([0.6, 0.3, 0.1], np.float32))
    with np.errstate(divide="ignore"):
        ends = np.log(np.array([[0.98, 0.02, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], np.float32))
    return starts, ends


def test_joint_takes_the_likeliest_spans() -> None:
    spans, log_probabilities = decode_spans(*_tables(), limit=3)
    assert spans.tolist() == [[0, 0], [1, 1], [1, 2]]
    assert np.exp(log_probabilities) == pytest.approx([0.588, 0.15, 0.15], rel=1e-4)


def test_beam_gives_each_start_its_ends() -> None:
    spans, _ = decode_spans(*_tables(), limit=4, decoding="beam")
    assert sorted(spans.tolist()) == [[0, 0], [0, 1], [1, 1], [1, 2]]


@pytest.mark.parametrize("how", ["joint", "beam"])
def test_impossible_spans_are_never_returned(how: Decoding) -> None:
    spans, log_probabilities = decode_spans(*_tables(), limit=100, decoding=how)
    assert len(spans) == 5
    assert np.isfinite(log_probabilities).all()
    assert (spans[:, 0] <= spans[:, 1]).all()


@pytest.mark.parametrize("how", ["joint", "beam"])
def test_no_possible_span_gives_no_result(how: Decoding) -> None:
    spans, log_probabilities = decode_spans(
        np.full(3, NO, np.float32), np.full((3, 2), NO, np.float32), decoding=how
    )
    assert spans.shape == (0, 2)
    assert len(log_probabilities) == 0


def test_joint_agrees_with_trying_every_span() -> None:
    rng = np.random.default_rng(1)
    starts, ends = rng.normal(size=9).astype(np.float32), rng.normal(size=(9, 4)).astype(np.float32)
    spans, log_probabilities = decode_spans(starts, ends, limit=7)
    every = sorted(
        ((starts[at] + ends[at, more], at, at + more) for at in range(9) for more in range(4)),
        reverse=True,
    )
    assert spans.tolist() == [[at, end] for _, at, end in every[:7]]
    assert log_probabilities == pytest.approx([score for score, _, _ in every[:7]])


def test_spans_that_differ_by_minor_tokens_are_one() -> None:
    # "the red house ." with an article and a full stop that do not count at the ends
    starts = np.log(np.array([0.5, 0.4, 0.1, 1e-9], np.float32))
    ends = np.log(np.array([[0.1, 0.2, 0.5, 0.2]] * 4, np.float32))
    ends[1:, 3] = ends[2:, 2] = ends[3:, 1] = NO  # they would end after the text
    minor = np.array([True, False, False, True])
    spans, log_probabilities = decode_spans(starts, ends, limit=10, minor=minor)
    # "the red house" stands for "red house", "the red house ." and "red house ."
    assert [0, 2] in spans.tolist()
    assert not {(0, 3), (1, 2), (1, 3)} & {tuple(span) for span in spans.tolist()}
    # "the" and "." alone have no other token, so neither is a variant of anything
    assert {(0, 0), (3, 3)} <= {tuple(span) for span in spans.tolist()}
    assert list(log_probabilities) == sorted(log_probabilities, reverse=True)
    assert len(decode_spans(starts, ends, limit=2, minor=minor)[0]) == 2


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="limit and beam must be at least 1, got 0 and 2"):
        decode_spans(*_tables(), limit=0)
    with pytest.raises(UnknownNameError, match="No decoding 'greedy'. Known: beam, joint"):
        decode_spans(*_tables(), decoding="greedy")  # type: ignore[arg-type]
