"""From a question to its answers: retrieve sentences, rank them, look around the best."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from ..errors import InputError
from ..rankers.algebra import trace
from ..types import Hit, Ranker, Ranking, StageReport
from .answers import Answer, Answers, Found
from .retrieval import LONGEST, Neighbours, Retriever

__all__ = ["BLEND", "DEFAULT_RANKER", "RETRIEVED", "answer"]

DEFAULT_RANKER: str | None = "cosinet"
"""Lexical rankers after retrieval do worse than retrieval alone, which has read the passage."""
BLEND = 1.0
"""Retrieval has seen the passage and the ranker the sentence; together they beat either alone."""
RETRIEVED = 100
"""Sentences handed to the ranker: a hundred held the answer nearly as often as two hundred."""


def answer(
    question: str,
    retriever: Retriever,
    ranker: Ranker | None = None,
    *,
    top: int = 5,
    retrieved: int = RETRIEVED,
    blend: float = BLEND,
) -> Answers:
    """
    The best `top` answers out of `retrieved` sentences.

    The ranker gets the sentences of a document next to each other and in their order, the document
    with the best sentence first. What its last stage puts on top is ordered by the sum of its
    score and `blend` times the retrieval's, both as standard scores among themselves; with 0, as
    the ranker says. Without a ranker, the answers come as they were found.
    """
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"The question must be a text with words in it, got {question!r}.")
    if top < 1 or retrieved < top:
        raise InputError(
            f"top must be at least 1 and at most retrieved, got top={top}, retrieved={retrieved}."
        )
    start = time.perf_counter()
    total = len(retriever)
    found = retriever.retrieve(question, retrieved)
    report = StageReport(
        f"{retriever} % {retrieved}", total, len(found), time.perf_counter() - start
    )
    if ranker is None:
        ranking = Ranking(tuple(Hit(at, each.score) for at, each in enumerate(found)), ())
    else:
        found = in_document_order(found)
        ranking = trace(ranker, question, [sentence.text[:LONGEST] for sentence in found])
        ranking = replace(ranking, hits=_blended(ranking.hits, found, blend))
    shift = 0 if ranker is None else 1  # retrieval is stage 0
    answers = tuple(
        _answer(found[hit.index], hit.score, hit.stage + shift, retriever)
        for hit in ranking.hits[:top]
    )
    stages = (report, *ranking.stages)
    return Answers(question, answers, stages, time.perf_counter() - start)


def in_document_order(found: Sequence[Found]) -> list[Found]:
    """Documents by their best sentence, each document's sentences as they stand in it."""
    place: dict[str, int] = {}
    for sentence in found:
        place.setdefault(sentence.document, len(place))
    return sorted(found, key=lambda sentence: (place[sentence.document], sentence.ordinal))


def _blended(hits: Sequence[Hit], found: Sequence[Found], blend: float) -> tuple[Hit, ...]:
    last = max((hit.stage for hit in hits), default=0)
    decided = [hit for hit in hits if hit.stage == last]
    own = _standard([hit.score for hit in decided])
    retrieval = _standard([found[hit.index].score for hit in decided])
    if not blend or own is None or retrieval is None:
        return tuple(hits)
    mixed = [
        replace(hit, score=a + blend * b) for hit, a, b in zip(decided, own, retrieval, strict=True)
    ]
    # Equal ones stay as the ranker had them, and so does what its earlier stages dropped.
    return (*sorted(mixed, key=lambda hit: -hit.score), *hits[len(decided) :])


def _standard(scores: Sequence[float]) -> list[float] | None:
    """How many standard deviations above the mean; None where that cannot be said."""
    if not scores or not all(map(math.isfinite, scores)):
        return None
    mean = math.fsum(scores) / len(scores)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    return [(score - mean) / (deviation or 1.0) for score in scores]


def _answer(found: Found, score: float, stage: int, retriever: Retriever) -> Answer:
    around = retriever.neighbours(found) if isinstance(retriever, Neighbours) else ("", "")
    return Answer(
        text=found.text,
        score=score,
        stage=stage,
        confidence=None,
        document=found.document,
        title=found.title,
        start=found.start,
        end=found.end,
        unit=found.unit,
        number=found.number,
        heading=found.heading,
        before=around[0],
        after=around[1],
    )
