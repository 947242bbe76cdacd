"""
Score tables: the logits of all pairs of a labeled set at every depth, and lists taken from them.

A table is saved as one .npz file. With it, schedules are measured without running the encoder
again, because the score of a pair does not depend on the other candidates. Candidate lists of one
length, taken from tables, are the arrays that schedules are tried on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.layerwise import LayerwiseEncoder
from ..errors import InputError
from ..rankers.base import Ranker
from ..text.atomic_write import atomic_write
from ..types import Question, QuestionSet

__all__ = [
    "CandidateLists",
    "RankArray",
    "ScoreTable",
    "concatenated",
    "make_lists",
    "ranks_of",
    "score_set",
    "with_first_stage",
]

_FILE_KEYS = {"first_stage": "light", "first_stage_layers": "light_layers"}  # fields in the file
_SAVE_SECONDS = 30.0  # between two writes of an unfinished table

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Pairs stand question after question, the candidates in their original order."""

    name: str
    pad: int
    """The number of candidates that the lists were padded to; 0 if they were not."""
    model: str
    """Identifies the weights: tables of different weights are not comparable."""
    depths: tuple[int, ...]
    questions: tuple[str, ...]
    sizes: IntArray  # (questions,)
    labels: BoolArray  # (pairs,)
    added: BoolArray  # (pairs,) whether padding added it
    tokens: IntArray  # (pairs,) the cost of a pair per layer
    scores: FloatArray  # (depths, pairs) raw logits
    first_stage: FloatArray | None = None  # (pairs,) a first stage's scores of the whole list
    first_stage_layers: float = 0.0
    """The measured cost of the first stage per candidate, in layers of the encoder."""

    def __post_init__(self) -> None:
        pairs = int(self.sizes.sum())
        columns = {"labels": self.labels, "added": self.added, "tokens": self.tokens}
        shapes = {name: value.shape for name, value in columns.items()}
        if self.first_stage is not None:
            shapes["first_stage"] = self.first_stage.shape
        wrong = {name: shape for name, shape in shapes.items() if shape != (pairs,)}
        if self.scores.shape != (len(self.depths), pairs):
            wrong["scores"] = self.scores.shape
        if wrong or len(self.questions) != len(self.sizes):
            raise InputError(
                f"The score table of {self.name} must have {pairs} pairs at {len(self.depths)} "
                f"depths, got {wrong or len(self.questions)}."
            )
        if not np.isfinite(self.scores).all():
            raise InputError(f"The scores of {self.name} must be finite, got NaN or infinity.")

    @property
    def starts(self) -> IntArray:
        """The first pair of each question."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def with_first_stage_scores(self, scores: NDArray[np.floating], layers: float) -> ScoreTable:
        """The same table with the scores of a first stage and their cost."""
        first_stage = np.asarray(scores, np.float32)
        return replace(self, first_stage=first_stage, first_stage_layers=layers)

    def take(self, count: int) -> ScoreTable:
        """The table of the first `count` questions."""
        pairs = int(self.sizes[:count].sum())
        return replace(
            self,
            questions=self.questions[:count],
            sizes=self.sizes[:count],
            labels=self.labels[:pairs],
            added=self.added[:pairs],
            tokens=self.tokens[:pairs],
            scores=self.scores[:, :pairs],
            first_stage=None if self.first_stage is None else self.first_stage[:pairs],
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table atomically."""
        columns = {
            _FILE_KEYS.get(field.name, field.name): getattr(self, field.name)
            for field in fields(self)
        }
        columns |= {"labels": self.labels.astype(np.uint8), "added": self.added.astype(np.uint8)}
        present = {name: value for name, value in columns.items() if value is not None}
        with atomic_write(path) as stream:
            np.savez_compressed(stream, **present)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ScoreTable:
        """Read a table; pickled files are refused."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                columns = {name: file[name] for name in file.files}
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
                first_stage=columns.get("light"),
                first_stage_layers=float(columns.get("light_layers", 0.0)),
            )
        except (OSError, KeyError, ValueError, EOFError) as error:
            raise InputError(
                f"{path} is not a valid score table ({error}). Score the set again."
            ) from error


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
    Score every pair at every depth, without dropping candidates.

    `model` identifies the weights (and the first stage). If `path` holds a table of the same model
    and lists, its questions are not scored again. The file is written every 30 seconds and at the
    end, so that an interrupted run can be resumed.
    """
    scoring = _Scoring(encoder, QuestionSet(questions.name, questions.questions), model, pad, first)
    if path is not None and path.is_file():
        scoring.resume(ScoreTable.load(path))
    saved = time.monotonic()
    for place, question in enumerate(questions):
        if place >= len(scoring.sizes):
            scoring.score(question)
        on_question()
        if path is not None and time.monotonic() - saved > _SAVE_SECONDS:
            scoring.table().save(path)
            saved = time.monotonic()
    table = scoring.table()
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
    """The table with the ranks of a first stage, which costs `layers` layers per candidate."""
    by_id = {question.id: question for question in questions}
    matching = [by_id.get(id_) for id_ in table.questions]
    scores = []
    for question, size, id_ in zip(matching, table.sizes.tolist(), table.questions, strict=True):
        if question is None or len(question.candidates) != size:
            raise InputError(
                f"Question {id_!r} of the score table of {table.name} must have {size} candidates "
                f"in the set, got {len(question.candidates) if question else 'no such question'}. "
                "Pad it as it was padded for the table."
            )
        scores.append(_negative_ranks(first, question))
        on_question()
    return table.with_first_stage_scores(np.concatenate(scores), layers)


