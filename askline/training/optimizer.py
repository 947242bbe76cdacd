"""
The slanted triangular learning rate (Howard & Ruder, 2018).

Adam, without what `torch.optim.Adam` brings along.

Two threads for one step of training on a CPU.

Most operations of a light network are too small for torch to share one of them out. Here torch
keeps to one thread, and the two halves of a step run side by side, for torch lets go of the
interpreter while it computes. A half is the same whoever computes it, so the weights do not depend
on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from ..engine.numpy_ops import IntArray

__all__ = [
    "Adam",
    "Hands",
    "halves",
    "hands",
    "slanted_triangular",
]


def slanted_triangular(
    step: float, total: float, *, rise: float = 0.1, lowest: float = 1 / 32
) -> float:
    """The share of the peak rate at `step` of `total`: up over the first tenth, then down."""
    done = step / total
    height = done / rise if done < rise else (1 - done) / (1 - rise)
    return lowest + (1 - lowest) * height


class Adam:
    """
    The steps of `torch.optim.Adam(…, fused=True)`, to the bit.

    That class loads torch's compiler when it is made, which takes as long as loading torch; the
    function that both call does not.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self._weights = list(weights)
        self._means = [torch.zeros_like(weight) for weight in self._weights]
        self._squares = [torch.zeros_like(weight) for weight in self._weights]
        self._steps = [torch.zeros((), device=weight.device) for weight in self._weights]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """Move the weights. A gradient lies in memory as its weight does."""
        adam(
            self._weights,
            list(gradients),
            self._means,
            self._squares,
            [],
            self._steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state(self) -> dict[str, Any]:
        """What the next step depends on, besides the weights."""
        return {"means": self._means, "squares": self._squares, "steps": self._steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to where `state` was taken."""
        for name, own in self.state().items():
            for value, kept in zip(own, state[name], strict=True):
                value.copy_(kept)


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
