"""From question sets and their paragraphs to what a cascade learns from: lists and reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.squad import AnswerSpan, Paragraph
from ...errors import InputError
from ...types import Candidate, Question
from ..packed.packing import TokenTable
from .reading import ReadingSet

__all__ = ["answer_spans", "reading_set", "token_spans"]

Span = tuple[int, int]
_NONE: Span = (-1, -1)


def token_spans(texts: Sequence[str], spans: Sequence[Span], tokeniser: Any) -> NDArray[np.int64]:
    """
    The first and the last token that touch each span of characters: (texts, 2).

    -1, -1 for an empty or negative span, and where no token touches it.
    """
    found = np.full((len(texts), 2), -1, np.int64)
    wanted = [at for at, (start, end) in enumerate(spans) if 0 <= start < end]
    if not wanted:
        return found
    encoded = tokeniser(
        [texts[at] for at in wanted],
        add_special_tokens=False,
        return_offsets_mapping=True,
        verbose=False,
    )["offset_mapping"]
    for at, places in zip(wanted, encoded, strict=True):
        start, end = spans[at]
        touched = [i for i, (low, high) in enumerate(places) if low < end and high > start]
        if touched:
            found[at] = touched[0], touched[-1]
    return found


def answer_spans(
    questions: Sequence[Question], golds: Mapping[str, Sequence[AnswerSpan]], tokeniser: Any
) -> list[NDArray[np.int64]]:
    """
    For each question the token spans of its answer candidates, in order: (answers, 2).

    `golds` has the gold spans by question; the part that lies in a candidate's source counts.
    """
    answers = [
        (candidate, golds.get(question.id, ()))
        for question in questions
        for candidate in question.candidates
        if candidate.is_answer
    ]
    spans = token_spans(
        [candidate.text for candidate, _ in answers],
        [_within(candidate, gold) for candidate, gold in answers],
        tokeniser,
    )
    sizes = [sum(each.is_answer for each in question.candidates) for question in questions]
    return np.split(spans, np.cumsum(sizes)[:-1])


def reading_set(paragraphs: Sequence[Paragraph], tokeniser: Any) -> ReadingSet:
    """
    Every question with its paragraph, its first gold span, and a paragraph without the answer.

    That is the next one of the article, unless it holds the gold phrase.
    """
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(paragraph.text, len(numbers)) for paragraph in paragraphs]
    neighbour = _neighbours(paragraphs)
    asked = [
        (at, question)
        for at, paragraph in enumerate(paragraphs)
        for question in paragraph.questions
        if question.answers
    ]
    if not asked:
        raise InputError("Expected paragraphs with questions that have an answer, got none.")
    spans = token_spans(
        [paragraphs[at].text for at, _ in asked],
        [(question.answers[0].start, question.answers[0].end) for _, question in asked],
        tokeniser,
    )
    known = spans[:, 0] >= 0
    others = [
        rows[neighbour[at]]
        if neighbour[at] >= 0 and question.answers[0].text not in paragraphs[neighbour[at]].text
        else -1
        for at, question in asked
    ]
    asking = [numbers.setdefault(question.text, len(numbers)) for _, question in asked]
    return ReadingSet(
        TokenTable.of(list(numbers), tokeniser),
        np.array(asking)[known],
        np.array([rows[at] for at, _ in asked])[known],
        spans[known],
        np.array(others)[known],
    )


def _within(candidate: Candidate, gold: Sequence[AnswerSpan]) -> Span:
    """The characters of the first gold span that lies in a candidate, as far as it does."""
    source = candidate.source
    if source is None or not candidate.is_answer:
        return _NONE
    for span in gold:
        start, end = max(span.start, source.start), min(span.end, source.end)
        if start < end:
            return start - source.start, end - source.start
    return _NONE


def _neighbours(paragraphs: Sequence[Paragraph]) -> list[int]:
    """For each paragraph the next of its article that has another text, -1 where there is none."""
    articles: dict[str, list[int]] = {}
    for at, paragraph in enumerate(paragraphs):
        articles.setdefault(paragraph.article, []).append(at)
    found = [-1] * len(paragraphs)
    for places in articles.values():
        for at, following in zip(places, [*places[1:], places[0]], strict=True):
            if paragraphs[at].text != paragraphs[following].text:
                found[at] = following
    return found
