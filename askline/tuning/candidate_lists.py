"""Candidate lists of one length, cut out of score tables, as arrays that a schedule is tried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .score_tables import ScoreTable

__all__ = [
    "CandidateLists",
    "RankArray",
    "concatenated",
    "make_lists",
]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RankArray = NDArray[np.int16]  # small whole numbers sort several times faster than floats


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Questions with `count` candidates each, in their original order."""

    depths: tuple[int, ...]
    places: RankArray  # (depths, questions, count) in the order of each classifier, from 0
    labels: BoolArray  # (questions, count)
    tokens: IntArray  # (questions, count)
    weights: FloatArray  # (questions,) sums to 1
    folds: IntArray  # (questions,) the same for all lists of a question
    sets: IntArray  # (questions,) which set each is of, from 0
    light: RankArray | None = None  # (questions, count) in the order of a first stage
    light_layers: float = 0.0
    stage: float = 0.0
    """What each classifier costs beside its candidates, in layers of one candidate."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def count(self) -> int:
        """Candidates in each list."""
        return int(self.labels.shape[1])

    @cached_property
    def fixed(self) -> FloatArray:
        """Token-layers that each list pays for a classifier, however many are left."""
        return np.asarray(self.stage * self.tokens.mean(axis=1), float)

    @cached_property
    def full(self) -> FloatArray:
        """Token-layers of each list at full depth, where one classifier looks."""
        return np.asarray(self.depths[-1] * self.tokens.sum(axis=1) + self.fixed, float)

    @cached_property
    def answers(self) -> IntArray:
        """How many answers each list has, and 1 where it has none."""
        return np.asarray(np.maximum(1, self.labels.sum(axis=1)))

    @cached_property
    def last(self) -> RankArray:
        """Places at full depth, doubled, plus one for an answer: (questions, count)."""
        return np.asarray(2 * self.places[-1] + self.labels, np.int16)

    def first(self, keep: int) -> CandidateLists:
        """What a first stage lets through of each list, in the original order."""
        if self.light is None:
            raise InputError("These score tables hold no scores of a first stage.")
        kept = np.flatnonzero(self.light < keep).reshape(len(self), keep)
        rows = kept % self.count
        return CandidateLists(
            self.depths,
            ranks_of(-np.take_along_axis(self.places, rows[None], axis=2)),
            np.take_along_axis(self.labels, rows, axis=1),
            np.take_along_axis(self.tokens, rows, axis=1),
            self.weights,
            self.folds,
            self.sets,
            stage=self.stage,
        )


def ranks_of(scores: NDArray[Any]) -> RankArray:
    """The place of each score in its list, the highest first; equal ones keep their order."""
    order = np.argsort(-scores, axis=-1, kind="stable")
    places = np.empty(scores.shape, np.int16)
    steps = np.broadcast_to(np.arange(scores.shape[-1], dtype=np.int16), scores.shape)
    np.put_along_axis(places, order, steps, axis=-1)
    return places


def make_lists(
    tables: Sequence[ScoreTable], count: int, *, stage: float = 0.0, folds: int = 5, seed: int = 0
) -> CandidateLists:
    """
    A list of `count` candidates of every question that has as many.

    Where a question has more, its answers and its own candidates stay before those that padding
    brought; which of them stay is drawn, and a first stage's scores no longer hold. A set's
    questions together weigh as the root of their number, so that neither a small set decides nor a
    large one alone.
    """
    cuts = [_Cut.of(table, count, np.random.default_rng([seed, count])) for table in tables]
    cuts = [cut for cut in cuts if len(cut.rows)]
    if not cuts:
        raise InputError(f"No question of the dev sets has {count} candidates. Pad them to more.")
    weights = np.concatenate([np.full(len(cut.rows), len(cut.rows) ** -0.5) for cut in cuts])
    light = [cut.table.light[cut.rows] for cut in cuts if cut.whole and cut.table.light is not None]
    return CandidateLists(
        cuts[0].table.depths,
        ranks_of(np.concatenate([cut.table.scores[:, cut.rows] for cut in cuts], axis=1)),
        np.concatenate([cut.table.labels[cut.rows] for cut in cuts]),
        np.concatenate([cut.table.tokens[cut.rows] for cut in cuts]),
        weights / weights.sum(),
        np.concatenate([cut.questions % folds for cut in cuts]),
        np.repeat(np.arange(len(cuts)), [len(cut.rows) for cut in cuts]),
        ranks_of(np.concatenate(light)) if len(light) == len(cuts) else None,
        float(np.mean([cut.table.light_layers for cut in cuts])),
        stage,
    )


def concatenated(parts: Sequence[CandidateLists]) -> CandidateLists:
    """Lists of one length, one after the other; each part weighs as much as the next."""
    starts = np.cumsum([0, *(part.sets.max() + 1 for part in parts[:-1])])
    return CandidateLists(
        parts[0].depths,
        np.concatenate([part.places for part in parts], axis=1),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.tokens for part in parts]),
        np.concatenate([part.weights for part in parts]) / len(parts),
        np.concatenate([part.folds for part in parts]),
        np.concatenate([part.sets + start for part, start in zip(parts, starts, strict=True)]),
        stage=parts[0].stage,
    )


@dataclass(frozen=True, eq=False)
class _Cut:
    """Which pairs of a table make the lists."""

    table: ScoreTable
    questions: IntArray  # (lists,)
    rows: IntArray  # (lists, count)
    whole: bool  # no list had more

    @classmethod
    def of(cls, table: ScoreTable, count: int, random: np.random.Generator) -> _Cut:
        enough = np.flatnonzero(table.sizes >= count)
        rows = np.empty((len(enough), count), np.int64)
        for place, question in enumerate(enough.tolist()):
            own = table.starts[question] + np.arange(table.sizes[question])
            # Answers, then own candidates, then added ones; the order among equals is drawn.
            rank = np.where(table.labels[own], 0, np.where(table.added[own], 2, 1))
            taken = np.lexsort((random.random(len(own)), rank))[:count]
            rows[place] = own[np.sort(taken)]
        return cls(table, enough, rows, bool((table.sizes[enough] == count).all()))
