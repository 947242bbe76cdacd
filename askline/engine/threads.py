"""Windows in batches of one length each, and the threads that work them off."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

import numpy as np

from .sequences import IntArray

__all__ = [
    "WorkerThreads",
    "equal_length_batches",
]

_TOKENS = 384  # of a batch: a larger one is no faster, and a deadline waits for one batch
_FEWEST = 64  # below, starting a batch begins to count

Stop = Callable[[], bool]
Batch = TypeVar("Batch")


def equal_length_batches(
    windows: IntArray, lengths: IntArray, levels: IntArray, *, threads: int
) -> list[IntArray]:
    """
    Windows with the same length and the same level, so many that all threads have work.

    Longest first: what is left for last is then short, and the threads end together.
    """
    if not len(windows):
        return []
    total = int(lengths.sum())
    budget = max(_FEWEST, min(_TOKENS, total // (2 * threads)))
    order = np.lexsort((levels, -lengths))  # stable: the same windows always meet
    kinds = np.stack([lengths[order], levels[order]])
    edges = np.flatnonzero(np.any(kinds[:, 1:] != kinds[:, :-1], axis=0)) + 1
    return [
        windows[some]
        for group in np.split(order, edges)
        for some in _cut(group, max(1, budget // int(lengths[group[0]])))
    ]


def _cut(group: IntArray, most: int) -> Iterator[IntArray]:
    """Parts of at most that size, all about as large."""
    yield from np.array_split(group, -(-len(group) // most))


class WorkerThreads:
    """
    A fixed number of threads for any number of callers.

    Each batch is worked off by one thread from end to end: two threads on two batches share nothing
    and wait for nobody, which beats two threads on one.
    """

    def __init__(self, threads: int | None = None) -> None:
        """Without a number, as many as this process has cores."""
        self.threads = threads or _cores()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="askline")

    def run_all(
        self,
        batches: Sequence[Batch],
        work: Callable[[Batch], None],
        *,
        stop: Stop | None = None,
    ) -> None:
        """Until all are done or `stop` says yes; it is asked before each, by one at a time."""
        left, turn = iter(batches), Lock()
        over = False

        def next_one() -> Batch | None:
            nonlocal over
            with turn:
                over = over or (stop is not None and stop())
                return None if over else next(left, None)

        def some() -> None:
            while (batch := next_one()) is not None:
                work(batch)

        helpers = min(self.threads, len(batches)) - 1
        aside = [self._pool.submit(some) for _ in range(helpers)]
        try:
            some()
        finally:
            for one in aside:
                if not one.cancel():  # a thread that has not come to it yet is not waited for
                    one.result()


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
