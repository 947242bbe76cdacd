"""
A convolution over words and the maximum over positions, for a fraction of the work.

Word vectors are frozen and words repeat, so what each tap makes of a distinct word is computed
once, and a position's value is a sum of looked-up rows. The gradient of a maximum flows through
the winning position alone, so winners are found without a graph, and a filter's gradient is a
weighted sum of the word vectors that it chose. Values and gradients are those of `Conv1d` followed
by a maximum; on a CPU a step takes a quarter of the time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..batches import Texts
from ..hands import each

__all__ = ["PooledConvolution"]

# On a CPU, for threads side by side; and short texts are not padded to long ones.
_WORDS_AT_ONCE = 256
_PAIRS_AT_ONCE = 32
_FILTERS_AT_ONCE = 75


class PooledConvolution(nn.Module):
    """(dimensions + channels) → filters over an odd width, zeros beyond both ends of a text."""

    def __init__(self, dimensions: int, channels: int, filters: int, width: int) -> None:
        super().__init__()
        inputs = dimensions + channels
        start = (inputs * width) ** -0.5  # as Conv1d starts
        self.weight = nn.Parameter(torch.empty(filters, inputs, width).uniform_(-start, start))
        self.bias = nn.Parameter(torch.empty(filters).uniform_(-start, start))

    def forward(self, texts: Texts, channels: Tensor, owner: Tensor | None = None) -> Tensor:
        """
        Pairs' channels (pairs, longest, channels) → (pairs, filters).

        `owner` says which text each pair has; without it there is one text a pair.
        """
        width = self.weight.shape[2]
        around = F.pad(texts.words, 2 * (width // 2,)).unfold(1, width, 1)  # (…, longest, width)
        windows = _windows(channels, width)  # (pairs, longest, width * channels)
        if owner is None:
            owner = torch.arange(len(windows), device=windows.device)
        given = (texts.vectors, around, owner, texts.lengths[owner])
        highest: Tensor = _Highest.apply(self.weight, windows, *given)  # type: ignore[no-untyped-call]
        return highest + self.bias


class _Highest(torch.autograd.Function):
    """The highest value that each filter has in each pair."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,  # (filters, dimensions + channels, width)
        windows: Tensor,  # (pairs, longest, width * channels)
        vectors: Tensor,  # (distinct, dimensions)
        around: Tensor,  # (texts, longest, width) rows of `vectors`
        owner: Tensor,  # (pairs,) which text
        lengths: Tensor,  # (pairs,)
    ) -> Tensor:
        """→ (pairs, filters)."""
        dimensions, width = vectors.shape[1], weight.shape[2]
        table = _table(vectors, weight)
        shared = weight[:, dimensions:].permute(2, 1, 0).flatten(0, 1)
        rows = around * width + torch.arange(width, device=around.device)

        @torch.no_grad()  # which holds for a thread alone
        def found(pairs: Tensor) -> tuple[Tensor, Tensor]:
            own = lengths[pairs]
            # Beyond its end a text repeats its last position, which changes no maximum.
            place = torch.arange(int(own.max()), device=own.device)
            place = place.minimum(own[:, None] - 1)  # (some pairs, longest of them)
            # Pairs that share a text share its sums.
            text, at = torch.unique_consecutive(owner[pairs], return_inverse=True)
            shares = len(text) < len(pairs)
            bags = rows[text, : place.shape[1]] if shares else rows[text[:, None], place]
            sums = F.embedding_bag(bags.flatten(0, 1), table, mode="sum")
            if shares:
                sums = sums.view(len(text), place.shape[1], -1)[at[:, None], place].flatten(0, 1)
            sums.addmm_(windows[pairs[:, None], place].flatten(0, 1), shared)
            value, at = _first_maximum(sums.view(*place.shape, -1))
            # A repeated position can win by a rounding: it stands for the last.
            return value, at.minimum(own[:, None] - 1)

        highest = windows.new_empty(len(windows), len(weight))
        chosen = lengths.new_empty(highest.shape)  # the position of each
        groups = _by_length(lengths)
        for pairs, (value, place) in zip(groups, each(found, groups), strict=True):
            highest[pairs], chosen[pairs] = value, place
        ctx.save_for_backward(weight, windows, vectors, around, owner, chosen)
        return highest

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """For each filter and tap the vectors of the words it chose, weighted by its gradients."""
        weight, windows, vectors, around, owner, chosen = ctx.saved_tensors
        width, longest = weight.shape[2], around.shape[1]
        by_tap = around.permute(2, 0, 1).flatten(1)  # (width, texts * longest)
        beside = windows.permute(2, 0, 1).flatten(1)  # (width * channels, pairs * longest)
        pairs = torch.arange(len(chosen), device=chosen.device)

        @torch.no_grad()
        def of(some: slice) -> Tensor:
            # Filters by pairs throughout, so that a filter's bag lies in one piece.
            by_filter, place = gradient[:, some].T.contiguous(), chosen[:, some].T
            words = by_tap.index_select(1, (place + owner * longest).flatten())
            bags, weights = words.view(width * len(place), -1), by_filter.repeat(width, 1)
            sums = F.embedding_bag(bags, vectors, per_sample_weights=weights, mode="sum")
            by_words = sums.view(width, len(place), -1).permute(1, 2, 0)
            near = beside.index_select(1, (place + pairs * longest).flatten())
            by_channels = (near.view(-1, *by_filter.shape) * by_filter).sum(2)
            by_channels = by_channels.view(width, -1, len(place)).permute(2, 1, 0)
            return torch.cat([by_words, by_channels], dim=1)

        found = each(of, _by_filter(weight))
        back = None
        if ctx.needs_input_grad[1]:
            shared = weight[:, vectors.shape[1] :].transpose(1, 2).flatten(1)  # (filters, …)
            at = chosen[..., None].expand(-1, -1, windows.shape[2])
            back = torch.zeros_like(windows).scatter_add_(1, at, gradient[..., None] * shared)
        return torch.cat(found), back, None, None, None, None


