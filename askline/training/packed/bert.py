"""
BERT's layers over packed tokens, with the Hugging Face module's own parameters.

Attention is the only place where sequences must be told apart: on a GPU a kernel for packed
sequences does it, elsewhere they are padded for that one step. Matrix products run in bfloat16 on a
GPU and in float32 on a CPU; the parameters stay as they are. Attention weights are not dropped out
in training, hidden states are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from .packing import Packed

varlen_attention: Callable[..., Any] | None
try:
    from torch.nn.attention.varlen import varlen_attn as varlen_attention
except ImportError:  # torch before 2.10
    varlen_attention = None

__all__ = ["attend_padded", "bert_embed", "bert_layer", "is_bert", "varlen_attention"]


def is_bert(encoder: nn.Module) -> bool:
    """Whether an encoder is one that the functions here can run."""
    config: Any = encoder.config
    kind = getattr(config, "position_embedding_type", None) or "absolute"
    return type(encoder).__name__ == "BertModel" and kind == "absolute"


def bert_embed(encoder: Any, batch: Packed) -> Tensor:
    """(tokens, width)"""
    table = encoder.embeddings
    states = table.word_embeddings(batch.tokens) + table.position_embeddings(batch.places)
    states = states + table.token_type_embeddings(batch.segments)
    if states.device.type == "cuda":
        states = states.bfloat16()
    return _dropped(_norm(states, table.LayerNorm), table.dropout)


def bert_layer(layer: Any, states: Tensor, batch: Packed) -> Tensor:
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
        states + _dropped(_linear(mixed, output.dense), output.dropout), output.LayerNorm
    )
    inner = layer.intermediate.intermediate_act_fn(_linear(states, layer.intermediate.dense))
    outer = _dropped(_linear(inner, layer.output.dense), layer.output.dropout)
    return _norm(states + outer, layer.output.LayerNorm)


def _attend(heads: Tensor, batch: Packed) -> Tensor:
    """(tokens, 3, heads, size) → (tokens, heads, size)"""
    if heads.device.type == "cuda" and varlen_attention is not None:
        query, key, value = (part.contiguous() for part in heads.unbind(1))
        found: Tensor = varlen_attention(
            query, key, value, batch.starts, batch.starts, batch.longest, batch.longest
        )
        return found
    return attend_padded(heads, (batch.owners, batch.places), len(batch), batch.longest)


def attend_padded(
    heads: Tensor, where: tuple[Tensor, Tensor], sequences: int, longest: int
) -> Tensor:
    """The same on any device; `where` has each token's sequence and its place in it."""
    padded = heads.new_zeros(sequences, longest, *heads.shape[1:])
    padded = padded.index_put(where, heads)
    inside = torch.zeros(sequences, longest, dtype=torch.bool, device=heads.device)
    inside[where] = True
    query, key, value = padded.permute(2, 0, 3, 1, 4)  # each (sequences, heads, longest, size)
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=inside[:, None, None])
    return mixed.transpose(1, 2)[where]


def _linear(states: Tensor, layer: nn.Linear) -> Tensor:
    return F.linear(states, layer.weight.to(states.dtype), layer.bias.to(states.dtype))


def _norm(states: Tensor, layer: nn.LayerNorm) -> Tensor:
    weight, bias = layer.weight.to(states.dtype), layer.bias.to(states.dtype)
    return F.layer_norm(states, layer.normalized_shape, weight, bias, layer.eps)


def _dropped(states: Tensor, layer: nn.Dropout) -> Tensor:
    return F.dropout(states, layer.p, layer.training)
