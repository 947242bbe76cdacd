"""
The encoder part of a model folder's `config.json`, and the check of its tensors.

A dense layer is stored either as float (`weight`, `bias`) or as int8 (`weight` in int8, one `scale`
per output, `bias`). The input of an int8 layer is quantized as well, with the input's `scale` and
`zero`. If there is a `smooth` tensor, every input channel is multiplied by it first; the weights
have been divided by it (SmoothQuant).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError

__all__ = [
    "DENSE_INPUTS",
    "EncoderConfig",
    "check_encoder_tensors",
    "dense_shapes",
]

_MAX_PROBLEMS_SHOWN = 20

DENSE_INPUTS = {
    "query": "input",
    "key": "input",
    "value": "input",
    "attended": "context",
    "inner": "middle",
    "outer": "activated",
}
"""The dense layers of an encoder layer, with the name of the activation that each one reads."""


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """
    The sizes of a BERT encoder.

    It has token, position and token-type embeddings, layer norms after the residual sums, and erf
    GELU. The field names are keys of `config.json`.
    """

    layers: int
    width: int
    """Hidden size."""
    heads: int
    inner: int
    """Size of the feed-forward layer."""
    vocabulary: int
    positions: int
    """Maximum sequence length that the position embeddings allow."""
    norm_epsilon: float = 1e-12
    kinds: int = 2
    """Number of token types: one per text of a pair; RoBERTa has a single one."""
    first_position: int = 0
    """Position of the first token; RoBERTa counts from after its padding index."""
    block: int = 0
    """
    In the layers 0, 2, 4 and so on, a token attends only to tokens of its own block. All blocks of
    a text have the same size, at most this many tokens. With 0, there are no blocks. Only the
    document encoder of a phrase model may have them, because it fills the last block.
    """

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> EncoderConfig:
        """Read the entry of a `config.json`; raises KeyError or TypeError if it is not valid."""
        names = [field.name for field in fields(cls)]
        optional = ("norm_epsilon", "kinds", "first_position", "block")
        return cls(**{name: entry[name] for name in names if name in entry or name not in optional})

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, in float."""
        shapes: dict[str, tuple[int, ...]] = {
            "words.weight": (self.vocabulary, self.width),
            "positions.weight": (self.positions, self.width),
            "kinds.weight": (self.kinds, self.width),
            "norm.weight": (self.width,),
            "norm.bias": (self.width,),
        }
        for layer in range(self.layers):
            shapes |= self.layer_shapes(f"layers.{layer}")
        return shapes

    def layer_shapes(self, stem: str) -> dict[str, tuple[int, ...]]:
        """The tensor shapes of one layer, whose names start with `stem`."""
        shapes: dict[str, tuple[int, ...]] = {}
        for dense in DENSE_INPUTS:
            outputs = self.inner if dense == "inner" else self.width
            inputs = self.inner if dense == "outer" else self.width
            shapes |= dense_shapes(f"{stem}.{dense}", outputs, inputs)
        for norm in ("attention_norm", "output_norm"):
            shapes |= {f"{stem}.{norm}.weight": (self.width,), f"{stem}.{norm}.bias": (self.width,)}
        return shapes

    def problems(self) -> Iterable[str]:
        """Describe every size that is not valid."""
        for name, size in asdict(self).items():
            least = 0 if name in ("first_position", "block") else 1
            if name != "norm_epsilon" and (not isinstance(size, int) or size < least):
                yield f"{name} must be an integer of at least {least}, got {size!r}"
                return
        if self.width % self.heads:
            yield f"width must be a multiple of heads, got {self.width} and {self.heads}"


def dense_shapes(stem: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    """The tensor shapes of a dense layer."""
    return {f"{stem}.weight": (outputs, inputs), f"{stem}.bias": (outputs,)}


def check_encoder_tensors(
    shapes: Mapping[str, tuple[int, ...]],
    tensors: Mapping[str, NDArray[Any]],
    *,
    path: str | PathLike[str],
) -> None:
    """
    Raise ModelError if tensors are missing, surplus or of another shape, naming up to twenty.

    Int8 weights must come with their scales, and those of a layer with the scales of their inputs.
    """
    expected = {**shapes}
    for name in [name for name in shapes if name.endswith(".weight")]:
        if _is_int8(tensors.get(name)):
            expected[f"{name.removesuffix('.weight')}.scale"] = (shapes[name][0],)
    for layer in [name.removesuffix(".query.weight") for name in shapes if _is_query(name)]:
        for dense, activation in DENSE_INPUTS.items():
            weight = f"{layer}.{dense}.weight"
            if _is_int8(tensors.get(weight)):
                stem = f"{layer}.{activation}"
                expected |= {f"{stem}.scale": (), f"{stem}.zero": ()}
                if f"{stem}.smooth" in tensors:
                    expected[f"{stem}.smooth"] = (shapes[weight][1],)
    problems = [
        f"{name} must be {expected.get(name, 'absent')}, "
        f"got {tensors[name].shape if name in tensors else 'none'}"
        for name in sorted(expected.keys() | tensors.keys())
        if name not in tensors or expected.get(name) != tensors[name].shape
    ]
    if problems:
        hidden = len(problems) - _MAX_PROBLEMS_SHOWN
        more = f"; and {hidden} more" if hidden > 0 else ""
        shown = "; ".join(problems[:_MAX_PROBLEMS_SHOWN])
        raise ModelError(f"The weights in {path} do not fit its config: {shown}{more}.")


def _is_query(name: str) -> bool:
    return name.endswith(".query.weight")


def _is_int8(tensor: NDArray[Any] | None) -> bool:
    return tensor is not None and tensor.dtype == np.int8
