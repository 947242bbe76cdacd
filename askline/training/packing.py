"""
Packed (variable-length) batches: sequences end to end without padding, and BERT layers over them.

A batch that is padded to its longest sentence is half padding. In a packed batch every token is
real; encoders that need padding get the padded form of the same batch.

Only attention has to keep the sequences apart: on a GPU by a kernel for variable-length sequences,
elsewhere by padding for that one operation. Matrix products run in bfloat16 on a GPU and in float32
on a CPU; the parameters are those of the Hugging Face module, unchanged. In training, hidden states
have dropout and attention weights do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..errors import ModelError

__all__ = [
    "PackedBatch",
    "PairTemplate",
    "TokenRange",
    "TokenTable",
    "attend_padded",
    "bert_embed",
    "bert_layer",
    "is_bert",
    "pack",
    "varlen_attention",
]


@dataclass(frozen=True, slots=True, eq=False)
class PairTemplate:
    """How a tokenizer joins two texts: the special tokens and the token type ids."""

    before: NDArray[np.int32]
    between: NDArray[np.int32]
    after: NDArray[np.int32]
    segments: tuple[int, int, int, int, int]
    """Token type ids of `before`, first text, `between`, second text and `after`; 0 if unused."""
    has_segments: bool
    padding: int

    @classmethod
    def of(cls, tokenizer: Any) -> PairTemplate:
        """The template of a tokenizer, from one encoded pair."""
        found = tokenizer("a", "b")
        owners = found.sequence_ids(0)
        if 0 not in owners or 1 not in owners:
            raise ModelError(
                "The tokenizer must know the words 'a' and 'b' to show how it joins texts."
            )
        tokens = np.array(found["input_ids"], np.int32)
        first, second = owners.index(0), owners.index(1)
        first_end = first + owners.count(0)
        second_end = second + owners.count(1)
        kinds = found.get("token_type_ids") or [0] * len(tokens)
        parts = ((0, first), (first, first_end), (first_end, second), (second, second_end))
        segments = [kinds[start] if start < end else 0 for start, end in parts]
        return cls(
            tokens[:first],
            tokens[first_end:second],
            tokens[second_end:],
            (segments[0], segments[1], segments[2], segments[3], kinds[-1]),
            "token_type_ids" in found,
            tokenizer.pad_token_id or 0,
        )

    @property
    def extra(self) -> int:
        """The number of special tokens per pair."""
        return len(self.before) + len(self.between) + len(self.after)


Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """The token ids of texts, each tokenized once, without special tokens."""

    tokens: NDArray[np.int32]
    offsets: NDArray[np.int64]
    """Text i has the tokens from offsets[i] up to offsets[i + 1]."""

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: Any) -> TokenTable:
        """An empty text has no tokens."""
        found = tokenizer(
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
        """The texts of both tables; those of the other are numbered after these."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        return TokenTable(np.concatenate([self.tokens, other.tokens]), offsets)

    def lengths(self, rows: Rows) -> Rows:
        """The number of tokens of each of these texts."""
        found: Rows = self.offsets[rows + 1] - self.offsets[rows]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class TokenRange:
    """A part of each second text: `length` tokens from `start`."""

    start: Rows
    length: Rows


