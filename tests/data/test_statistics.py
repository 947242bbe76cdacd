from __future__ import annotations

import pytest

from askline.data import DatasetStatistics, compute_statistics
from askline.types import QuestionSet

from .samples import make_set


def test_statistics_of_a_small_set() -> None:
    found = compute_statistics(
        make_set(
            [
                ("Who came?", {"Ann came.": 1, "Nobody did, they say.": 0, "So what?": 1}),
                ("What burnt last year?", {"Ann came.": 0}),
            ]
        )
    )
    assert found == DatasetStatistics(
        name="tiny",
        questions=2,
        candidates=4,
        answerable=1,
        both=1,
        positives=2,
        question_words=3.0,
        candidate_words=2.5,
    )
    assert found.percent_answerable == 50.0
    assert found.candidates_per_question == 2.0
    assert found.positives_per_question == 1.0


@pytest.mark.parametrize("question_set", [QuestionSet("x", ()), make_set([("Who?", {})])])
def test_averages_without_candidates_are_zero(question_set: QuestionSet) -> None:
    found = compute_statistics(question_set)
    assert (found.candidates, found.candidate_words, found.percent_answerable) == (0, 0.0, 0.0)
    assert (found.candidates_per_question, found.positives_per_question) == (0.0, 0.0)
