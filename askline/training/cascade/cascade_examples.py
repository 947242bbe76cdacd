"""
Training examples of a cascade: candidate lists and paragraphs, from labeled sets.

Candidates are text numbers, rows of one token table, so that each text is tokenized once. Lists
with negatives from other texts come from `SampledLists`; the token spans of the answers, for the
reader, are added here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ... import data
from ...data.squad import AnswerSpan, Paragraph
from ...errors import InputError
from ...types import Candidate, Question, QuestionSet
from ..packing import PairTemplate, Rows, TokenTable
from ..transformer.sampled_lists import (
    CONVERSATION_PLAN,
    REFERENCE_PLAN,
    Negatives,
    SampledLists,
    SamplingPart,
    is_conversation,
    mine_negatives,
)
from .span_reading import SpanExamples

__all__ = [
    "CandidateList",
    "SampledCandidateLists",
    "TrainingLists",
    "WholeCandidateLists",
    "answer_spans",
    "load_transfer_sets",
    "span_examples",
    "token_spans",
]

MAX_PAIR_LENGTH = 160
"""Tokens per pair in training; 0.1 % of the sentences are longer and are truncated."""


class CandidateList(NamedTuple):
    """One question with candidates."""

    question: int
    candidates: Rows
    labels: NDArray[np.float32]
    spans: NDArray[np.int64]  # (candidates, 2)
    """First and last token of the answer in a candidate; -1 if unknown."""
    pools: tuple[tuple[Rows, int], ...] = ()
    """Texts, and how many of them (those with the highest scores) to add as negatives."""

    def with_negatives(self, chosen: Rows) -> CandidateList:
        """The list with more texts that are not answers, and without pools."""
        return CandidateList(
            self.question,
            np.concatenate([self.candidates, chosen]),
            np.concatenate([self.labels, np.zeros(len(chosen), np.float32)]),
            np.concatenate([self.spans, np.full((len(chosen), 2), -1)]),
        )


class TrainingLists(Protocol):
    """A set to draw candidate lists from."""

    name: str
    table: TokenTable
    template: PairTemplate

    def __len__(self) -> int:
        """The number of questions."""
        ...

    def draw(self, place: int, random: np.random.Generator) -> CandidateList:
        """A list for one question, given by its index."""
        ...


class SampledCandidateLists:
    """Lists with negatives from other texts; the network chooses some of them from pools."""

    def __init__(self, lists: SampledLists, spans: Sequence[NDArray[np.int64]] = ()) -> None:
        """`spans` has the answer spans (answers, 2) of each question, in the order of the lists."""
        if spans and len(spans) != len(lists):
            raise InputError(f"Expected spans of {len(lists)} questions, got {len(spans)}.")
        self.name, self.lists, self.spans = lists.name, lists, spans
        self.table, self.template = lists.texts.texts, lists.texts.template

    def __len__(self) -> int:
        return len(self.lists)

    def draw(self, place: int, random: np.random.Generator) -> CandidateList:
        found = self.lists.one(place, random)
        spans = np.full((len(found.candidates), 2), -1)
        if self.spans:
            own = self.spans[place]  # answers come first in every list
            spans[: len(own)] = own
        return CandidateList(
            found.question,
            np.array(found.candidates, np.int64),
            np.array(found.labels, np.float32),
            spans,
            tuple((np.array(pool.texts, np.int64), pool.keep) for pool in found.pools),
        )


class WholeCandidateLists:
    """Each question's own candidates, at most `most` of them including all answers."""

    def __init__(self, questions: QuestionSet, tokenizer: Any, *, most: int = 30) -> None:
        kept = [question for question in questions if question.candidates]
        if not kept:
            raise InputError(f"{questions.name} has no question with candidates to train on.")
        self.name, self.most = questions.name, most
        numbers: dict[str, int] = {}
        self._rows = [
            (
                numbers.setdefault(question.text, len(numbers)),
                np.array([numbers.setdefault(text, len(numbers)) for text in question.texts]),
                np.array([each.is_answer for each in question.candidates], np.float32),
            )
            for question in kept
        ]
        self.table = TokenTable.of(list(numbers), tokenizer)
        self.template = PairTemplate.of(tokenizer)

    def __len__(self) -> int:
        return len(self._rows)

    def draw(self, place: int, random: np.random.Generator) -> CandidateList:
        question, candidates, labels = self._rows[place]
        if len(candidates) > self.most:
            order = np.argsort(labels + random.random(len(labels)))[::-1]  # answers first
            chosen = np.sort(order[: self.most])
            candidates, labels = candidates[chosen], labels[chosen]
        spans = np.full((len(candidates), 2), -1)
        return CandidateList(question, candidates, labels, spans)


