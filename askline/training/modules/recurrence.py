"""
Simple recurrent layers over lists of several lengths, for a fraction of the work of torch's own.

On a CPU torch makes of a small recurrent layer hundreds of operations a list, each of microseconds.
Here both directions take their steps together, and the weights' gradient is one product over all
steps. Values and gradients are those of `torch.nn.RNN`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["read_lists"]


def read_lists(reader: nn.RNNBase, pairs: Tensor, sizes: Sequence[int]) -> Tensor:
    """(pairs, inputs) of several lists in a row → (pairs, directions * hidden)."""
    ends = ("", "_reverse")[: 2 if reader.bidirectional else 1]
    into, again, bias, other = (
        torch.stack([reader.get_parameter(f"{name}_l0{end}") for end in ends])
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )  # (directions, …) each
    given = torch.addmm((bias + other).flatten(), pairs, into.flatten(0, 1).T)
    at, where = _places(sizes, len(ends))
    read: Tensor = _Recurrence.apply(  # type: ignore[no-untyped-call]
        given.view(-1, reader.hidden_size), again, at, where
    )
    return read.view(len(pairs), -1)


def _places(sizes: Sequence[int], directions: int) -> tuple[Tensor, Tensor]:
    """
    Which row of (pairs * directions) each list reads at each step, and where each row is read.

    (steps, directions, lists) and (pairs * directions,). After its end a list reads row 0; nothing
    depends on what comes of it.
    """
    lengths = torch.tensor(sizes)
    starts = lengths.cumsum(0) - lengths
    step = torch.arange(max(sizes))[:, None]  # (steps, 1)
    inside = step < lengths  # (steps, lists)
    ways = [starts + step, starts + lengths - 1 - step][:directions]
    rows = torch.stack([way * directions + which for which, way in enumerate(ways)], 1)
    inside = inside[:, None].expand_as(rows)
    where = torch.empty(sum(sizes) * directions, dtype=torch.long)
    where[rows[inside]] = inside.flatten().nonzero().squeeze(1)
    return torch.where(inside, rows, 0), where


class _Recurrence(torch.autograd.Function):
    """tanh(given + weight @ the state before), in every direction at once."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, weight: Tensor, at: Tensor, where: Tensor) -> Tensor:
        """(pairs * directions, hidden), (directions, hidden, hidden) → as `given`."""
        states = given.index_select(0, at.flatten()).view(*at.shape, -1)
        turned = weight.transpose(1, 2)
        before, *rest = states.unbind()  # (directions, lists, hidden) each
        before.tanh_()
        for state in rest:
            before = state.baddbmm_(before, turned).tanh_()
        ctx.save_for_backward(states, weight, where)
        return states.flatten(0, 2).index_select(0, where)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """From the last step to the first."""
        states, weight, where = ctx.saved_tensors
        back = torch.zeros_like(states)
        back.flatten(0, 2).index_copy_(0, where, gradient)
        slopes = (1 - states * states).unbind()
        steps = back.unbind()
        after = steps[-1].mul_(slopes[-1])
        for step, slope in zip(steps[-2::-1], slopes[-2::-1], strict=True):
            after = step.baddbmm_(after, weight).mul_(slope)
        hidden = back[1:].permute(1, 3, 0, 2).flatten(2)  # (directions, hidden, steps * lists)
        before = states[:-1].transpose(0, 1).flatten(1, 2)  # (directions, steps * lists, hidden)
        return back.flatten(0, 2).index_select(0, where), hidden @ before, None, None
