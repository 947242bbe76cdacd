"""
BERT's layers over packed tokens when nothing is to be learned any more.

What can be made ready once is: query, key and value lie side by side in one matrix, all in the
precision they run in. On a GPU the product before the gelu applies it as it writes (by tanh, well
within what bfloat16 rounds away), so that the widest tensor of a layer moves through memory once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from askline.training.packing import PackedBatch, attend_padded, varlen_attention

__all__ = [
    "FrozenClassifier",
    "FrozenEmbedding",
    "FrozenLayer",
    "Sequences",
    "means",
]


_Norm = Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]


class Sequences(NamedTuple):
    """The positions of packed sequences."""

    starts: Tensor  # (sequences + 1,) int32
    longest: int

    def owners_and_places(self) -> tuple[Tensor, Tensor]:
        """Of each token: its sequence, and its place in it."""
        counts = self.starts.diff().long()
        owners = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
        return owners, torch.arange(len(owners), device=counts.device) - self.starts[owners]


class _Affine(NamedTuple):
    turned: Tensor  # (inputs, outputs)
    bias: Tensor

    @classmethod
    def of(cls, *layers: nn.Linear, kind: torch.dtype) -> _Affine:
        """One map that gives what these give, side by side."""
        weight = torch.cat([layer.weight.detach() for layer in layers]).to(kind)
        return cls(weight.t(), torch.cat([layer.bias.detach() for layer in layers]).to(kind))

    def __call__(self, states: Tensor) -> Tensor:
        return torch.addmm(self.bias, states, self.turned)

    def with_gelu(self, states: Tensor) -> Tensor:
        if states.device.type == "cuda":
            return torch._addmm_activation(self.bias, states, self.turned, use_gelu=True)
        return F.gelu(self(states))


class _Scale(NamedTuple):
    weight: Tensor
    bias: Tensor
    epsilon: float

    @classmethod
    def of(cls, norm: nn.LayerNorm, kind: torch.dtype) -> _Scale:
        return cls(norm.weight.detach().to(kind), norm.bias.detach().to(kind), norm.eps)


def _added_norm(
    states: Tensor, more: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    return F.layer_norm(states + more, weight.shape, weight, bias, epsilon)


def _embedded(
    words: Tensor, places: Tensor, tokens: Tensor, at: Tensor, norm: _Scale, kind: torch.dtype
) -> Tensor:
    states = words[tokens] + places[at]
    scaled = F.layer_norm(states, norm.weight.shape, norm.weight, norm.bias, norm.epsilon)
    return scaled.to(kind)


@dataclass(frozen=True, slots=True, eq=False)
class FrozenEmbedding:
    """What tokens are before the first layer; added up in float32."""

    words: Tensor
    places: Tensor
    """(kinds * positions, width): what a place adds to a token, for each kind of text."""
    positions: int
    norm: _Scale
    kind: torch.dtype
    compute: Callable[..., Tensor] = _embedded

    @classmethod
    def of(cls, table: Any, kind: torch.dtype, *, compiled: bool = False) -> FrozenEmbedding:
        """From a BERT's `embeddings`."""
        kinds, places = table.token_type_embeddings.weight, table.position_embeddings.weight
        return cls(
            table.word_embeddings.weight.detach().float(),
            (kinds[:, None] + places[None]).detach().float().flatten(0, 1),
            len(places),
            _Scale.of(table.LayerNorm, torch.float32),
            kind,
            torch.compile(_embedded) if compiled else _embedded,
        )

    def __call__(self, batch: PackedBatch) -> Tensor:
        """(tokens, width)"""
        at = batch.positions + self.positions * batch.segments
        return self.compute(self.words, self.places, batch.tokens, at, self.norm, self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class FrozenLayer:
    """One layer, ready to run: (tokens, width) → (tokens, width)."""

    joint: _Affine
    mixed: _Affine
    middle: _Scale
    inner: _Affine
    outer: _Affine
    last: _Scale
    heads: int
    activate: Callable[[Tensor], Tensor] | None
    """The activation, if it is not GELU."""
    added_norm: _Norm = _added_norm

    @classmethod
    def of(cls, layer: Any, kind: torch.dtype, *, compiled: bool = False) -> FrozenLayer:
        """`compiled` makes one kernel of each sum and its norm; the first batches wait for it."""
        own, act = layer.attention.self, layer.intermediate.intermediate_act_fn
        plain = type(act).__name__ == "GELUActivation"
        return cls(
            _Affine.of(own.query, own.key, own.value, kind=kind),
            _Affine.of(layer.attention.output.dense, kind=kind),
            _Scale.of(layer.attention.output.LayerNorm, kind),
            _Affine.of(layer.intermediate.dense, kind=kind),
            _Affine.of(layer.output.dense, kind=kind),
            _Scale.of(layer.output.LayerNorm, kind),
            own.num_attention_heads,
            None if plain else act,
            torch.compile(_added_norm) if compiled else _added_norm,
        )

    def __call__(self, states: Tensor, where: Sequences) -> Tensor:
        """Each token over the tokens of its own sequence."""
        # Nothing wide has a name here: it would be held to the end, and is free as soon as read.
        states = self.added_norm(states, self.mixed(self._context(states, where)), *self.middle)
        return self.added_norm(states, self.outer(self._widened(states)), *self.last)

    def _context(self, states: Tensor, where: Sequences) -> Tensor:
        heads = self.joint(states).view(len(states), 3, self.heads, -1)
        return _attend(heads, where).reshape(states.shape)

    def _widened(self, states: Tensor) -> Tensor:
        """(tokens, width) → (tokens, inner)"""
        if self.activate is None:
            return self.inner.with_gelu(states)
        return self.activate(self.inner(states))


@dataclass(frozen=True, slots=True, eq=False)
class FrozenClassifier:
    """A classifier over what it reads of each sequence: (sequences, width) → (sequences,)."""

    hidden: Sequence[_Affine]
    out: _Affine

    @classmethod
    def of(cls, hidden: Iterable[nn.Linear], out: nn.Linear, kind: torch.dtype) -> FrozenClassifier:
        """The last sum is made in float32, so that no two scores fall together."""
        return cls(
            [_Affine.of(own, kind=kind) for own in hidden], _Affine.of(out, kind=torch.float32)
        )

    def __call__(self, read: Tensor) -> Tensor:
        for layer in self.hidden:
            read = torch.tanh(layer(read.to(layer.bias.dtype)))
        return self.out(read.float())[:, 0]


def _attend(heads: Tensor, where: Sequences) -> Tensor:
    """(tokens, 3, heads, size) → (tokens, heads, size)"""
    if heads.device.type == "cuda" and varlen_attention is not None:
        # The three are views into one tensor: the kernel takes strides, nothing is copied.
        query, key, value = heads.unbind(1)
        found: Tensor = varlen_attention(
            query, key, value, where.starts, where.starts, where.longest, where.longest
        )
        return found
    return attend_padded(heads, where.owners_and_places(), len(where.starts) - 1, where.longest)


def means(states: Tensor, where: Sequences) -> Tensor:
    """(sequences, width) the mean over each sequence's tokens, added up in float32."""
    rows = torch.arange(len(states), device=states.device, dtype=torch.int32)
    return F.embedding_bag(rows, states, where.starts[:-1], mode="mean").float()
