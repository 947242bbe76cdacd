"""
Score tables: every pair of a labelled set with its logit at every depth.

A table is one .npz file. With it a schedule is measured without running the encoder again, because
a pair's score does not depend on the other candidates.

A labelled set scored once at every depth, with a file that a broken-off scoring goes on from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..engine.layerwise import LayerwiseEncoder
from ..errors import InputError
from ..rankers.base import Ranker
from ..text.atomic_write import atomic_write
from ..types import Question, QuestionSet

__all__ = [
    "ScoreTable",
    "score_set",
    "with_first_stage",
]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Pairs lie question after question, candidates in their original order."""

    name: str
    pad: int
    """What the lists were padded to; 0 where they were not."""
    model: str
    """Which weights: tables of other weights are not comparable."""
    depths: tuple[int, ...]
    questions: tuple[str, ...]
    sizes: IntArray  # (questions,)
    labels: BoolArray  # (pairs,)
    added: BoolArray  # (pairs,) whether padding brought it
    tokens: IntArray  # (pairs,) what it costs a layer
    scores: FloatArray  # (depths, pairs) raw logits
    light: FloatArray | None = None  # (pairs,) a first stage's scores of the whole list
    light_layers: float = 0.0
    """What the first stage costs a candidate, in layers of the encoder, as measured."""

    def __post_init__(self) -> None:
        pairs = int(self.sizes.sum())
        columns = {"labels": self.labels, "added": self.added, "tokens": self.tokens}
        shapes = {name: value.shape for name, value in columns.items()}
        if self.light is not None:
            shapes["light"] = self.light.shape
        wrong = {name: shape for name, shape in shapes.items() if shape != (pairs,)}
        if self.scores.shape != (len(self.depths), pairs):
            wrong["scores"] = self.scores.shape
        if wrong or len(self.questions) != len(self.sizes):
            raise InputError(
                f"The score table of {self.name} must have {pairs} pairs at {len(self.depths)} "
                f"depths, got {wrong or len(self.questions)}."
            )
        if not np.isfinite(self.scores).all():
            raise InputError(f"The score table of {self.name} has scores that are no numbers.")

    @property
    def starts(self) -> IntArray:
        """Where each question's pairs begin."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def with_light(self, scores: NDArray[np.floating], layers: float) -> ScoreTable:
        """The same table with a first stage's scores and their cost."""
        return replace(self, light=np.asarray(scores, np.float32), light_layers=layers)

    def take(self, count: int) -> ScoreTable:
        """The first so many questions."""
        pairs = int(self.sizes[:count].sum())
        return replace(
            self,
            questions=self.questions[:count],
            sizes=self.sizes[:count],
            labels=self.labels[:pairs],
            added=self.added[:pairs],
            tokens=self.tokens[:pairs],
            scores=self.scores[:, :pairs],
            light=None if self.light is None else self.light[:pairs],
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table; the file appears whole or not at all."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        columns |= {"labels": self.labels.astype(np.uint8), "added": self.added.astype(np.uint8)}
        found = {name: value for name, value in columns.items() if value is not None}
        with atomic_write(path) as stream:
            np.savez_compressed(stream, **found)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ScoreTable:
        """Read a table; never a pickle."""
        try:
            with np.load(Path(path), allow_pickle=False) as found:
                columns = {name: found[name] for name in found.files}
            return cls(
                name=str(columns["name"]),
                pad=int(columns["pad"]),
                model=str(columns["model"]),
                depths=tuple(columns["depths"].astype(int).tolist()),
                questions=tuple(columns["questions"].astype(str).tolist()),
                sizes=columns["sizes"].astype(np.int64),
                labels=columns["labels"].astype(bool),
                added=columns["added"].astype(bool),
                tokens=columns["tokens"].astype(np.int64),
                scores=columns["scores"].astype(np.float32),
                light=columns.get("light"),
                light_layers=float(columns.get("light_layers", 0.0)),
            )
        except (OSError, KeyError, ValueError, EOFError) as error:
            raise InputError(f"{path} is no score table ({error}). Score the set again.") from error


_SAVE_SECONDS = 30.0


def score_set(
    encoder: LayerwiseEncoder,
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


def with_first_stage(
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

    encoder: LayerwiseEncoder
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
