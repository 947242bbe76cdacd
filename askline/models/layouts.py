"""
The shapes of the light networks, as saved in a model folder's config.json.

The defaults are the layouts whose parameter counts Cosinet's Table 4 prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, get_args

from ..errors import InputError, ModelError, UnknownNameError
from .channels import check_channels

__all__ = [
    "LIST_LAYERS",
    "CompareAggregateLayout",
    "CosinetLayout",
    "Layout",
    "ListLayerKind",
    "RelationalCNNLayout",
]

ListLayerKind = Literal["none", "rnn", "birnn", "lstm", "bilstm"]
LIST_LAYERS: tuple[str, ...] = get_args(ListLayerKind)

_Layout = TypeVar("_Layout", bound="Layout")


@dataclass(frozen=True, slots=True)
class Layout:
    """What the light networks have in common."""

    kind: ClassVar[str]

    dimensions: int = 300
    """Of the word vectors."""
    filters: int = 300
    """Of each convolution."""
    vector_scale: float = 1.0
    """What unit-length word vectors are multiplied by before the network sees them."""

    def __post_init__(self) -> None:
        for name in ("dimensions", "filters"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.vector_scale > 0:
            raise InputError(f"vector_scale must be above 0, got {self.vector_scale}.")

    @property
    def reads(self) -> tuple[str, ...]:
        """The channels that stand beside each word, in this order."""
        return ()

    def as_config(self) -> dict[str, Any]:
        """What `from_config` reads back, with the kind of network."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_config(cls: type[_Layout], config: Mapping[str, Any]) -> _Layout:
        """The layout out of a model folder's config; entries of other parts are passed over."""
        if config.get("kind") != cls.kind:
            raise ModelError(f"Expected a {cls.kind} model, got {config.get('kind')!r}.")
        own: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for part in fields(cls)
            if (value := config.get(name := part.name)) is not None
        }
        return cls(**own)


@dataclass(frozen=True, slots=True)
class CosinetLayout(Layout):
    """Relatedness beside the words, one convolution a side, a layer over the candidates."""

    kind: ClassVar[str] = "cosinet"

    width: int = 5
    channels: tuple[str, ...] = ("related",)
    list_layer: ListLayerKind = "none"
    list_hidden: int = 300

    def __post_init__(self) -> None:
        Layout.__post_init__(self)
        check_channels(self.channels)
        _check_list_layer(self.list_layer)
        if self.width % 2 == 0:
            raise InputError(f"width must be odd, got {self.width}.")

    @property
    def reads(self) -> tuple[str, ...]:
        """The channels that stand beside each word, in this order."""
        return self.channels

    @property
    def pair(self) -> int:
        """The length of what a question and a candidate make together."""
        return 2 * self.filters


@dataclass(frozen=True, slots=True)
class CompareAggregateLayout(Layout):
    """A gate, attention both ways, products, convolutions of several widths."""

    kind: ClassVar[str] = "compare-aggregate"

    # Unit vectors give dot products near 0, and attention to all words alike.
    vector_scale: float = 6.0
    gate: int = 300
    widths: tuple[int, ...] = (1, 2, 3, 4, 5)
    list_layer: ListLayerKind = "none"
    list_hidden: int = 600

    def __post_init__(self) -> None:
        Layout.__post_init__(self)
        _check_list_layer(self.list_layer)

    @property
    def pair(self) -> int:
        """The length of what a question and a candidate make together."""
        return 2 * len(self.widths) * self.filters


@dataclass(frozen=True, slots=True)
class RelationalCNNLayout(Layout):
    """Overlap marks beside the words, one convolution a side, a similarity matrix, counts."""

    kind: ClassVar[str] = "relational-cnn"

    filters: int = 100
    width: int = 5
    mark: int = 5
    """The length of the learned vector that says whether the other text has the word."""

    @property
    def reads(self) -> tuple[str, ...]:
        """What is marked, and what is counted."""
        return "exact", "exact_idf"

    @property
    def pair(self) -> int:
        """Both texts, their similarity, and the shares of words and of idf they have in common."""
        return 2 * self.filters + 1 + 4


def _check_list_layer(name: str) -> None:
    if name not in LIST_LAYERS:
        raise UnknownNameError("list layer", name, LIST_LAYERS)
