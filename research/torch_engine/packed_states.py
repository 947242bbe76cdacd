"""Candidates that go through the layers of an encoder together, with their states between two."""

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
    "Fleet",
    "Flight",
]


@dataclass(slots=True, eq=False)
class Flight:
    """Windows end to end. Lengths are known on the host, so nothing here waits for the device."""

    windows: Rows
    lengths: Rows
    where: Sequences
    packed: PackedBatch | None = None
    """Their tokens, until they are embedded."""
    states: Tensor | None = None
    """(tokens, width), from then on."""

    @classmethod
    def of(cls, windows: Rows, lengths: Rows, packed: PackedBatch) -> Flight:
        """Before the first layer."""
        return cls(windows, lengths, Sequences(packed.starts, packed.longest), packed)


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """Flights side by side. Where their windows lie is known before the scores are waited for."""

    flights: Sequence[Flight]
    windows: Rows
    lengths: Rows
    starts: Rows
    """Where each window begins in the states of its flight."""
    first: Rows
    """(flights + 1,) the place of each flight's first window among all."""

    @classmethod
    def of(cls, flights: Sequence[Flight]) -> Fleet:
        """In their order."""
        nothing = np.zeros(0, np.int64)
        lengths = [flight.lengths for flight in flights]
        return cls(
            flights,
            np.concatenate([nothing, *(flight.windows for flight in flights)]),
            np.concatenate([nothing, *lengths]),
            np.concatenate([nothing, *(np.cumsum(own) - own for own in lengths)]),
            np.cumsum([0, *map(len, lengths)]),
        )

    def only(self, kept: NDArray[np.bool_], budget: int) -> Fleet:
        """
        The windows kept of flights that have states, in batches as full as the budget lets them be.

        The device is told once where they all lie, and a state is copied once at most; what a
        flight held is let go of as soon as it is copied.
        """
        if not kept.any():
            return Fleet.of([])
        chosen = _Chosen.of(self, kept)
        groups = list(_groups(chosen.tokens, budget))
        shift = self.starts[chosen.rows] - chosen.ends[:-1]
        arrays = [shift, chosen.lengths, *(chosen.begins(*group) for group in groups)]
        moved, repeats, *starts = _uploaded(arrays, self.flights[0].where.starts)
        places = torch.repeat_interleave(moved, repeats, output_size=int(chosen.ends[-1]))
        places += torch.arange(len(places), device=places.device, dtype=places.dtype)
        parts = torch.split(places, chosen.tokens.tolist())
        made = list[Flight]()
        for (begin, end), where in zip(groups, starts, strict=True):
            own = slice(*chosen.first[[begin, end]])
            windows, lengths = self.windows[chosen.rows[own]], chosen.lengths[own]
            if end - begin == 1 and len(windows) == len(self.flights[begin].windows):
                made.append(self.flights[begin])  # as it was
            else:
                states = _copied(self.flights[begin:end], parts[begin:end])
                longest = int(lengths.max())
                made.append(Flight(windows, lengths, Sequences(where, longest), states=states))
        return Fleet.of(made)


@dataclass(frozen=True, slots=True, eq=False)
class _Chosen:
    """Some windows of a fleet, end to end."""

    rows: Rows
    lengths: Rows
    ends: Rows
    """(rows + 1,) the tokens before each."""
    first: Rows
    """(flights + 1,) how many of them stand before each flight."""

    @classmethod
    def of(cls, fleet: Fleet, kept: NDArray[np.bool_]) -> _Chosen:
        rows = np.flatnonzero(kept)
        lengths = fleet.lengths[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return cls(rows, lengths, ends, np.searchsorted(rows, fleet.first))

    @property
    def tokens(self) -> Rows:
        """(flights,) that are left in each."""
        found: Rows = np.diff(self.ends[self.first])
        return found

    def begins(self, begin: int, end: int) -> Rows:
        """Where the windows of these flights begin, and the last one ends, if they become one."""
        low, high = self.first[[begin, end]]
        found: Rows = self.ends[low : high + 1] - self.ends[low]
        return found


def _groups(tokens: Rows, budget: int) -> Iterator[tuple[int, int]]:
    """From which flight up to which they fit the budget together."""
    begin = used = 0
    for place, own in enumerate(tokens.tolist()):
        if own and used and used + own > budget:
            yield begin, place
            begin, used = place, 0
        used += own
    yield begin, len(tokens)


def _copied(flights: Sequence[Flight], places: Sequence[Tensor]) -> Tensor:
    """The states at these places of each flight, end to end."""
    first = flights[0].states
    assert first is not None  # they have come through a layer
    states = first.new_empty((sum(map(len, places)), first.shape[1]))
    parts = torch.split(states, [*map(len, places)])
    for flight, chosen, to in zip(flights, places, parts, strict=True):
        assert flight.states is not None
        torch.index_select(flight.states, 0, chosen, out=to)
        flight.states = None
    return states


def _uploaded(arrays: Sequence[Rows], beside: Tensor) -> list[Tensor]:
    """Whole numbers to where that tensor is, all in one go."""
    flat = torch.from_numpy(np.concatenate(arrays, dtype=np.int32, casting="same_kind"))
    return list(torch.split(flat.to(beside.device), [len(own) for own in arrays]))
