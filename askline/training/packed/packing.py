"""
Many sequences end to end in one row, with no padding between them.

A batch of sentences padded to the longest is half padding; packed, every token computed is a token
that was given. Encoders that cannot take it so get the padded form of the same batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .templates import PairTemplate

__all__ = ["Packed", "TokenTable", "Window", "pack"]

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """Texts as token numbers without special ones, each tokenised once."""

    tokens: NDArray[np.int32]
    offsets: NDArray[np.int64]
    """Text i has the tokens from offsets[i] up to offsets[i + 1]."""

    @classmethod
    def of(cls, texts: Sequence[str], tokeniser: Any) -> TokenTable:
        """An empty text has no tokens."""
        found = tokeniser(
            list(texts),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )["input_ids"]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in found])])
        flat = [np.array(row, np.int32) for row in found]
        return cls(np.concatenate([np.zeros(0, np.int32), *flat]), offsets.astype(np.int64))

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.offsets) - 1

    def __add__(self, other: TokenTable) -> TokenTable:
        """Both tables' texts, the other's numbered after these."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        return TokenTable(np.concatenate([self.tokens, other.tokens]), offsets)

    def lengths(self, rows: Rows) -> Rows:
        """Tokens in each of these texts."""
        found: Rows = self.offsets[rows + 1] - self.offsets[rows]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Which tokens of each second text to take: `length` from `start`."""

    start: Rows
    length: Rows


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Sequences end to end. All on one device."""

    tokens: Tensor  # (tokens,)
    segments: Tensor  # (tokens,)
    places: Tensor  # (tokens,) the place within its sequence
    owners: Tensor  # (tokens,) the sequence of each token
    starts: Tensor  # (sequences + 1,) int32
    second: Tensor  # (sequences,) where the second text starts within its sequence
    in_second: Tensor  # (tokens,) whether a token is of the second text
    longest: int
    padding: int
    has_segments: bool

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.starts) - 1

    def padded(self) -> dict[str, Tensor]:
        """The same as an encoder of any family takes it."""
        shape = (len(self), self.longest)
        tokens = self.tokens.new_full(shape, self.padding)
        inside = self.tokens.new_zeros(shape)
        where = (self.owners, self.places)
        tokens[where], inside[where] = self.tokens, torch.ones_like(self.tokens)
        batch = {"input_ids": tokens, "attention_mask": inside}
        if self.has_segments:
            segments = self.tokens.new_zeros(shape)
            segments[where] = self.segments
            batch["token_type_ids"] = segments
        return batch

    def keep(self, rows: Tensor) -> tuple[Packed, Tensor]:
        """Only these sequences, in this order, and which tokens of all are theirs."""
        counts = (self.starts[1:] - self.starts[:-1])[rows].long()
        ends = counts.cumsum(0)
        shift = self.starts[:-1][rows].long() - (ends - counts)
        chosen = torch.repeat_interleave(shift, counts) + torch.arange(
            int(ends[-1]) if len(rows) else 0, device=rows.device
        )
        starts = torch.cat([ends.new_zeros(1), ends]).int()
        owners = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), counts)
        part = Packed(
            self.tokens[chosen],
            self.segments[chosen],
            self.places[chosen],
            owners,
            starts,
            self.second[rows],
            self.in_second[chosen],
            self.longest,
            self.padding,
            self.has_segments,
        )
        return part, chosen


def pack(
    table: TokenTable,
    first: Rows,
    second: Rows,
    template: PairTemplate,
    *,
    limit: int = 256,
    first_limit: int = 64,
    window: Window | None = None,
    device: torch.device | str = "cpu",
) -> Packed:
    """
    Pairs of texts of a table. Of one that is too long, the end is cut.

    `window` takes a part of each second text, for texts longer than the encoder's reach.
    """
    lengths = np.empty((len(first), 5), np.int64)
    lengths[:, 0], lengths[:, 2] = len(template.before), len(template.between)
    lengths[:, 4] = len(template.after)
    lengths[:, 1] = np.minimum(table.lengths(first), first_limit)
    room = limit - template.extra - lengths[:, 1]
    wanted = table.lengths(second) if window is None else window.length
    lengths[:, 3] = np.minimum(wanted, room)
    marks = np.concatenate([template.before, template.between, template.after])
    starts = np.empty_like(lengths)
    starts[:, 0], starts[:, 2] = 0, len(template.before)
    starts[:, 4] = len(template.before) + len(template.between)
    starts[:, 1] = len(marks) + table.offsets[first]
    starts[:, 3] = len(marks) + table.offsets[second] + (0 if window is None else window.start)
    chosen = _ragged(starts.ravel(), lengths.ravel())
    in_table = chosen >= len(marks)
    tokens = np.where(
        in_table,
        table.tokens[np.maximum(chosen - len(marks), 0)] if len(table.tokens) else 0,
        marks[np.where(in_table, 0, chosen)],
    )
    parts = np.repeat(np.tile(np.arange(5), len(first)), lengths.ravel())
    segments = np.array(template.segments)[parts]
    totals = lengths.sum(1)
    ends = np.cumsum(totals)
    owners = np.repeat(np.arange(len(first)), totals)
    arrays = (tokens, segments, np.arange(ends[-1]) - (ends - totals)[owners], owners)
    on = [
        torch.from_numpy(array.astype(np.int64)).to(device, non_blocking=True) for array in arrays
    ]
    return Packed(
        on[0],
        on[1],
        on[2],
        on[3],
        torch.from_numpy(np.concatenate([[0], ends]).astype(np.int32)).to(device),
        torch.from_numpy(lengths[:, :3].sum(1)).to(device),
        torch.from_numpy(parts == 3).to(device),
        int(totals.max()),
        template.padding,
        template.has_segments,
    )


def _ragged(starts: Rows, lengths: Rows) -> Rows:
    """start, start + 1, … for `length` places, one run after another."""
    ends = np.cumsum(lengths)
    found: Rows = np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
    return found