Span = tuple[int, int]
_NONE: Span = (-1, -1)


def token_spans(texts: Sequence[str], spans: Sequence[Span], tokenizer: Any) -> NDArray[np.int64]:
    """
    The first and the last token that overlap each character span: (texts, 2).

    -1, -1 for an empty or negative span, and if no token overlaps it.
    """
    found = np.full((len(texts), 2), -1, np.int64)
    wanted = [at for at, (start, end) in enumerate(spans) if 0 <= start < end]
    if not wanted:
        return found
    encoded = tokenizer(
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
    questions: Sequence[Question], golds: Mapping[str, Sequence[AnswerSpan]], tokenizer: Any
) -> list[NDArray[np.int64]]:
    """
    For each question the token spans of its answer candidates, in order: (answers, 2).

    `golds` has the gold spans by question id; the part inside a candidate's source counts.
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
        tokenizer,
    )
    sizes = [sum(each.is_answer for each in question.candidates) for question in questions]
    return np.split(spans, np.cumsum(sizes)[:-1])


def span_examples(paragraphs: Sequence[Paragraph], tokenizer: Any) -> SpanExamples:
    """
    Every question with its paragraph, its first gold span, and a paragraph without the answer.

    The latter is the next paragraph of the article, unless it contains the gold phrase.
    """
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(paragraph.text, len(numbers)) for paragraph in paragraphs]
    neighbor = _neighbors(paragraphs)
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
        tokenizer,
    )
    known = spans[:, 0] >= 0
    others = [
        rows[neighbor[at]]
        if neighbor[at] >= 0 and question.answers[0].text not in paragraphs[neighbor[at]].text
        else -1
        for at, question in asked
    ]
    asking = [numbers.setdefault(question.text, len(numbers)) for _, question in asked]
    return SpanExamples(
        TokenTable.of(list(numbers), tokenizer),
        np.array(asking)[known],
        np.array([rows[at] for at, _ in asked])[known],
        spans[known],
        np.array(others)[known],
    )


def _within(candidate: Candidate, gold: Sequence[AnswerSpan]) -> Span:
    """The part of the first gold span that overlaps a candidate, in its characters."""
    source = candidate.source
    if source is None or not candidate.is_answer:
        return _NONE
    for span in gold:
        start, end = max(span.start, source.start), min(span.end, source.end)
        if start < end:
            return start - source.start, end - source.start
    return _NONE


def _neighbors(paragraphs: Sequence[Paragraph]) -> list[int]:
    """For each paragraph the next one of its article with another text, or -1."""
    articles: dict[str, list[int]] = {}
    for at, paragraph in enumerate(paragraphs):
        articles.setdefault(paragraph.article, []).append(at)
    found = [-1] * len(paragraphs)
    for places in articles.values():
        for at, following in zip(places, [*places[1:], places[0]], strict=True):
            if paragraphs[at].text != paragraphs[following].text:
                found[at] = following
    return found


def load_transfer_sets(
    names: Sequence[str], tokenizer: Any, negatives: Path, *, root: Path | None = None
) -> tuple[SampledCandidateLists, SpanExamples | None]:
    """
    The candidate lists of the transfer phase, and paragraphs for the reader, if there are any.

    The file `negatives` is created if it does not exist, which takes a minute on one core.
    """
    found = [question for name in names for question in _answerable(name, root)]
    if not found:
        raise InputError(f"No question of {', '.join(names)} has an answer to learn from.")
    parts = [
        SamplingPart(tuple(each for each in found if is_conversation(each) == talk), plan)
        for talk, plan in ((False, REFERENCE_PLAN), (True, CONVERSATION_PLAN))
    ]
    questions = [question for part in parts for question in part.questions]
    if not negatives.exists():
        negatives.parent.mkdir(parents=True, exist_ok=True)
        mine_negatives(questions).save(negatives)
    lists = SampledLists(
        " + ".join(names),
        [part for part in parts if part.questions],
        Negatives.load(negatives, questions),
        tokenizer,
    )
    paragraphs = [each for name in names for each in data.load_paragraphs(name, root=root)]
    golds = {asked.id: asked.answers for each in paragraphs for asked in each.questions}
    source = SampledCandidateLists(lists, answer_spans(questions, golds, tokenizer))
    return source, span_examples(paragraphs, tokenizer) if paragraphs else None


def _answerable(name: str, root: Path | None) -> tuple[Question, ...]:
    return data.filter_questions(data.load_dataset(name, root=root), "answerable").questions
