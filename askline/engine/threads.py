"""
The number of CPU threads, the batches for them, and worker threads that run batches side by side.

All sequences of a batch have the same length, so that nothing is padded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .numpy_ops import IntArray

__all__ = ["WorkerThreads", "available_cores", "equal_length_batches"]

_MAX_BATCH_TOKENS = 384  # larger batches are no faster, and a deadline waits for one batch
_MIN_BATCH_TOKENS = 64  # in smaller batches the overhead of starting a batch begins to count
_Batch = TypeVar("_Batch")


class WorkerThreads:
    """
    A fixed number of worker threads, shared by any number of callers.

    Each batch is computed by one thread from start to end. Two threads on two batches share nothing
    and never wait for each other, which is faster than two threads on one batch.
    """

    def __init__(self, threads: int | None = None) -> None:
        """`threads` defaults to the number of cores that this process may use."""
        self.threads = threads or available_cores()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="askline")

    def run_all(
        self,
        batches: Sequence[_Batch],
        work: Callable[[_Batch], None],
        *,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        """
        Call `work` on every batch, the caller's thread included, until all are done.

        `stop` is called before each batch, by one thread at a time. Once it returns True, no
        further batch is started. The same holds once the caller's thread is interrupted by an
        exception: then this call lasts as long as the batches that are being computed.
        """
        remaining, lock = iter(batches), Lock()
        stopped = interrupted = False

        def next_batch() -> _Batch | None:
            nonlocal stopped
            with lock:
                stopped = stopped or (stop is not None and stop())
                return None if stopped or interrupted else next(remaining, None)

        def run_batches() -> None:
            while (batch := next_batch()) is not None:
                work(batch)

        helpers = min(self.threads, len(batches)) - 1
        futures: list[Future[None]] = []
        try:
            for _ in range(helpers):
                futures.append(self._pool.submit(run_batches))
            while (batch := next_batch()) is not None:
                work(batch)
        except BaseException:
            interrupted = True  # the helpers end after the batch that they are computing
            raise
        finally:
            for future in futures:
                if not future.cancel():  # a helper that has not started yet is not waited for
                    future.result()


def equal_length_batches(
    sequences: IntArray, lengths: IntArray, levels: IntArray, *, threads: int
) -> list[IntArray]:
    """
    Split sequences into batches of equal length and equal level, enough for all threads.

    The longest sequences come first: the last batches are then short, and all threads finish at
    about the same time.
    """
    import numpy as np  # the web process, which needs the number of cores, does not load it

    if not len(sequences):
        return []
    budget = max(_MIN_BATCH_TOKENS, min(_MAX_BATCH_TOKENS, int(lengths.sum()) // (2 * threads)))
    groups = dict[tuple[int, int], list[int]]()  # in lists of Python: most of them are short
    for sequence, length, level in zip(
        sequences.tolist(), lengths.tolist(), levels.tolist(), strict=True
    ):
        groups.setdefault((-length, level), []).append(sequence)
    batches: list[IntArray] = []
    for (length, _), group in sorted(groups.items()):
        parts = -(-len(group) // max(1, budget // -length))
        members = np.array(group, np.int64)
        batches += np.array_split(members, parts) if parts > 1 else [members]
    return batches


def available_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
