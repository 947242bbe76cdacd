"""
Several threads for one step of training on a CPU.

The operations of a light network are too small for torch to share one of them out: with two threads
of its own a step takes longer than with one. Here torch keeps to one thread, and pieces of a step
that do not depend on each other run side by side, for torch lets go of the interpreter while it
computes. Every piece is the same whoever computes it, so the weights do not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

__all__ = ["ahead", "each", "many_hands"]

_Piece = TypeVar("_Piece")
_Done = TypeVar("_Done")

_hands: ContextVar[Executor | None] = ContextVar("hands", default=None)


@contextmanager
def many_hands() -> Iterator[None]:
    """While it lasts, `each` has as many threads as torch had, and torch has one."""
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    with ThreadPoolExecutor(threads - 1) as pool:
        before = _hands.set(pool)
        try:
            yield
        finally:
            _hands.reset(before)
            torch.set_num_threads(threads)


def ahead(work: Callable[[_Piece], _Done], pieces: Iterable[_Piece]) -> Iterator[_Done]:
    """What `work` makes of each piece, the next begun by another thread as one is handed out."""
    pool = _hands.get()
    if pool is None:
        yield from map(work, pieces)
        return
    begun: list[Future[_Done]] = []
    for piece in pieces:
        begun.append(pool.submit(work, piece))
        if len(begun) > 1:
            yield begun.pop(0).result()
    yield from (future.result() for future in begun)


def each(work: Callable[[_Piece], _Done], pieces: Iterable[_Piece]) -> list[_Done]:
    """What `work` makes of each piece, in their order; the longest should come first."""
    pool = _hands.get()
    if pool is None:
        return [work(piece) for piece in pieces]
    waiting = [(pool.submit(work, piece), piece) for piece in pieces]
    done: dict[int, _Done] = {}
    for place in reversed(range(len(waiting))):  # this thread takes what the others have not begun
        future, piece = waiting[place]
        if future.cancel():
            done[place] = work(piece)
    return [
        done[place] if place in done else future.result()
        for place, (future, _) in enumerate(waiting)
    ]
