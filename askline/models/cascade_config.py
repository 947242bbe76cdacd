"""
The config of a cascade's model folder: an encoder, its classifiers and its span reader.

A reader without an adapter is one dense layer after the last encoder layer, and shares all layers
with the classifiers. A reader with an adapter runs the encoder again with adapted weights: to each
dense layer it adds the product of two low-rank matrices, `up` and `down` (LoRA), and its biases,
layer norms and input scales replace the encoder's. The encoder itself does not change. Such a
reader may go deeper than the last classifier, whose depth is the full depth for ranking.

A cascade with a `context` entry also ranks the sentences of passages. The adapted layers, or those
of the encoder if there is no adapter, read a window `[CLS] question [SEP] title M sentence M
sentence … [SEP]`, and at each context depth a classifier scores every sentence by the mean of its
states. The reader takes the states of the same pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from ..errors import ModelError
from .encoder_config import DENSE_INPUTS, EncoderConfig, check_encoder_tensors, dense_shapes

__all__ = [
    "Adapter",
    "CascadeConfig",
    "ContextConfig",
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
_MIN_WINDOW = 16  # tokens


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
class ContextConfig:
    """How passages become token windows, and which layers have a classifier of sentences."""

    depths: tuple[int, ...]
    """Ascending, counted from 1."""
    marker: int = 1
    """The id of the token in front of each sentence."""
    max_length: int = 384
    """Tokens of a window."""
    max_title: int = 48
    """Tokens of a title; the rest of it is not read."""
    ranking: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the ranker reads: `schedule`, `calibration`, `answer`, `threshold`; each is optional."""

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> ContextConfig:
        """Read the entry of a `config.json`; raises KeyError or TypeError if it is not valid."""
        own = {one.name for one in fields(cls)} - {"depths", "ranking"}
        sizes = {name: entry[name] for name in own if name in entry}
        others = {
            name: value for name, value in entry.items() if name not in own and name != "depths"
        }
        return cls(tuple(entry["depths"]), **sizes, ranking=others)

    def to_entry(self) -> dict[str, Any]:
        """What `from_entry` reads."""
        entries: dict[str, Any] = asdict(self) | {"depths": list(self.depths)}
        ranking: dict[str, Any] = entries.pop("ranking")
        return entries | ranking

    def problems(self, encoder: EncoderConfig) -> Iterable[str]:
        """Describe every entry that does not fit the encoder."""
        layers, longest = encoder.layers, encoder.positions
        if any(not _is_integer(depth, 1, layers) for depth in self.depths) or not self.depths:
            yield f"context depths must be from 1 to {layers}, got {list(self.depths)}"
        elif list(self.depths) != sorted({*self.depths}):
            yield f"context depths must ascend, got {list(self.depths)}"
        if not _is_integer(self.marker, 0, encoder.vocabulary - 1):
            last = encoder.vocabulary - 1
            yield f"the context marker must be a token id from 0 to {last}, got {self.marker!r}"
        if not _is_integer(self.max_length, _MIN_WINDOW, longest):
            sizes = f"{_MIN_WINDOW} to {longest}"
            yield f"the context max_length must be from {sizes}, got {self.max_length!r}"
        if not _is_integer(self.max_title, 0, longest):
            yield f"the context max_title must be from 0 to {longest}, got {self.max_title!r}"


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
    context: ContextConfig | None = None

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
                ContextConfig.from_entry(context) if (context := config.get("context")) else None,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{path} does not describe a cascade: {error!r}.") from error

    def to_config(self) -> dict[str, Any]:
        """The entries of `config.json`."""
        entries = asdict(self) | {"kind": "cascade", "depths": list(self.depths)}
        entries["context"] = self.context and self.context.to_entry()
        return {name: entry for name, entry in entries.items() if entry is not None}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, in float."""
        width, shapes = self.encoder.width, self.encoder.shapes()
        for depth in self.depths:
            for name in self.classifier_layers(depth):
                shapes |= dense_shapes(name, width, width)
            shapes |= dense_shapes(f"classifiers.{depth}.out", 1, width)
        shapes |= dense_shapes("reader", 2, width) if self.reader else {}
        for depth in self.context.depths if self.context else ():
            shapes |= dense_shapes(f"context.{depth}.dense", width, width)
            shapes |= dense_shapes(f"context.{depth}.out", 1, width)
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
                if self.context and self.precision == "int8":  # of the merged weights
                    shapes[f"{name.removesuffix('weight')}scale"] = shape[:1]
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
        elif self.depths[-1] < layers and self.reader and not (self.adapter or self.context):
            yield (
                "a reader without an adapter and a context needs the last depth to be "
                f"{layers}, the last layer"
            )
        if self.encoder.block:
            yield f"a cascade has no blocks of attention, got {self.encoder.block} tokens"
        if self.head not in get_args(Head):
            yield f"head must be one of {', '.join(get_args(Head))}, got {self.head!r}"
        if self.precision not in get_args(Precision):
            known = ", ".join(get_args(Precision))
            yield f"precision must be one of {known}, got {self.precision!r}"
        if self.adapter:
            yield from self._adapter_problems(self.adapter)
        if self.context:
            yield from self.context.problems(self.encoder)

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
    check_encoder_tensors(config.shapes(), tensors, path=path)


def reader_tensors(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """All tensors, with the reader's adapted ones in place of the encoder's."""
    adapted = {
        name.removeprefix(_ADAPTER_PREFIX): tensor
        for name, tensor in tensors.items()
        if name.startswith(_ADAPTER_PREFIX)
    }
    return {**tensors, **adapted}


def _is_integer(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
