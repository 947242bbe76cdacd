"""Packed batches of candidates with their hidden states between two layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from askline.training.packing import PackedBatch, Rows

from .frozen_layers import Sequences

__all__ = [
    "StateBatch",
    "StateBatches",
]


@dataclass(slots=True, eq=False)
class StateBatch:
    """Packed windows. Their lengths are known on the host, so nothing waits for the device."""

    windows: Rows
    lengths: Rows
    where: Sequences
    packed: PackedBatch | None = None
    """The tokens, until they are embedded."""
    states: Tensor | None = None
    """(tokens, width), after the embedding."""

    @classmethod
    def of(cls, windows: Rows, lengths: Rows, packed: PackedBatch) -> StateBatch:
        """A batch before the first layer."""
        return cls(windows, lengths, Sequences(packed.starts, packed.longest), packed)


@dataclass(frozen=True, slots=True, eq=False)
class StateBatches:
    """Several batches. The positions of their windows are known before the scores are."""

    batches: Sequence[StateBatch]
    windows: Rows
    lengths: Rows
    starts: Rows
    """The start of each window in the states of its batch."""
    first: Rows
    """(batches + 1,) the index of each batch's first window."""

    @classmethod
    def of(cls, batches: Sequence[StateBatch]) -> StateBatches:
        """Batches in this order."""
        nothing = np.zeros(0, np.int64)
        lengths = [batch.lengths for batch in batches]
        return cls(
            batches,
            np.concatenate([nothing, *(batch.windows for batch in batches)]),
            np.concatenate([nothing, *lengths]),
            np.concatenate([nothing, *(np.cumsum(own) - own for own in lengths)]),
            np.cumsum([0, *map(len, lengths)]),
        )

    def only(self, kept: NDArray[np.bool_], budget: int) -> StateBatches:
        """
        The kept windows, gathered into batches of at most `budget` tokens.

        Indices are uploaded to the device once, a state is copied at most once, and the memory of a
        batch is released as soon as it is copied.
        """
        if not kept.any():
            return StateBatches.of([])
        chosen = _Chosen.of(self, kept)
        groups = list(_groups(chosen.tokens, budget))
        shift = self.starts[chosen.rows] - chosen.ends[:-1]
        arrays = [shift, chosen.lengths, *(chosen.begins(*group) for group in groups)]
        moved, repeats, *starts = _uploaded(arrays, self.batches[0].where.starts)
        places = torch.repeat_interleave(moved, repeats, output_size=int(chosen.ends[-1]))
        places += torch.arange(len(places), device=places.device, dtype=places.dtype)
        parts = torch.split(places, chosen.tokens.tolist())
        made = list[StateBatch]()
        for (begin, end), where in zip(groups, starts, strict=True):
            own = slice(*chosen.first[[begin, end]])
            windows, lengths = self.windows[chosen.rows[own]], chosen.lengths[own]
            if end - begin == 1 and len(windows) == len(self.batches[begin].windows):
                made.append(self.batches[begin])  # unchanged
            else:
                states = _copied(self.batches[begin:end], parts[begin:end])
                longest = int(lengths.max())
                made.append(StateBatch(windows, lengths, Sequences(where, longest), states=states))
        return StateBatches.of(made)


@dataclass(frozen=True, slots=True, eq=False)
class _Chosen:
    """Some windows of several batches, end to end."""

    rows: Rows
    lengths: Rows
    ends: Rows
    """(rows + 1,) the tokens before each."""
    first: Rows
    """(batches + 1,) the number of them before each batch."""

    @classmethod
    def of(cls, batches: StateBatches, kept: NDArray[np.bool_]) -> _Chosen:
        rows = np.flatnonzero(kept)
        lengths = batches.lengths[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return cls(rows, lengths, ends, np.searchsorted(rows, batches.first))

    @property
    def tokens(self) -> Rows:
        """(batches,) that are left in each."""
        found: Rows = np.diff(self.ends[self.first])
        return found

    def begins(self, begin: int, end: int) -> Rows:
        """Where the windows of these batches begin, and the last one ends, if they become one."""
        low, high = self.first[[begin, end]]
        found: Rows = self.ends[low : high + 1] - self.ends[low]
        return found


def _groups(tokens: Rows, budget: int) -> Iterator[tuple[int, int]]:
    """From which batch up to which they fit the budget together."""
    begin = used = 0
    for place, own in enumerate(tokens.tolist()):
        if own and used and used + own > budget:
            yield begin, place
            begin, used = place, 0
        used += own
    yield begin, len(tokens)


def _copied(batches: Sequence[StateBatch], places: Sequence[Tensor]) -> Tensor:
    """The states at these places of each batch, end to end."""
    first = batches[0].states
    assert first is not None  # they have come through a layer
    states = first.new_empty((sum(map(len, places)), first.shape[1]))
    parts = torch.split(states, [*map(len, places)])
    for batch, chosen, to in zip(batches, places, parts, strict=True):
        assert batch.states is not None
        torch.index_select(batch.states, 0, chosen, out=to)
        batch.states = None
    return states


def _uploaded(arrays: Sequence[Rows], beside: Tensor) -> list[Tensor]:
    """Whole numbers to where that tensor is, all in one go."""
    flat = torch.from_numpy(np.concatenate(arrays, dtype=np.int32, casting="same_kind"))
    return list(torch.split(flat.to(beside.device), [len(own) for own in arrays]))