@dataclass(frozen=True, slots=True, eq=False)
class PackedBatch:
    """Sequences end to end, all tensors on one device."""

    tokens: Tensor  # (tokens,)
    segments: Tensor  # (tokens,)
    positions: Tensor  # (tokens,) position within its sequence
    owners: Tensor  # (tokens,) index of its sequence
    starts: Tensor  # (sequences + 1,) int32
    second: Tensor  # (sequences,) position where the second text starts
    in_second: Tensor  # (tokens,) whether a token is in the second text
    longest: int
    padding: int
    has_segments: bool

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.starts) - 1

    def padded(self) -> dict[str, Tensor]:
        """The same batch, padded, as the inputs of any Hugging Face encoder."""
        shape = (len(self), self.longest)
        tokens = self.tokens.new_full(shape, self.padding)
        mask = self.tokens.new_zeros(shape)
        where = (self.owners, self.positions)
        tokens[where], mask[where] = self.tokens, torch.ones_like(self.tokens)
        batch = {"input_ids": tokens, "attention_mask": mask}
        if self.has_segments:
            segments = self.tokens.new_zeros(shape)
            segments[where] = self.segments
            batch["token_type_ids"] = segments
        return batch

    def keep(self, rows: Tensor) -> tuple[PackedBatch, Tensor]:
        """Only these sequences, in this order, and the indices of their tokens."""
        counts = (self.starts[1:] - self.starts[:-1])[rows].long()
        ends = counts.cumsum(0)
        shift = self.starts[:-1][rows].long() - (ends - counts)
        chosen = torch.repeat_interleave(shift, counts) + torch.arange(
            int(ends[-1]) if len(rows) else 0, device=rows.device
        )
        starts = torch.cat([ends.new_zeros(1), ends]).int()
        owners = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), counts)
        part = PackedBatch(
            self.tokens[chosen],
            self.segments[chosen],
            self.positions[chosen],
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
    window: TokenRange | None = None,
    device: torch.device | str = "cpu",
) -> PackedBatch:
    """
    Pack pairs of texts of a table. Texts that are too long are truncated at the end.

    `window` selects a part of each second text, for texts longer than the encoder's maximum.
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
    chosen = _concatenated_ranges(starts.ravel(), lengths.ravel())
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
    return PackedBatch(
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


def _concatenated_ranges(starts: Rows, lengths: Rows) -> Rows:
    """The concatenation of range(start, start + length) for all starts and lengths."""
    ends = np.cumsum(lengths)
    found: Rows = np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
    return found


varlen_attention: Callable[..., Any] | None
try:
    from torch.nn.attention.varlen import varlen_attn as varlen_attention
except ImportError:  # torch before 2.10
    varlen_attention = None


def is_bert(encoder: nn.Module) -> bool:
    """Whether `bert_embed` and `bert_layer` can run an encoder."""
    config: Any = encoder.config
    kind = getattr(config, "position_embedding_type", None) or "absolute"
    return type(encoder).__name__ == "BertModel" and kind == "absolute"


def bert_embed(encoder: Any, batch: PackedBatch) -> Tensor:
    """(tokens, width)"""
    table = encoder.embeddings
    states = table.word_embeddings(batch.tokens) + table.position_embeddings(batch.positions)
    states = states + table.token_type_embeddings(batch.segments)
    if states.device.type == "cuda":
        states = states.bfloat16()
    return _dropout(_norm(states, table.LayerNorm), table.dropout)


def bert_layer(layer: Any, states: Tensor, batch: PackedBatch) -> Tensor:
    """(tokens, width) → (tokens, width)"""
    own = layer.attention.self
    projections = [own.query, own.key, own.value]
    weight = torch.cat([part.weight for part in projections]).to(states.dtype)
    bias = torch.cat([part.bias for part in projections]).to(states.dtype)
    joint = F.linear(states, weight, bias)  # (tokens, 3 * width)
    heads = joint.view(len(states), 3, own.num_attention_heads, -1)
    mixed = _attend(heads, batch).reshape(states.shape)
    output = layer.attention.output
    states = _norm(
        states + _dropout(_linear(mixed, output.dense), output.dropout), output.LayerNorm
    )
    inner = layer.intermediate.intermediate_act_fn(_linear(states, layer.intermediate.dense))
    outer = _dropout(_linear(inner, layer.output.dense), layer.output.dropout)
    return _norm(states + outer, layer.output.LayerNorm)


def _attend(heads: Tensor, batch: PackedBatch) -> Tensor:
    """(tokens, 3, heads, size) → (tokens, heads, size)"""
    if heads.device.type == "cuda" and varlen_attention is not None:
        query, key, value = (part.contiguous() for part in heads.unbind(1))
        found: Tensor = varlen_attention(
            query, key, value, batch.starts, batch.starts, batch.longest, batch.longest
        )
        return found
    return attend_padded(heads, (batch.owners, batch.positions), len(batch), batch.longest)


def attend_padded(
    heads: Tensor, where: tuple[Tensor, Tensor], sequences: int, longest: int
) -> Tensor:
    """Attention on any device; `where` has the sequence and the position of each token."""
    padded = heads.new_zeros(sequences, longest, *heads.shape[1:])
    padded = padded.index_put(where, heads)
    mask = torch.zeros(sequences, longest, dtype=torch.bool, device=heads.device)
    mask[where] = True
    query, key, value = padded.permute(2, 0, 3, 1, 4)  # each (sequences, heads, longest, size)
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
    return mixed.transpose(1, 2)[where]


def _linear(states: Tensor, layer: nn.Linear) -> Tensor:
    return F.linear(states, layer.weight.to(states.dtype), layer.bias.to(states.dtype))


def _norm(states: Tensor, layer: nn.LayerNorm) -> Tensor:
    weight, bias = layer.weight.to(states.dtype), layer.bias.to(states.dtype)
    return F.layer_norm(states, layer.normalized_shape, weight, bias, layer.eps)


def _dropout(states: Tensor, layer: nn.Dropout) -> Tensor:
    return F.dropout(states, layer.p, layer.training)
