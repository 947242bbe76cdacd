from __future__ import annotations

import math

import pytest

from askline.corpus.retrieval import standard_scores


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([1.0, 3.0], [-1.0, 1.0]), ([4.0, 4.0], [0.0, 0.0]), ([], None), ([1.0, math.inf], None)],
    ids=["two", "equal", "none", "without end"],
)
def test_standard_scores(scores: list[float], expected: list[float] | None) -> None:
    assert standard_scores(scores) == expected
