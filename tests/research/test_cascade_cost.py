"""Rankings of a drop schedule, rebuilt from score tables."""

from __future__ import annotations

import numpy as np
import pytest

from askline.evaluation.measures import score_run
from askline.evaluation.runs import Run
from askline.rankers.requests import sort_by_score
from askline.rankers.schedule import Step
from askline.tuning.schedule_search import measure
from askline.tuning.score_tables import CandidateLists
from askline.types import Candidate, Question
from research.benchmarks.cascade_cost import ndcg, ranked_labels, reciprocal_ranks

QUESTIONS, COUNT = 20, 30
DEPTHS = (2, 4, 6)


@pytest.fixture
def lists() -> CandidateLists:
    rng = np.random.default_rng(3)
    shape = (len(DEPTHS) + 1, QUESTIONS, COUNT)
    ranks = rng.random(shape).argsort(axis=-1).argsort(axis=-1).astype(np.int16)
    labels = rng.random((QUESTIONS, COUNT)) < 0.1
    labels[np.arange(QUESTIONS), rng.integers(COUNT, size=QUESTIONS)] = True
    numbers = np.arange(QUESTIONS)
    return CandidateLists(
        depths=DEPTHS,
        ranks=ranks[:-1],
        labels=labels,
        tokens=np.full((QUESTIONS, COUNT), 40),
        weights=np.full(QUESTIONS, 1 / QUESTIONS),
        folds=numbers,
        sets=np.zeros(QUESTIONS, int),
        first_stage=ranks[-1],
    )


@pytest.mark.parametrize(
    "keeps",
    [(), (Step(4, 3),), (Step(0, 12), Step(2, 7), Step(4, 2))],
    ids=["full depth", "one drop", "first stage"],
)
def test_ranked_labels_have_the_precision_of_the_schedule(
    keeps: tuple[Step, ...], lists: CandidateLists
) -> None:
    labels = ranked_labels(lists, keeps)
    trial = measure(lists, keeps)
    places = np.arange(1, COUNT + 1)
    precision = (labels * np.cumsum(labels, axis=1) / places).sum(axis=1) / labels.sum(axis=1)
    assert labels[:, 0].tolist() == trial.precision.tolist()
    assert precision == pytest.approx(trial.average_precision, abs=1e-6)


def test_measures_are_those_of_trec_eval(lists: CandidateLists) -> None:
    labels = ranked_labels(lists, (Step(2, 9), Step(4, 4)))
    questions = [
        Question(
            str(number),
            "question",
            tuple(Candidate(str(place), "text", bool(label)) for place, label in enumerate(row)),
        )
        for number, row in enumerate(labels)
    ]
    hits = sort_by_score(-np.arange(COUNT, dtype=float))
    run = Run.from_hits("own", ((question, hits) for question in questions))
    answers = {
        question.id: {one.id: 1 for one in question.candidates if one.is_answer}
        for question in questions
    }
    found = score_run(run, answers, measures=("MRR", "nDCG@10"))
    assert reciprocal_ranks(labels) == pytest.approx(found["MRR"])
    assert ndcg(labels, 10) == pytest.approx(found["nDCG@10"])
