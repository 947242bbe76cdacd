"""Token arrays side by side, padded, on the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["ahead", "like_lengths", "pad"]

_Item = TypeVar("_Item")


def pad(
    rows: Sequence[NDArray[np.int32]], device: torch.device | str, *, padding: int = 0
) -> tuple[Tensor, Tensor]:
    """
    Token numbers (rows, tokens), and whether there is a token: (rows, tokens), bool.

    Lengths are rounded up. Batches then come in few sizes, and a GPU's memory is not asked for anew
    at almost every step of the first epoch.
    """
    longest = max(map(len, rows))
    step = 8 if longest <= 64 else 32
    longest = -(-longest // step) * step
    tokens = np.full((len(rows), longest), padding, np.int64)
    inside = np.zeros((len(rows), longest), bool)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = row
        inside[place, : len(row)] = True
    return torch.from_numpy(tokens).to(device), torch.from_numpy(inside).to(device)


def like_lengths(
    lengths: Sequence[int], size: int, rng: np.random.Generator, *, pool: int = 16
) -> Iterator[NDArray[np.int64]]:
    """
    Places in a random order, `size` at a time, of like length within a pool of `pool` batches.

    Every place comes once. The batches of a pool come in a random order too.
    """
    order = rng.permutation(len(lengths))
    sizes = np.asarray(lengths)
    for start in range(0, len(order), size * pool):
        some = order[start : start + size * pool]
        some = some[np.argsort(sizes[some], kind="stable")]
        batches = [some[at : at + size] for at in range(0, len(some), size)]
        yield from (batches[at] for at in rng.permutation(len(batches)))


def ahead(items: Iterable[_Item], *, count: int = 3) -> Iterator[_Item]:
    """The same items, the next few made by a thread while one is worked on."""
    done = object()
    source = iter(items)
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(next, source, done) for _ in range(count))
        while (item := waiting.popleft().result()) is not done:
            waiting.append(pool.submit(next, source, done))
            yield item  # type: ignore[misc]
