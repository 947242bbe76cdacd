from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import RankerError
from askline.rankers import sort_by_score

scores = st.lists(st.sampled_from([0.0, 0.5, 1.0, -1.0, math.inf, -math.inf]), max_size=30)


@given(scores)
def test_by_score_is_the_stable_descending_sort(values: list[float]) -> None:
    expected = sorted(range(len(values)), key=lambda place: -values[place])
    hits = sort_by_score(values)
    assert [hit.index for hit in hits] == expected
    assert [hit.score for hit in hits] == [values[place] for place in expected]


def test_by_score_marks_the_stage() -> None:
    assert {hit.stage for hit in sort_by_score([1, 2], stage=3)} == {3}


def test_by_score_refuses_nan_and_says_where() -> None:
    with pytest.raises(RankerError, match="Document 1 has the score NaN"):
        sort_by_score([0.0, math.nan])


def test_by_score_refuses_a_table() -> None:
    with pytest.raises(RankerError, match=r"one number per document, got shape \(1, 2\)"):
        sort_by_score([[0.0, 1.0]])
