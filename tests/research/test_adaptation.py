"""Choices of `research.benchmarks.adaptation`, which are made without trec_eval on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from askline.evaluation import Run, make_qrels, score_run
from askline.rankers.requests import sort_by_score
from askline.training.packing import PairTemplate, TokenTable
from askline.types import Candidate, Question, QuestionSet
from research.benchmarks.adaptation import Scored, choose, over_seeds

NO_TOKENS = np.zeros(0, np.int32)
TEMPLATE = PairTemplate(NO_TOKENS, NO_TOKENS, NO_TOKENS, (0, 0, 0, 0, 0), False, 0)


def scored(questions: QuestionSet) -> Scored:
    labels = [each.is_answer for question in questions for each in question.candidates]
    rows = np.arange(len(labels), dtype=np.int32)
    return Scored(
        TokenTable(NO_TOKENS, np.zeros(1, np.int64)),
        TEMPLATE,
        rows,
        rows,
        np.array(labels),
        np.array([len(question.candidates) for question in questions], np.int32),
    )


def drawn(seed: int) -> QuestionSet:
    random = np.random.default_rng(seed)
    questions = []
    for number in range(20):
        labels = random.random(random.integers(2, 9)) < 0.3
        labels[0] = True
        candidates = (Candidate(f"c{at}", f"text {at}", bool(own)) for at, own in enumerate(labels))
        questions.append(Question(f"q{number}", "which?", tuple(candidates)))
    return QuestionSet("drawn", tuple(questions))


@pytest.mark.parametrize("seed", [0, 1])
def test_mean_average_precision_is_that_of_trec_eval(seed: int) -> None:
    questions = drawn(seed)
    own = scored(questions)
    scores = np.random.default_rng(seed).integers(0, 4, len(own.labels)).astype(np.float32)
    hits = map(sort_by_score, np.split(scores.astype(float), np.cumsum(own.sizes)[:-1]))
    run = Run.from_hits("scores", zip(questions, hits, strict=True))
    expected = score_run(run, make_qrels(questions), measures=("MAP",))["MAP"].mean()
    assert own.mean_average_precision(scores) == pytest.approx(100 * expected)


def test_a_part_has_the_pairs_of_its_questions() -> None:
    own = scored(drawn(0))
    part = own.part(np.array([3, 1]))
    ends = np.cumsum(own.sizes)
    assert part.sizes.tolist() == [own.sizes[3], own.sizes[1]]
    assert part.first.tolist() == [*range(ends[2], ends[3]), *range(ends[0], ends[1])]


def test_the_choice_weighs_questions_and_needs_all_folds() -> None:
    def rows(start: str, held: float, dev: float, folds: int) -> list[dict[str, object]]:
        common = {"start": start, "recipe": "r", "held out": 100, "MAP": held, "dev MAP": dev}
        return [{**common, "fold": fold} for fold in range(folds)]

    found = choose(
        [*rows("a", 80.0, 90.0, 3), *rows("b", 82.0, 85.0, 3), *rows("c", 99.0, 99.0, 2)]
    )
    assert (found["start"], found["recipe"]) == ("a", "r")
    assert found["MAP"] == {"a / r": 82.96, "b / r": 82.89}


def test_means_have_a_deviation_over_seeds() -> None:
    found = over_seeds([{"4": {"MAP": 80.0}}, {"4": {"MAP": 82.0}}])
    assert found == {"4": {"seeds": 2, "MAP": 81.0, "MAP ±": 1.41}}
