"""
What a cascade's runtime folder holds: the encoder's shape, where its classifiers stand, tensors.

Every dense layer is either float (`weight`, `bias`) or int8 (`weight` in int8, a `scale` for each
output, `bias`). An int8 layer reads its input in 8 bits too, by the input's `scale` and `zero`;
where there is `smooth`, each channel of the input is multiplied by it first, and the weights have
been divided by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError

__all__ = ["DENSE", "CascadeLayout", "EncoderShape", "Head", "Precision", "check_tensors"]

Head = Literal["first", "mean"]
Precision = Literal["int8", "float32"]

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


@dataclass(frozen=True, slots=True)
class CascadeLayout:
    """The encoder and what stands on it."""

    encoder: EncoderShape
    depths: tuple[int, ...]
    head: Head = "first"
    reader: bool = False
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ModelError(f"A cascade's layout is wrong: {'; '.join(problems)}.")

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, path: Path) -> CascadeLayout:
        """As a folder's `config.json` has it."""
        try:
            encoder = EncoderShape(
                **{one.name: config["encoder"][one.name] for one in fields(EncoderShape)}
            )
            return cls(
                encoder,
                tuple(config["depths"]),
                config["head"],
                config["reader"],
                config["precision"],
            )
        except (KeyError, TypeError) as error:
            raise ModelError(f"{path} does not describe a cascade: {error!r}.") from error

    def to_config(self) -> dict[str, Any]:
        """The entries of `config.json`."""
        return asdict(self) | {"kind": "cascade", "depths": list(self.depths)}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every float tensor."""
        own = self.encoder
        shapes: dict[str, tuple[int, ...]] = {
            "words.weight": (own.vocabulary, own.width),
            "positions.weight": (own.positions, own.width),
            "kinds.weight": (2, own.width),
            "norm.weight": (own.width,),
            "norm.bias": (own.width,),
        }
        for layer in range(own.layers):
            for dense in DENSE:
                outputs = own.inner if dense == "inner" else own.width
                inputs = own.inner if dense == "outer" else own.width
                shapes |= _dense(f"layers.{layer}.{dense}", outputs, inputs)
            for norm in ("attention_norm", "output_norm"):
                shapes[f"layers.{layer}.{norm}.weight"] = (own.width,)
                shapes[f"layers.{layer}.{norm}.bias"] = (own.width,)
        for depth in self.depths:
            for hidden in self.hidden(depth):
                shapes |= _dense(hidden, own.width, own.width)
            shapes |= _dense(f"classifiers.{depth}.out", 1, own.width)
        return shapes | (_dense("reader", 2, own.width) if self.reader else {})

    def hidden(self, depth: int) -> list[str]:
        """The tanh layers of the classifier at that depth."""
        stem = f"classifiers.{depth}"
        if self.head == "first":
            return [f"{stem}.dense"]
        return [f"{stem}.layers.{number}" for number in range(3)]

    def _problems(self) -> Iterable[str]:
        own, sizes = self.encoder, asdict(self.encoder)
        for name, size in sizes.items():
            if name != "norm_epsilon" and (not isinstance(size, int) or size < 1):
                yield f"{name} must be a whole number of at least 1, got {size!r}"
                return
        if own.width % own.heads:
            yield f"width must be a multiple of heads, got {own.width} and {own.heads}"
        if not self.depths or list(self.depths) != sorted({*self.depths}) or self.depths[0] < 1:
            yield f"depths must ascend from 1 or more, got {list(self.depths)}"
        elif self.depths[-1] != own.layers:
            yield f"the last depth must be {own.layers}, the last layer, got {self.depths[-1]}"
        if self.head not in get_args(Head):
            yield f"head must be one of {', '.join(get_args(Head))}, got {self.head!r}"
        if self.precision not in get_args(Precision):
            known = ", ".join(get_args(Precision))
            yield f"precision must be one of {known}, got {self.precision!r}"


def check_tensors(
    layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]], *, path: Path
) -> None:
    """Refuse weights that do not fit, naming the first twenty."""
    shapes = layout.shapes()
    for name in [name for name in shapes if name.endswith(".weight")]:
        if _is_int8(tensors.get(name)):
            shapes[f"{name.removesuffix('.weight')}.scale"] = (shapes[name][0],)
    for layer in range(layout.encoder.layers):
        for dense, point in DENSE.items():
            if _is_int8(tensors.get(f"layers.{layer}.{dense}.weight")):
                stem = f"layers.{layer}.{point}"
                shapes |= {f"{stem}.scale": (), f"{stem}.zero": ()}
                if f"{stem}.smooth" in tensors:
                    shapes[f"{stem}.smooth"] = (shapes[f"layers.{layer}.{dense}.weight"][1],)
    wrong = [
        f"{name} must be {shapes.get(name, 'absent')}, "
        f"got {tensors[name].shape if name in tensors else 'none'}"
        for name in sorted(shapes.keys() | tensors.keys())
        if name not in tensors or shapes.get(name) != tensors[name].shape
    ]
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        shown = "; ".join(wrong[:_SHOWN])
        raise ModelError(f"The weights in {path} do not fit its config: {shown}{more}.")


def _is_int8(value: NDArray[Any] | None) -> bool:
    return value is not None and value.dtype == np.int8


def _dense(stem: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{stem}.weight": (outputs, inputs), f"{stem}.bias": (outputs,)}