def _negative_ranks(ranker: Ranker, question: Question) -> NDArray[np.float32]:
    """Minus the rank of each candidate, which is all that a cut-off needs of a ranker."""
    scores = np.empty(len(question.candidates), np.float32)
    for rank, hit in enumerate(ranker.rank(question.text, question.texts)):
        scores[hit.index] = -rank
    return scores


@dataclass
class _Scoring:
    """The questions scored so far."""

    encoder: LayerwiseEncoder
    questions: QuestionSet
    model: str
    pad: int
    first: Ranker | None
    sizes: list[int] = field(default_factory=list)
    tokens: list[NDArray[np.int64]] = field(default_factory=list)
    scores: list[NDArray[np.float32]] = field(default_factory=list)  # (depths, candidates) each
    first_stage: list[NDArray[np.float32]] = field(default_factory=list)
    first_stage_layers: list[float] = field(default_factory=list)

    def score(self, question: Question) -> None:
        start = time.perf_counter()
        run = self.encoder.begin(question.text, question.texts)
        rows = np.arange(len(question.candidates))
        scores = [run.advance(rows, depth) for depth in self.encoder.depths]
        layer_seconds = (time.perf_counter() - start) / self.encoder.layers
        self.sizes.append(len(rows))
        self.tokens.append(np.asarray(run.tokens, np.int64))
        self.scores.append(np.stack(scores))
        if self.first is not None:
            start = time.perf_counter()
            self.first_stage.append(_negative_ranks(self.first, question))
            self.first_stage_layers.append((time.perf_counter() - start) / layer_seconds)

    def resume(self, table: ScoreTable) -> None:
        done = self.questions.questions[: len(table.questions)]
        same = (
            (table.name, table.pad, table.model, table.depths)
            == (self.questions.name, self.pad, self.model, self.encoder.depths)
            and table.questions == tuple(question.id for question in done)
            and table.sizes.tolist() == [len(question.candidates) for question in done]
            and (table.first_stage is None) == (self.first is None)
        )
        if not same:
            raise InputError(
                f"The saved scores of {table.name} are of another model or other lists. "
                "Remove the file, or name another folder for scores."
            )
        ends = np.cumsum(table.sizes)[:-1]
        self.sizes = table.sizes.tolist()
        self.tokens = np.split(table.tokens, ends)
        self.scores = np.split(table.scores, ends, axis=1)
        if table.first_stage is not None:
            self.first_stage = np.split(table.first_stage, ends)
            self.first_stage_layers = [table.first_stage_layers] * len(self.sizes)

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
            np.concatenate(self.first_stage) if self.first_stage else None,
            # The median: other work on the machine disturbs single questions.
            float(np.median(self.first_stage_layers)) if self.first_stage_layers else 0.0,
        )


