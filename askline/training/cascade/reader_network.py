"""The reader in torch: the layers of a cascade, each with a trained low-rank difference."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...errors import InputError
from ...models.cascade_config import CascadeConfig
from ...models.encoder_config import DENSE_INPUTS
from ..packing import PackedBatch, bert_layer

__all__ = ["ADAPTER_DROPOUT", "AdapterReader"]


ADAPTER_DROPOUT = 0.1


class AdapterReader(nn.Module):
    """(question, text) pairs, packed → (tokens, 2) start and end logits."""

    def __init__(self, config: CascadeConfig, tensors: Mapping[str, NDArray[np.float32]]) -> None:
        """
        Start from the adapter of a folder or, if it has none, from its encoder.

        `tensors` are those of the folder in float. `config.adapter` says what is trained: low-rank
        matrices, and the biases and norms of the same layers.
        """
        super().__init__()
        if config.adapter is None or not config.reader:
            raise InputError("Expected a config of a reader with an adapter, got one without.")
        self.config, self.adapter = config, config.adapter
        self.frozen, self.own = nn.ParameterDict(), nn.ParameterDict()
        for name, value in tensors.items():
            if not name.startswith(("classifiers.", "adapter.", "context.")):
                self.frozen[_key(name)] = nn.Parameter(torch.tensor(value), requires_grad=False)
        for name, shape in config.shapes().items():
            if name.startswith("adapter.") and not name.endswith((".scale", ".zero")):
                self.own[_key(name)] = nn.Parameter(_initial_value(name, shape, tensors))
        for kind in ("weight", "bias"):
            self.own[f"reader/{kind}"] = nn.Parameter(self.frozen.pop(f"reader/{kind}").clone())

    def low_rank_parameters(self) -> list[nn.Parameter]:
        """The matrices whose products are added to the frozen weights."""
        return [value for name, value in self.own.items() if name.endswith(_LOW_RANK)]

    def other_parameters(self) -> list[nn.Parameter]:
        """Everything else that is trained: biases, norms and the output layer."""
        return [value for name, value in self.own.items() if not name.endswith(_LOW_RANK)]

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The trained tensors by the names of the model folder."""
        return {
            name.replace("/", "."): value.detach().float().cpu().numpy().copy()
            for name, value in self.own.items()
        }

    def forward(self, batch: PackedBatch) -> Tensor:
        with torch.no_grad():
            states = self._embed(batch)
            for layer in range(self.adapter.first):
                states = bert_layer(self._layer(layer, dropout=0.0), states, batch)
        for layer in range(self.adapter.first, self.config.encoder.layers):
            states = bert_layer(self._layer(layer, dropout=ADAPTER_DROPOUT), states, batch)
        return F.linear(states.float(), self.own["reader/weight"], self.own["reader/bias"])

    def _embed(self, batch: PackedBatch) -> Tensor:
        """(tokens, width)"""
        table, epsilon = self.frozen, self.config.encoder.norm_epsilon
        states = table["words/weight"][batch.tokens] + table["positions/weight"][batch.positions]
        states = states + table["kinds/weight"][batch.segments]
        width = (self.config.encoder.width,)
        states = F.layer_norm(states, width, table["norm/weight"], table["norm/bias"], epsilon)
        return states.bfloat16() if states.device.type == "cuda" else states

    def _layer(self, number: int, *, dropout: float) -> Any:
        """A layer with its current weights, in the structure that `bert_layer` expects."""
        dropped = SimpleNamespace(p=dropout, training=self.training)
        parts = {name: self._dense(f"layers.{number}.{name}") for name in DENSE_INPUTS}
        norms = [self._norm(f"layers.{number}.{name}_norm") for name in ("attention", "output")]
        own = SimpleNamespace(**parts, num_attention_heads=self.config.encoder.heads)
        output = SimpleNamespace(dense=parts["attended"], LayerNorm=norms[0], dropout=dropped)
        return SimpleNamespace(
            attention=SimpleNamespace(self=own, output=output),
            intermediate=SimpleNamespace(dense=parts["inner"], intermediate_act_fn=F.gelu),
            output=SimpleNamespace(dense=parts["outer"], LayerNorm=norms[1], dropout=dropped),
        )

    def _dense(self, name: str) -> SimpleNamespace:
        weight, bias = self._current(f"{name}.weight"), self._current(f"{name}.bias")
        stem = _key(f"adapter.{name}")
        if f"{stem}/up/weight" in self.own:
            weight = weight + self.own[f"{stem}/up/weight"].T @ self.own[f"{stem}/down/weight"]
        return SimpleNamespace(weight=weight, bias=bias)

    def _norm(self, name: str) -> SimpleNamespace:
        weight, bias = self._current(f"{name}.weight"), self._current(f"{name}.bias")
        width, epsilon = (self.config.encoder.width,), self.config.encoder.norm_epsilon
        return SimpleNamespace(weight=weight, bias=bias, normalized_shape=width, eps=epsilon)

    def _current(self, name: str) -> Tensor:
        own = _key(f"adapter.{name}")
        found: Tensor = self.own[own] if own in self.own else self.frozen[_key(name)]
        return found


_LOW_RANK = ("/up/weight", "/down/weight")


def _key(name: str) -> str:
    """A tensor name without dots, which torch does not allow in parameter names."""
    return name.replace(".", "/")


def _initial_value(
    name: str, shape: tuple[int, ...], tensors: Mapping[str, NDArray[np.float32]]
) -> Tensor:
    """Of two new low-rank matrices, one is random and the other zero: no difference yet."""
    if name in tensors:
        return torch.from_numpy(tensors[name].copy())
    if name.endswith(".down.weight"):
        return torch.randn(shape).mul_((2 / shape[1]) ** 0.5)
    if name.endswith(".up.weight"):
        return torch.zeros(shape)
    return torch.from_numpy(tensors[name.removeprefix("adapter.")].copy())
