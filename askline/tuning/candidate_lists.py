"""Candidate lists of one length, taken from score tables, as arrays that schedules are tried on."""

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
    "ranks_of",
]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RankArray = NDArray[np.int16]  # small integers sort several times faster than floats


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Lists of `count` candidates each, in their original order; one list per question."""

    depths: tuple[int, ...]
    ranks: RankArray  # (depths, questions, count) by each classifier, from 0
    labels: BoolArray  # (questions, count)
    tokens: IntArray  # (questions, count)
    weights: FloatArray  # (questions,) with the sum 1
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
    def fixed_cost(self) -> FloatArray:
        """(questions,): token-layers per classifier, whatever the number of candidates left."""
        return np.asarray(self.stage * self.tokens.mean(axis=1), float)

    @cached_property
    def full_cost(self) -> FloatArray:
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
