from __future__ import annotations

import math

import pytest

from askline.errors import InputError, RankerError
from askline.evaluation import RankedList, Run, make_qrels
from askline.types import Candidate, Hit, Question, QuestionSet

from .conftest import make_question


def test_run_keeps_the_order_of_the_hits_not_of_their_scores() -> None:
    question = make_question("q", [0, 1, 0])
    run = Run.from_hits("hand", [(question, [Hit(2, 0.5), Hit(0, 0.5), Hit(1, 9.0, stage=1)])])
    assert run == Run("hand", {"q": RankedList(("q-2", "q-0", "q-1"), (0.5, 0.5, 9.0))})


def test_run_takes_a_question_without_candidates() -> None:
    assert Run.from_hits("hand", [(make_question("q", []), [])]).rankings["q"] == RankedList((), ())


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ([0, 1], "each of the 3 candidates once, got 2 hits; lost: 2; doubled: none"),
        ([0, 1, 1], "lost: 2; doubled: 1; out of range: none"),
        ([0, 1, 2, 2], "got 4 hits; lost: none; doubled: 2"),
        ([0, 1, -1], "lost: 2; doubled: none; out of range: -1"),
        ([], "lost: 0, 1, 2;"),
    ],
    ids=["lost", "swapped for another", "doubled", "negative", "empty"],
)
def test_run_refuses_what_is_no_permutation(indexes: list[int], message: str) -> None:
    question = make_question("q", [0, 1, 0])
    with pytest.raises(RankerError, match=f"Question 'q': .*{message}"):
        RankedList.from_hits(question, [Hit(index, 0.0) for index in indexes])


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_run_refuses_hits_without_a_real_score(score: float) -> None:
    with pytest.raises(RankerError, match="Question 'q': a score is a finite number"):
        RankedList.from_hits(make_question("q", [1]), [Hit(0, score)])
    with pytest.raises(InputError, match="Scores must be finite"):
        RankedList(("a",), (score,))


def test_run_refuses_candidates_with_one_id() -> None:
    twins = Question("q", "?", (Candidate("same", "One."), Candidate("same", "Two.")))
    with pytest.raises(InputError, match="unique within a question, got 'same' twice"):
        RankedList.from_hits(twins, [Hit(0, 1.0), Hit(1, 0.0)])


def test_run_refuses_questions_with_one_id() -> None:
    question = make_question("q", [1])
    with pytest.raises(InputError, match="unique within a run, got 'q' twice"):
        Run.from_hits("hand", [(question, [Hit(0, 1.0)])] * 2)


def test_ranked_wants_a_score_for_each_candidate() -> None:
    with pytest.raises(InputError, match="got 2 candidates and 1 scores"):
        RankedList(("a", "b"), (1.0,))


def test_judgements_hold_every_candidate(tiny: QuestionSet) -> None:
    qrels = make_qrels(tiny)
    assert list(qrels) == ["a", "b", "c", "d"]
    assert qrels["b"] == {"b-0": 0, "b-1": 1, "b-2": 0}
