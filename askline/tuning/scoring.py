"""A labelled set scored once at every depth, with a file that a broken-off scoring goes on from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..runtime.staged import StagedEncoder
from ..types import Question, QuestionSet, Ranker
from .tables import ScoreTable

__all__ = ["score_set", "with_first"]

_SAVE_SECONDS = 30.0


def score_set(
    encoder: StagedEncoder,
    questions: QuestionSet,
    *,
    model: str,
    pad: int = 0,
    first: Ranker | None = None,
    path: Path | None = None,
    on_question: Callable[[], None] = lambda: None,
) -> ScoreTable:
    """
    Every pair at every depth, nothing dropped.

    `model` names the weights (and the first stage). Where `path` holds a table of the same model
    and lists, its questions are not scored again; it is written every half minute and at the end.
    """
    work = _Work(encoder, QuestionSet(questions.name, questions.questions), model, pad, first)
    if path is not None and path.is_file():
        work.resume(ScoreTable.load(path))
    saved = time.monotonic()
    for place, question in enumerate(questions):
        if place >= len(work.sizes):
            work.score(question)
        on_question()
        if path is not None and time.monotonic() - saved > _SAVE_SECONDS:
            work.table().save(path)
            saved = time.monotonic()
    table = work.table()
    if path is not None:
        table.save(path)
    return table


def with_first(
    table: ScoreTable,
    questions: QuestionSet,
    first: Ranker,
    *,
    layers: float,
    on_question: Callable[[], None] = lambda: None,
) -> ScoreTable:
    """A table with the order of a first stage, which costs so many layers a candidate."""
    by_id = {question.id: question for question in questions}
    found = [by_id.get(id_) for id_ in table.questions]
    light = []
    for question, size, id_ in zip(found, table.sizes.tolist(), table.questions, strict=True):
        if question is None or len(question.candidates) != size:
            raise InputError(
                f"Question {id_!r} of the score table of {table.name} must have {size} candidates "
                f"in the set, got {len(question.candidates) if question else 'no such question'}. "
                "Pad it as it was padded for the table."
            )
        light.append(_order(first, question))
        on_question()
    return table.with_light(np.concatenate(light), layers)


def _order(ranker: Ranker, question: Question) -> NDArray[np.float32]:
    """Minus the place of each candidate: all that a cut-off needs of a ranker."""
    places = np.empty(len(question.candidates), np.float32)
    for place, hit in enumerate(ranker.rank(question.text, question.texts)):
        places[hit.index] = -place
    return places


@dataclass
class _Work:
    """What has been scored so far."""

    encoder: StagedEncoder
    questions: QuestionSet
    model: str
    pad: int
    first: Ranker | None
    sizes: list[int] = field(default_factory=list)
    tokens: list[NDArray[np.int64]] = field(default_factory=list)
    scores: list[NDArray[np.float32]] = field(default_factory=list)  # (depths, candidates) each
    light: list[NDArray[np.float32]] = field(default_factory=list)
    light_layers: list[float] = field(default_factory=list)

    def score(self, question: Question) -> None:
        start = time.perf_counter()
        run = self.encoder.begin(question.text, question.texts)
        rows = np.arange(len(question.candidates))
        found = [run.advance(rows, depth) for depth in self.encoder.depths]
        layer = (time.perf_counter() - start) / self.encoder.layers
        self.sizes.append(len(rows))
        self.tokens.append(np.asarray(run.tokens, np.int64))
        self.scores.append(np.stack(found))
        if self.first is not None:
            start = time.perf_counter()
            self.light.append(_order(self.first, question))
            self.light_layers.append((time.perf_counter() - start) / layer)

    def resume(self, table: ScoreTable) -> None:
        done = self.questions.questions[: len(table.questions)]
        same = (
            (table.name, table.pad, table.model, table.depths)
            == (self.questions.name, self.pad, self.model, self.encoder.depths)
            and table.questions == tuple(question.id for question in done)
            and table.sizes.tolist() == [len(question.candidates) for question in done]
            and (table.light is None) == (self.first is None)
        )
        if not same:
            raise InputError(
                f"The scores kept for {table.name} are of another model or other lists. "
                "Remove the file, or name another folder for scores."
            )
        ends = np.cumsum(table.sizes)[:-1]
        self.sizes = table.sizes.tolist()
        self.tokens = np.split(table.tokens, ends)
        self.scores = np.split(table.scores, ends, axis=1)
        if table.light is not None:
            self.light = np.split(table.light, ends)
            self.light_layers = [table.light_layers] * len(self.sizes)

    def table(self) -> ScoreTable:
        done = self.questions.questions[: len(self.sizes)]
        candidates = [candidate for question in done for candidate in question.candidates]
        return ScoreTable(
            self.questions.name,
            self.pad,
            self.model,
            self.encoder.depths,
            tuple(question.id for question in done),
            np.array(self.sizes, np.int64),
            np.array([candidate.is_answer for candidate in candidates], bool),
            np.array([candidate.id.startswith("pad:") for candidate in candidates], bool),
            np.concatenate(self.tokens),
            np.concatenate(self.scores, axis=1),
            np.concatenate(self.light) if self.light else None,
            # The median: other work on the machine disturbs single questions.
            float(np.median(self.light_layers)) if self.light_layers else 0.0,
        )
