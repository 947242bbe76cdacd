"""Candidates that go through the layers of an encoder together, with their states between two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..packed.frozen import Sequences
from ..packed.packing import Packed, Rows

__all__ = ["Flight", "merged"]


class Flight:
    """Windows end to end. Lengths are known on the host, so nothing here waits for the device."""

    def __init__(
        self,
        windows: Rows,
        lengths: Rows,
        device: torch.device,
        *,
        packed: Packed | None = None,
        states: Tensor | None = None,
    ) -> None:
        self.windows, self.lengths, self.device = windows, lengths, device
        self.packed = packed
        """Their tokens, until they are embedded."""
        self.states = states
        """(tokens, width), from then on."""
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        self.where = Sequences(torch.from_numpy(starts).to(device), int(lengths.max()))

    def only(self, kept: NDArray[np.bool_], packed: Packed | None) -> Flight:
        """Some of the windows; `packed` has their tokens, where there are no states yet."""
        lengths = self.lengths[kept]
        if self.states is None:
            return Flight(self.windows[kept], lengths, self.device, packed=packed)
        total = int(lengths.sum())
        starts = np.cumsum(self.lengths) - self.lengths
        shift = starts[kept] - (np.cumsum(lengths) - lengths)
        moved, counts = (torch.from_numpy(each).to(self.device) for each in (shift, lengths))
        chosen = torch.repeat_interleave(moved, counts, output_size=total)
        chosen += torch.arange(total, device=self.device)
        return Flight(self.windows[kept], lengths, self.device, states=self.states[chosen])


def merged(flights: Sequence[Flight], budget: int) -> list[Flight]:
    """Those that stand side by side become one, as long as their tokens fit the budget."""
    groups: list[list[Flight]] = []
    room = 0
    for flight in flights:
        tokens = int(flight.lengths.sum())
        if groups and tokens <= room and flight.states is not None:
            groups[-1].append(flight)
        else:
            groups.append([flight])
            room = budget if flight.states is not None else 0
        room -= tokens
    return [_joined(group) if len(group) > 1 else group[0] for group in groups]


def _joined(group: Sequence[Flight]) -> Flight:
    windows, lengths = (
        np.concatenate([getattr(flight, name) for flight in group])
        for name in ("windows", "lengths")
    )
    states = [flight.states for flight in group if flight.states is not None]
    return Flight(windows, lengths, group[0].device, states=torch.cat(states))
