"""
What a folder holds of a BERT encoder: its shape, and its tensors, float or int8.

Every dense layer is either float (`weight`, `bias`) or int8 (`weight` in int8, a `scale` for each
output, `bias`). An int8 layer reads its input in 8 bits too, by the input's `scale` and `zero`;
where there is `smooth`, each channel of the input is multiplied by it first, and the weights have
been divided by it.
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
    "DENSE",
    "EncoderShape",
    "check_stored",
    "dense_shapes",
    "renamed",
]

_SHOWN = 20  # misfits named in an error

DENSE = {
    "query": "input",
    "key": "input",
    "value": "input",
    "attended": "context",
    "inner": "middle",
    "outer": "activated",
}
"""The dense layers inside a layer of the encoder, and what each of them reads."""

_PARTS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "attended",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "inner",
    "output.dense": "outer",
    "output.LayerNorm": "output_norm",
}
_EMBEDDINGS = {
    "word_embeddings": "words",
    "position_embeddings": "positions",
    "token_type_embeddings": "kinds",
    "LayerNorm": "norm",
}


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """A BERT encoder: token, position and kind embeddings, norms behind the sums, erf gelu."""

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    norm_epsilon: float = 1e-12
    kinds: int = 2
    """Kinds of tokens: the first text's, the second's; RoBERTa and its kin have one alone."""
    first_position: int = 0
    """RoBERTa and its kin count positions from behind their padding."""

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> EncoderShape:
        """As a folder's config has it; raises KeyError and TypeError for what is no shape."""
        known = [one.name for one in fields(cls)]
        optional = ("norm_epsilon", "kinds", "first_position")
        return cls(**{name: entry[name] for name in known if name in entry or name not in optional})

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every float tensor."""
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
        """Of one layer."""
        shapes: dict[str, tuple[int, ...]] = {}
        for dense in DENSE:
            outputs = self.inner if dense == "inner" else self.width
            inputs = self.inner if dense == "outer" else self.width
            shapes |= dense_shapes(f"{stem}.{dense}", outputs, inputs)
        for norm in ("attention_norm", "output_norm"):
            shapes |= {f"{stem}.{norm}.weight": (self.width,), f"{stem}.{norm}.bias": (self.width,)}
        return shapes

    def problems(self) -> Iterable[str]:
        """What is unsound about the sizes."""
        for name, size in asdict(self).items():
            least = 0 if name == "first_position" else 1
            if name != "norm_epsilon" and (not isinstance(size, int) or size < least):
                yield f"{name} must be a whole number of at least {least}, got {size!r}"
                return
        if self.width % self.heads:
            yield f"width must be a multiple of heads, got {self.width} and {self.heads}"


def dense_shapes(stem: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    """Of an affine map."""
    return {f"{stem}.weight": (outputs, inputs), f"{stem}.bias": (outputs,)}


def check_stored(
    shapes: Mapping[str, tuple[int, ...]],
    tensors: Mapping[str, NDArray[Any]],
    *,
    layers: int,
    path: str | PathLike[str],
) -> None:
    """Refuse weights that do not fit, naming the first twenty; what is int8 needs its steps."""
    wanted = {**shapes}
    for name in [name for name in shapes if name.endswith(".weight")]:
        if _is_int8(tensors.get(name)):
            wanted[f"{name.removesuffix('.weight')}.scale"] = (shapes[name][0],)
    for layer in range(layers):
        for dense, point in DENSE.items():
            weight = f"layers.{layer}.{dense}.weight"
            if _is_int8(tensors.get(weight)):
                stem = f"layers.{layer}.{point}"
                wanted |= {f"{stem}.scale": (), f"{stem}.zero": ()}
                if f"{stem}.smooth" in tensors:
                    wanted[f"{stem}.smooth"] = (shapes[weight][1],)
    wrong = [
        f"{name} must be {wanted.get(name, 'absent')}, "
        f"got {tensors[name].shape if name in tensors else 'none'}"
        for name in sorted(wanted.keys() | tensors.keys())
        if name not in tensors or wanted.get(name) != tensors[name].shape
    ]
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        shown = "; ".join(wrong[:_SHOWN])
        raise ModelError(f"The weights in {path} do not fit its config: {shown}{more}.")


def renamed(
    found: Mapping[str, NDArray[np.float32]], layers: int
) -> dict[str, NDArray[np.float32]]:
    """The encoder's tensors out of Hugging Face's names; all others are left out."""
    names = {f"embeddings.{theirs}": ours for theirs, ours in _EMBEDDINGS.items()} | {
        f"encoder.layer.{layer}.{theirs}": f"layers.{layer}.{ours}"
        for layer in range(layers)
        for theirs, ours in _PARTS.items()
    }
    ours: dict[str, NDArray[np.float32]] = {}
    for name, value in found.items():
        stem, _, kind = name.removeprefix("bert.").rpartition(".")
        if stem in names:
            ours[f"{names[stem]}.{kind}"] = value
    return ours


def _is_int8(value: NDArray[Any] | None) -> bool:
    return value is not None and value.dtype == np.int8
