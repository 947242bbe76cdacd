"""
Two threads for one step of training on a CPU.

Most operations of a light network are too small for torch to share one of them out. Here torch
keeps to one thread, and the two halves of a step run side by side, for torch lets go of the
interpreter while it computes. A half is the same whoever computes it, so the weights do not depend
on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch

from ..engine.numpy_ops import IntArray

__all__ = ["Hands", "halves", "hands"]

_Piece = TypeVar("_Piece")
_Done = TypeVar("_Done")


class Hands:
    """This thread, and those of a pool where there is one."""

    def __init__(self, others: Executor | None = None) -> None:
        self._others = others

    def each(self, work: Callable[[_Piece], _Done], pieces: Sequence[_Piece]) -> list[_Done]:
        """What `work` makes of each piece, in their order. This thread takes the first."""
        if self._others is None:
            return [work(piece) for piece in pieces]
        begun = [self._others.submit(work, piece) for piece in pieces[1:]]
        return [*map(work, pieces[:1]), *(one.result() for one in begun)]


@contextmanager
def hands(device: torch.device) -> Iterator[Hands]:
    """On a CPU where torch has several threads, two; while they last torch has one."""
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        yield Hands()
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield Hands(pool)
    finally:
        torch.set_num_threads(threads)


def halves(rows: IntArray, work: IntArray) -> list[IntArray]:
    """Rows in two parts that take about as long, by the work of each row. One row is one part."""
    if len(rows) < 2:
        return [rows]
    parts: tuple[list[int], list[int]] = [], []
    done = [0, 0]
    for row in rows[np.argsort(-work[rows], kind="stable")].tolist():
        lighter = int(done[1] < done[0])
        parts[lighter].append(row)
        done[lighter] += 1 + int(work[row])
    return [np.array(part) for part in parts]
