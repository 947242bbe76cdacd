"""
The config of a cascade's model folder: an encoder, its classifiers and its span reader.

A reader without an adapter is one dense layer after the last encoder layer, and shares all layers
with the classifiers. A reader with an adapter runs the encoder again with adapted weights: to each
dense layer it adds the product of two low-rank matrices, `up` and `down` (LoRA), and its biases,
layer norms and input scales replace the encoder's. The encoder itself does not change. Such a
reader may go deeper than the last classifier, whose depth is the full depth for ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from ..errors import ModelError
from .encoder_config import DENSE_INPUTS, EncoderConfig, check_encoder_tensors, dense_shapes

__all__ = [
    "Adapter",
    "CascadeConfig",
    "Head",
    "Pooling",
    "Precision",
    "check_cascade_tensors",
    "pooling_at",
    "reader_tensors",
]

Pooling = Literal["first", "mean"]
"""The input of a classifier: the state of the first token, or the mean over all tokens."""
Head = Literal["first", "mean", "mixed"]
Precision = Literal["int8", "float32"]
_ADAPTER_PREFIX = "adapter."  # of the names of the reader's own tensors


def pooling_at(head: Head, depth: int, last: int) -> Pooling:
    """
    The pooling of the classifier at `depth`.

    `mixed` means the first token at the last depth, as in a cross-encoder, and the mean at earlier
    depths, where the first token does not represent the whole sequence yet.
    """
    if head == "mixed":
        return "first" if depth == last else "mean"
    return head


@dataclass(frozen=True, slots=True)
class Adapter:
    """A reader's low-rank adapter: its `rank`, and the first layer it changes, counted from 0."""

    first: int
    rank: int


@dataclass(frozen=True, slots=True)
class CascadeConfig:
    """The encoder and its heads. The field names are keys of `config.json`."""

    encoder: EncoderConfig
    depths: tuple[int, ...]
    """The layers that have a classifier, ascending, counted from 1."""
    head: Head = "first"
    reader: bool = False
    precision: Precision = "float32"
    adapter: Adapter | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ModelError(f"The config of a cascade is not valid: {'; '.join(problems)}.")

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, path: Path) -> CascadeConfig:
        """Read the entries of a `config.json`; `path` is for the error message."""
        try:
            return cls(
                EncoderConfig.from_entry(config["encoder"]),
                tuple(config["depths"]),
                config["head"],
                config["reader"],
                config["precision"],
                Adapter(**adapter) if (adapter := config.get("adapter")) else None,
            )
        except (KeyError, TypeError) as error:
            raise ModelError(f"{path} does not describe a cascade: {error!r}.") from error

    def to_config(self) -> dict[str, Any]:
        """The entries of `config.json`."""
        entries = asdict(self) | {"kind": "cascade", "depths": list(self.depths)}
        return {name: entry for name, entry in entries.items() if entry is not None}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, in float."""
        width, shapes = self.encoder.width, self.encoder.shapes()
        for depth in self.depths:
            for name in self.classifier_layers(depth):
                shapes |= dense_shapes(name, width, width)
            shapes |= dense_shapes(f"classifiers.{depth}.out", 1, width)
        shapes |= dense_shapes("reader", 2, width) if self.reader else {}
        return shapes | (self._adapter_shapes(self.adapter) if self.adapter else {})

    def up_to(self, depth: int) -> CascadeConfig:
        """The config without the classifiers after that depth; the layers stay, for a reader."""
        if depth not in self.depths:
            known = ", ".join(map(str, self.depths))
            raise ModelError(f"The last depth must be one of {known}, got {depth}.")
        kept = tuple(own for own in self.depths if own <= depth)
        cut_off = kept != self.depths and self.head == "mixed"
        return replace(self, depths=kept, head="mean" if cut_off else self.head)

    def pooling(self, depth: int) -> Pooling:
        """The pooling of the classifier at that depth."""
        return pooling_at(self.head, depth, self.depths[-1])

    def classifier_layers(self, depth: int) -> list[str]:
        """The names of the hidden (tanh) layers of the classifier at that depth."""
        stem = f"classifiers.{depth}"
        if self.pooling(depth) == "first":
            return [f"{stem}.dense"]
        return [f"{stem}.layers.{number}" for number in range(3)]

    def _adapter_shapes(self, adapter: Adapter) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(adapter.first, self.encoder.layers):
            stem = f"{_ADAPTER_PREFIX}layers.{layer}"
            for name, shape in self.encoder.layer_shapes(stem).items():
                if len(shape) == 1:
                    shapes[name] = shape
                    continue
                for side, size in zip(("up", "down"), shape, strict=True):
                    shapes[f"{name.removesuffix('weight')}{side}.weight"] = (adapter.rank, size)
            if self.precision == "int8":
                for activation in DENSE_INPUTS.values():
                    shapes |= {f"{stem}.{activation}.scale": (), f"{stem}.{activation}.zero": ()}
        return shapes

    def _problems(self) -> Iterable[str]:
        encoder_problems, layers = list(self.encoder.problems()), self.encoder.layers
        yield from encoder_problems
        if encoder_problems:
            return
        if not self.depths or list(self.depths) != sorted({*self.depths}) or self.depths[0] < 1:
            yield f"depths must ascend from 1 or more, got {list(self.depths)}"
        elif self.depths[-1] > layers:
            yield f"the last depth must be at most {layers}, the last layer, got {self.depths[-1]}"
        elif self.depths[-1] < layers and self.reader and not self.adapter:
            yield f"a reader without an adapter needs the last depth to be {layers}, the last layer"
        if self.head not in get_args(Head):
            yield f"head must be one of {', '.join(get_args(Head))}, got {self.head!r}"
        if self.precision not in get_args(Precision):
            known = ", ".join(get_args(Precision))
            yield f"precision must be one of {known}, got {self.precision!r}"
        if self.adapter:
            yield from self._adapter_problems(self.adapter)

    def _adapter_problems(self, adapter: Adapter) -> Iterable[str]:
        if not self.reader:
            yield "there is an adapter but no reader"
        if not isinstance(adapter.rank, int) or adapter.rank < 1:
            yield f"the adapter's rank must be an integer of at least 1, got {adapter.rank!r}"
        if adapter.first not in range(self.encoder.layers):
            last = self.encoder.layers - 1
            yield f"the adapter's first layer must be from 0 to {last}, got {adapter.first!r}"


def check_cascade_tensors(
    config: CascadeConfig, tensors: Mapping[str, NDArray[Any]], *, path: Path
) -> None:
    """Raise ModelError if the tensors do not fit the config, naming up to twenty of them."""
    check_encoder_tensors(config.shapes(), tensors, layers=config.encoder.layers, path=path)


def reader_tensors(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """All tensors, with the reader's adapted ones in place of the encoder's."""
    adapted = {
        name.removeprefix(_ADAPTER_PREFIX): tensor
        for name, tensor in tensors.items()
        if name.startswith(_ADAPTER_PREFIX)
    }
    return {**tensors, **adapted}