def _table(vectors: Tensor, weight: Tensor) -> Tensor:
    """(distinct * width, filters): what each tap makes of each word; the longest part of a step."""
    filters, _, width = weight.shape
    taps = weight[:, : vectors.shape[1]].permute(1, 2, 0).flatten(1)  # (…, width * filters)
    table = vectors.new_empty(len(vectors), width * filters)
    size = len(vectors) if vectors.is_cuda else _WORDS_AT_ONCE
    pieces = zip(torch.split(vectors, size), torch.split(table, size), strict=True)

    @torch.no_grad()
    def fill(piece: tuple[Tensor, Tensor]) -> None:
        torch.mm(piece[0], taps, out=piece[1])

    each(fill, pieces)
    return table.view(-1, filters)


def _first_maximum(values: Tensor) -> tuple[Tensor, Tensor]:
    """As `values.max(1)`, whose search for the place takes most of its time on a CPU."""
    if values.is_cuda:
        return values.max(1)
    highest = values.amax(1, keepdim=True)
    small = torch.int16 if values.shape[1] < 2**15 else torch.int32
    back = torch.arange(values.shape[1], 0, -1, dtype=small)  # the first counts most
    place = values.shape[1] - ((values == highest) * back[:, None]).amax(1).long()
    return highest.squeeze(1), place


def _by_length(lengths: Tensor) -> list[Tensor]:
    """All pairs at once on a GPU; on a CPU in groups of about one length, the longest first."""
    if lengths.is_cuda:
        return [torch.arange(len(lengths), device=lengths.device)]
    return list(torch.split(lengths.argsort(stable=True, descending=True), _PAIRS_AT_ONCE))


def _by_filter(weight: Tensor) -> list[slice]:
    """All filters at once on a GPU; on a CPU in pieces, for several threads."""
    step = len(weight) if weight.is_cuda else _FILTERS_AT_ONCE
    return [slice(at, at + step) for at in range(0, len(weight), step)]


def _windows(channels: Tensor, width: int) -> Tensor:
    """The channels of each position's neighbours, side by side."""
    padded = F.pad(channels, (0, 0, width // 2, width // 2))
    longest = channels.shape[1]
    return torch.cat([padded[:, tap : tap + longest] for tap in range(width)], dim=2)
