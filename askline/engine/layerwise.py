"""
What an engine gives a cascade: an encoder that runs a few layers, waits, and runs on.

An engine begins a run for each question. The run keeps the states of its candidates between two
depths, so that a candidate pays only for the layers it reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .spans import Span

__all__ = [
    "LayerwiseEncoder",
    "LayerwiseRun",
    "SharedEncoder",
    "SharedRun",
    "Unhurried",
]


@runtime_checkable
class LayerwiseRun(Protocol):
    """The state of one question. It belongs to one thread and is thrown away with its ranking."""

    @property
    def tokens(self) -> NDArray[np.int64]:
        """Tokens that each candidate costs a layer: question, candidate and marks, all windows."""
        ...

    def advance(
        self, rows: NDArray[np.int64], depth: int, *, stop: Callable[[], bool] | None = None
    ) -> NDArray[np.float32]:
        """
        The raw logits of these candidates at that depth, in the order of `rows`.

        Depths ascend from call to call, and rows come from those of the call before (from all, the
        first time). `stop` is asked between batches, by one thread at a time; once it says yes,
        rows that were not reached come back as nan, and must not be asked for again.
        """
        ...

    def read(self, rows: NDArray[np.int64]) -> list[Span | None]:
        """
        The best span inside each of these candidates, None for one without a token to point at.

        They may stand at any depth: the layers that they lack are computed. An engine without a
        reading head gives None for all.
        """
        ...


@runtime_checkable
class LayerwiseEncoder(Protocol):
    """An encoder with a classifier at several depths. Any number of threads may begin runs."""

    @property
    def depths(self) -> tuple[int, ...]:
        """The layers that have a classifier behind them, ascending; the last is full depth."""
        ...

    @property
    def layers(self) -> int:
        """Full depth: the last that has a classifier."""
        ...

    def begin(self, question: str, candidates: Sequence[str]) -> LayerwiseRun:
        """
        Tokenise once, for all depths.

        A candidate that is longer than the encoder can read becomes overlapping windows, and the
        best window speaks for it; nothing is cut off.
        """
        ...


class SharedRun(Protocol):
    """The state of several questions, whose candidates are numbered through."""

    @property
    def tokens(self) -> NDArray[np.int64]:
        """As a `LayerwiseRun` has it."""
        ...

    def advance(
        self,
        rows: NDArray[np.int64],
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float32]:
        """As a `LayerwiseRun`; rows that are `waiting` stay available for later calls."""
        ...


@runtime_checkable
class SharedEncoder(Protocol):
    """An encoder in whose batches pairs of several questions meet. Optional; never different."""

    def begin_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> SharedRun:
        """As `begin`, of all these questions and their candidates."""
        ...


@runtime_checkable
class Unhurried(Protocol):
    """An encoder that makes its parts ready when they are first needed, and not before."""

    @property
    def parts_ready(self) -> int:
        """How many are; a question during which it rose took longer than the next one will."""
        ...