Float64Array = NDArray[np.float64]
RankArray = NDArray[np.int16]  # small integers sort several times faster than floats


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Lists of `count` candidates each, in their original order; one list per question."""

    depths: tuple[int, ...]
    ranks: RankArray  # (depths, questions, count) by each classifier, from 0
    labels: BoolArray  # (questions, count)
    tokens: IntArray  # (questions, count)
    weights: Float64Array  # (questions,) with the sum 1
    folds: IntArray  # (questions,) the same for all lists of a question
    sets: IntArray  # (questions,) the number of each question's set, from 0
    first_stage: RankArray | None = None  # (questions, count) ranks by a first stage
    first_stage_layers: float = 0.0
    """The cost of the first stage per candidate, in layers."""
    stage: float = 0.0
    """The fixed cost of a classifier per list, in layers of one candidate."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def count(self) -> int:
        """The number of candidates in each list."""
        return int(self.labels.shape[1])

    @cached_property
    def fixed_cost(self) -> Float64Array:
        """(questions,): token-layers per classifier, whatever the number of candidates left."""
        return np.asarray(self.stage * self.tokens.mean(axis=1), float)

    @cached_property
    def full_cost(self) -> Float64Array:
        """(questions,): token-layers at full depth, with one classifier."""
        return np.asarray(self.depths[-1] * self.tokens.sum(axis=1) + self.fixed_cost, float)

    @cached_property
    def answers(self) -> IntArray:
        """(questions,): the number of answers, at least 1."""
        return np.asarray(np.maximum(1, self.labels.sum(axis=1)))

    @cached_property
    def full_depth_keys(self) -> RankArray:
        """(questions, count): twice the rank at full depth, plus one for an answer."""
        return np.asarray(2 * self.ranks[-1] + self.labels, np.int16)

    def after_first_stage(self, keep: int) -> CandidateLists:
        """The `keep` best candidates of each list by the first stage, in the original order."""
        if self.first_stage is None:
            raise InputError("These score tables have no scores of a first stage.")
        kept = np.flatnonzero(self.first_stage < keep).reshape(len(self), keep)
        columns = kept % self.count
        return CandidateLists(
            self.depths,
            ranks_of(-np.take_along_axis(self.ranks, columns[None], axis=2)),
            np.take_along_axis(self.labels, columns, axis=1),
            np.take_along_axis(self.tokens, columns, axis=1),
            self.weights,
            self.folds,
            self.sets,
            stage=self.stage,
        )


def ranks_of(scores: NDArray[Any]) -> RankArray:
    """The rank of each score along the last axis, highest first; ties keep their order."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    ranks = np.empty(scores.shape, np.int16)
    steps = np.broadcast_to(np.arange(scores.shape[-1], dtype=np.int16), scores.shape)
    np.put_along_axis(ranks, order, steps, axis=-1)
    return ranks


def make_lists(
    tables: Sequence[ScoreTable], count: int, *, stage: float = 0.0, folds: int = 5, seed: int = 0
) -> CandidateLists:
    """
    A list of `count` candidates per question that has at least as many.

    From a longer list, answers are taken first, then the question's own candidates, then those that
    padding added; ties are broken at random. The scores of a first stage are valid only for whole
    lists, and left out otherwise. The questions of a set together weigh as the square root of their
    number, so that neither a small set nor a large one decides alone.
    """
    samples = [_Sample.of(table, count, np.random.default_rng([seed, count])) for table in tables]
    samples = [sample for sample in samples if len(sample.rows)]
    if not samples:
        raise InputError(f"No question of the dev sets has {count} candidates. Pad them to more.")
    sizes = [len(sample.rows) for sample in samples]
    weights = np.concatenate([np.full(size, size**-0.5) for size in sizes])
    first_stage = [
        sample.table.first_stage[sample.rows]
        for sample in samples
        if sample.is_whole and sample.table.first_stage is not None
    ]
    return CandidateLists(
        samples[0].table.depths,
        ranks_of(np.concatenate([own.table.scores[:, own.rows] for own in samples], axis=1)),
        np.concatenate([own.table.labels[own.rows] for own in samples]),
        np.concatenate([own.table.tokens[own.rows] for own in samples]),
        weights / weights.sum(),
        np.concatenate([own.questions % folds for own in samples]),
        np.repeat(np.arange(len(samples)), sizes),
        ranks_of(np.concatenate(first_stage)) if len(first_stage) == len(samples) else None,
        float(np.mean([own.table.first_stage_layers for own in samples])),
        stage,
    )


def concatenated(parts: Sequence[CandidateLists]) -> CandidateLists:
    """Lists of one length together; all parts have the same weight."""
    starts = np.cumsum([0, *(part.sets.max() + 1 for part in parts[:-1])])
    return CandidateLists(
        parts[0].depths,
        np.concatenate([part.ranks for part in parts], axis=1),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.tokens for part in parts]),
        np.concatenate([part.weights for part in parts]) / len(parts),
        np.concatenate([part.folds for part in parts]),
        np.concatenate([part.sets + start for part, start in zip(parts, starts, strict=True)]),
        stage=parts[0].stage,
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """The pairs of a table that make the lists."""

    table: ScoreTable
    questions: IntArray  # (lists,)
    rows: IntArray  # (lists, count)
    is_whole: bool  # no question had more candidates

    @classmethod
    def of(cls, table: ScoreTable, count: int, random: np.random.Generator) -> _Sample:
        enough = np.flatnonzero(table.sizes >= count)
        rows = np.empty((len(enough), count), np.int64)
        for place, question in enumerate(enough.tolist()):
            own = table.starts[question] + np.arange(table.sizes[question])
            # Answers, then own candidates, then added ones; ties are broken at random.
            priority = np.where(table.labels[own], 0, np.where(table.added[own], 2, 1))
            taken = np.lexsort((random.random(len(own)), priority))[:count]
            rows[place] = own[np.sort(taken)]
        return cls(table, enough, rows, bool((table.sizes[enough] == count).all()))
