"""Runs of several questions, on engines that let their pairs meet and on those that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..runtime.staged import SharedEncoder, SharedRun, StagedEncoder, StagedRun

__all__ = ["begin_all"]

IntArray = NDArray[np.int64]


def begin_all(encoder: StagedEncoder, requests: Sequence[tuple[str, Sequence[str]]]) -> SharedRun:
    """One run over the candidates of all these questions, numbered through."""
    if isinstance(encoder, SharedEncoder):
        return encoder.begin_many(requests)
    return _Apart([encoder.begin(*request) for request in requests])


class _Apart:
    """A `SharedRun` of an engine that knows one question at a time: one after the other."""

    def __init__(self, runs: Sequence[StagedRun]) -> None:
        self._runs = runs
        self.tokens = np.concatenate([run.tokens for run in runs])
        self._ends = np.cumsum([len(run.tokens) for run in runs])

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,  # noqa: ARG002
    ) -> NDArray[np.float32]:
        """Those that wait are of questions that are not asked, and rest untouched."""
        logits = np.full(len(rows), np.nan, np.float32)
        whose = np.searchsorted(self._ends, rows, side="right")
        for number in np.unique(whose).tolist():
            own, run = whose == number, self._runs[number]
            base = self._ends[number] - len(run.tokens)
            logits[own] = run.advance(rows[own] - base, depth, stop=stop)
        return logits
