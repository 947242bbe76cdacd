"""
What a cascade's runtime folder holds: an encoder, where its classifiers stand, and its reader.

A reader that is one line on the last layer shares all layers with the classifiers. One with an
adapter goes through the layers once more by weights of its own: each dense layer's are the
encoder's and a product of two thin matrices, `up` and `down`, added to them; its biases, its norms
and the steps of its inputs replace the encoder's. The encoder itself stays as it is. Such a reader
may go deeper than the last classifier, which is full depth for a ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from ..errors import ModelError
from .encoder_config import DENSE, EncoderShape, check_stored, dense_shapes

__all__ = [
    "DENSE",
    "Adapter",
    "CascadeLayout",
    "EncoderShape",
    "Head",
    "Precision",
    "Read",
    "check_tensors",
    "reading_tensors",
    "what_is_read",
]

Read = Literal["first", "mean"]
Head = Literal["first", "mean", "mixed"]
Precision = Literal["int8", "float32"]
_OWN = "adapter."  # before the names of what a reader has of its own


def what_is_read(head: Head, depth: int, last: int) -> Read:
    """
    What a classifier reads: the first token, or the mean of all.

    `mixed` is the mean before the last depth, where the first token has not gathered the sentence
    yet, and the first token at the last, as a cross-encoder has it.
    """
    if head == "mixed":
        return "first" if depth == last else "mean"
    return head


@dataclass(frozen=True, slots=True)
class Adapter:
    """What a reader changes: layers from `first` on, counted from 0, by matrices of this rank."""

    first: int
    rank: int


@dataclass(frozen=True, slots=True)
class CascadeLayout:
    """The encoder and what stands on it."""

    encoder: EncoderShape
    depths: tuple[int, ...]
    head: Head = "first"
    reader: bool = False
    precision: Precision = "float32"
    adapter: Adapter | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ModelError(f"A cascade's layout is wrong: {'; '.join(problems)}.")

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, path: Path) -> CascadeLayout:
        """As a folder's `config.json` has it."""
        try:
            return cls(
                EncoderShape.from_entry(config["encoder"]),
                tuple(config["depths"]),
                config["head"],
                config["reader"],
                config["precision"],
                Adapter(**found) if (found := config.get("adapter")) else None,
            )
        except (KeyError, TypeError) as error:
            raise ModelError(f"{path} does not describe a cascade: {error!r}.") from error

    def to_config(self) -> dict[str, Any]:
        """The entries of `config.json`."""
        entries = asdict(self) | {"kind": "cascade", "depths": list(self.depths)}
        return {name: entry for name, entry in entries.items() if entry is not None}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every float tensor."""
        own, shapes = self.encoder, self.encoder.shapes()
        for depth in self.depths:
            for hidden in self.hidden(depth):
                shapes |= dense_shapes(hidden, own.width, own.width)
            shapes |= dense_shapes(f"classifiers.{depth}.out", 1, own.width)
        shapes |= dense_shapes("reader", 2, own.width) if self.reader else {}
        return shapes | (self._adapted(self.adapter) if self.adapter else {})

    def _adapted(self, adapter: Adapter) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(adapter.first, self.encoder.layers):
            stem = f"{_OWN}layers.{layer}"
            for name, shape in self.encoder.layer_shapes(stem).items():
                if len(shape) == 1:
                    shapes[name] = shape
                    continue
                for side, size in zip(("up", "down"), shape, strict=True):
                    shapes[f"{name.removesuffix('weight')}{side}.weight"] = (adapter.rank, size)
            if self.precision == "int8":
                for point in DENSE.values():
                    shapes |= {f"{stem}.{point}.scale": (), f"{stem}.{point}.zero": ()}
        return shapes

    def up_to(self, depth: int) -> CascadeLayout:
        """Without the classifiers behind that depth; the layers stay, for a reader."""
        if depth not in self.depths:
            known = ", ".join(map(str, self.depths))
            raise ModelError(f"The last depth must be one of {known}, got {depth}.")
        kept = tuple(own for own in self.depths if own <= depth)
        cut_off = kept != self.depths and self.head == "mixed"
        return replace(self, depths=kept, head="mean" if cut_off else self.head)

    def reads(self, depth: int) -> Read:
        """What the classifier at that depth reads."""
        return what_is_read(self.head, depth, self.depths[-1])

    def hidden(self, depth: int) -> list[str]:
        """The tanh layers of the classifier at that depth."""
        stem = f"classifiers.{depth}"
        if self.reads(depth) == "first":
            return [f"{stem}.dense"]
        return [f"{stem}.layers.{number}" for number in range(3)]

    def _problems(self) -> Iterable[str]:
        unsound, layers = list(self.encoder.problems()), self.encoder.layers
        yield from unsound
        if unsound:
            return
        if not self.depths or list(self.depths) != sorted({*self.depths}) or self.depths[0] < 1:
            yield f"depths must ascend from 1 or more, got {list(self.depths)}"
        elif self.depths[-1] > layers:
            yield f"the last depth must be at most {layers}, the last layer, got {self.depths[-1]}"
        elif self.depths[-1] < layers and self.reader and not self.adapter:
            yield f"a reader on the last layer needs the last depth to be {layers}, not before it"
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
            yield f"the adapter's rank must be a whole number of at least 1, got {adapter.rank!r}"
        if adapter.first not in range(self.encoder.layers):
            last = self.encoder.layers - 1
            yield f"the adapter's first layer must be from 0 to {last}, got {adapter.first!r}"


def check_tensors(
    layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]], *, path: Path
) -> None:
    """Refuse weights that do not fit, naming the first twenty."""
    check_stored(layout.shapes(), tensors, layers=layout.encoder.layers, path=path)


def reading_tensors(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The encoder's tensors as the reader has them, under the encoder's names."""
    own = {name: one for name, one in tensors.items() if name.startswith(_OWN)}
    return {**tensors, **{name.removeprefix(_OWN): one for name, one in own.items()}}
