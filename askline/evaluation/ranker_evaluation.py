"""Evaluate a ranker on a labelled question set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ..errors import InputError, RankerError
from ..rankers.base import Ranker
from ..types import Hit, Question, QuestionSet
from .measures import DEFAULT_MEASURES, FloatArray, parse_measures, score_run
from .runs import Run

__all__ = [
    "Evaluation",
    "evaluate",
]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The results of one ranker on one question set. Arrays are in the order of the questions."""

    ranker: str
    """The ranker as a spec text."""
    question_set: str
    """The name of the set."""
    values: Mapping[str, FloatArray]
    """Measure name → one fraction per question, 0 to 1."""
    seconds: FloatArray
    """The time of `rank`, per question."""
    candidates: int
    """The number of candidates over all questions."""
    run: Run

    def __post_init__(self) -> None:
        for array in (self.seconds, *self.values.values()):
            array.setflags(write=False)

    @property
    def question_ids(self) -> tuple[str, ...]:
        """The ids of the questions, in the order of the arrays."""
        return tuple(self.run.rankings)

    @property
    def percent(self) -> dict[str, float]:
        """Measure name → the mean over all questions, in percent."""
        return {name: 100 * float(values.mean()) for name, values in self.values.items()}

    @property
    def ms_per_question(self) -> dict[str, float]:
        """The median and the 95th percentile of `seconds`, in milliseconds."""
        p50, p95 = np.percentile(self.seconds, [50, 95])
        return {"p50": 1000 * float(p50), "p95": 1000 * float(p95)}

    def as_dict(self) -> dict[str, object]:
        """One flat object for JSON; measures in percent."""
        return {
            "ranker": self.ranker,
            "question_set": self.question_set,
            **self.percent,
            "questions": len(self.seconds),
            "candidates": self.candidates,
            "ms_per_question": self.ms_per_question,
        }


def evaluate(
    ranker: Ranker,
    question_set: QuestionSet,
    *,
    measures: str | Iterable[str] = DEFAULT_MEASURES,
    on_question: Callable[[Question], None] | None = None,
) -> Evaluation:
    """
    Rank the candidates of every question and compute the measures.

    Questions without an answer count 0 in every measure; filter them out first if they should not
    count. `on_question` is called after each question, for progress. A ranking that misses or
    repeats a candidate raises RankerError.
    """
    wanted = [measure.name for measure in parse_measures(measures)]
    if not question_set.questions:
        raise InputError(
            f"Expected at least one question, got none in {question_set.name!r}. "
            "Check the file or the filter."
        )
    seconds: list[float] = []

    def timed(question: Question) -> tuple[Question, Sequence[Hit]]:
        texts = question.texts
        start = perf_counter()
        hits = ranker.rank(question.text, texts)
        seconds.append(perf_counter() - start)
        if on_question is not None:
            on_question(question)
        return question, hits

    try:
        run = Run.from_hits(str(ranker), map(timed, question_set))
    except RankerError as error:
        raise RankerError(f"Ranker '{ranker}' broke its contract. {error}") from error
    return Evaluation(
        ranker=str(ranker),
        question_set=question_set.name,
        values=score_run(run, _positive_qrels(question_set), measures=wanted),
        seconds=np.asarray(seconds),
        candidates=question_set.candidate_count,
        run=run,
    )


def _positive_qrels(questions: Iterable[Question]) -> dict[str, dict[str, int]]:
    """Qrels without the zeros, which are most of them and which no measure needs."""
    return {
        question.id: {candidate.id: 1 for candidate in question.candidates if candidate.is_answer}
        for question in questions
    }
