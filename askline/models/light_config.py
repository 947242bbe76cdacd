"""
The shapes of the light networks, as saved in a model folder's config.json.

The defaults are the layouts whose parameter counts Cosinet's Table 4 prints.

The shape of the first-stage filter, as saved in a model folder's config.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, get_args

from ..errors import InputError, ModelError, UnknownNameError

__all__ = [
    "CHANNELS",
    "COVERAGE_SCALE",
    "FEATURES",
    "FIRST_STAGE_CHANNELS",
    "LIST_LAYERS",
    "MAX_CANDIDATE_WORDS",
    "Channel",
    "CompareAggregateConfig",
    "CosinetConfig",
    "FirstStageConfig",
    "LightConfig",
    "ListLayerKind",
    "RelationalCNNConfig",
    "check_channels",
]

ListLayerKind = Literal["none", "rnn", "birnn", "lstm", "bilstm"]
LIST_LAYERS: tuple[str, ...] = get_args(ListLayerKind)

_Config = TypeVar("_Config", bound="LightConfig")

Channel = Literal["related", "exact", "idf", "exact_idf"]
CHANNELS: tuple[str, ...] = get_args(Channel)
"""
related: the highest cosine to a word of the other text; exact: 1 where the other text has the very
word; idf: how rare the word is, 0 to 1; exact_idf: their product.
"""


def check_channels(names: Sequence[str]) -> None:
    """Refuse a name that is no channel."""
    for name in names:
        if name not in CHANNELS:
            raise UnknownNameError("channel", name, CHANNELS)


@dataclass(frozen=True, slots=True)
class LightConfig:
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
    def input_channels(self) -> tuple[str, ...]:
        """The channels that stand beside each word, in this order."""
        return ()

    def as_config(self) -> dict[str, Any]:
        """What `from_config` reads back, with the kind of network."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_config(cls: type[_Config], config: Mapping[str, Any]) -> _Config:
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
class CosinetConfig(LightConfig):
    """Relatedness beside the words, one convolution a side, a layer over the candidates."""

    kind: ClassVar[str] = "cosinet"

    width: int = 5
    channels: tuple[str, ...] = ("related",)
    list_layer: ListLayerKind = "none"
    list_hidden: int = 300

    def __post_init__(self) -> None:
        LightConfig.__post_init__(self)
        check_channels(self.channels)
        _check_list_layer(self.list_layer)
        if self.width % 2 == 0:
            raise InputError(f"width must be odd, got {self.width}.")

    @property
    def input_channels(self) -> tuple[str, ...]:
        """The channels that stand beside each word, in this order."""
        return self.channels

    @property
    def pair_size(self) -> int:
        """The length of what a question and a candidate make together."""
        return 2 * self.filters


@dataclass(frozen=True, slots=True)
class CompareAggregateConfig(LightConfig):
    """A gate, attention both ways, products, convolutions of several widths."""

    kind: ClassVar[str] = "compare-aggregate"

    # Unit vectors give dot products near 0, and attention to all words alike.
    vector_scale: float = 6.0
    gate: int = 300
    widths: tuple[int, ...] = (1, 2, 3, 4, 5)
    list_layer: ListLayerKind = "none"
    list_hidden: int = 600

    def __post_init__(self) -> None:
        LightConfig.__post_init__(self)
        _check_list_layer(self.list_layer)

    @property
    def pair_size(self) -> int:
        """The length of what a question and a candidate make together."""
        return 2 * len(self.widths) * self.filters


@dataclass(frozen=True, slots=True)
class RelationalCNNConfig(LightConfig):
    """Overlap marks beside the words, one convolution a side, a similarity matrix, counts."""

    kind: ClassVar[str] = "relational-cnn"

    filters: int = 100
    width: int = 5
    mark: int = 5
    """The length of the learned vector that says whether the other text has the word."""

    @property
    def input_channels(self) -> tuple[str, ...]:
        """What is marked, and what is counted."""
        return "exact", "exact_idf"

    @property
    def pair_size(self) -> int:
        """Both texts, their similarity, and the shares of words and of idf they have in common."""
        return 2 * self.filters + 1 + 4


def _check_list_layer(name: str) -> None:
    if name not in LIST_LAYERS:
        raise UnknownNameError("list layer", name, LIST_LAYERS)


MAX_CANDIDATE_WORDS = 64
"""Words of a candidate that the convolution reads; the features see them all."""

COVERAGE_SCALE = 4.0
"""What coverages, shares of 1, are multiplied by to be of the size of other inputs."""

FIRST_STAGE_CHANNELS = 4
"""Beside a candidate's word: related, exact, rarity, exact times rarity."""

_COVERAGES = 3
"""By the square of the relatedness, by its fourth power, by exact matches."""

FEATURES = (
    "covered",
    "covered_here",
    "exact_here",
    "bm25",
    "jaccard",
    "pairs",
    "length",
    "on_topic",
    "topic_mass",
    "centroid",
    "first",
    "second",
    "third",
    "feedback_words",
    "feedback_centroid",
)
"""The columns of `features`, in order."""


@dataclass(frozen=True, slots=True)
class FirstStageConfig:
    """Cosinet's convolutions beside learned weights for question words and direct features."""

    kind: ClassVar[str] = "cosinet-filter"

    dimensions: int = 128
    filters: int = 24
    width: int = 5
    terms: int = 32
    """Hidden units that weigh a question word by itself and its neighbours."""
    hidden: int = 32
    feedback: float = 1.2
    """What the second look counts for, times the logarithm of the list's size."""

    @property
    def inputs(self) -> int:
        """What the hidden layer sees: features, coverages, and [q*c ; q-c]."""
        return len(FEATURES) + _COVERAGES + 2 * self.filters

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors of a folder of this layout."""
        own, features = self.dimensions, len(FEATURES)
        return {
            "features.mean": (features,),
            "features.scale": (features,),
            "terms.weight": (self.terms, own + 2, 3),
            "terms.bias": (self.terms,),
            "weights.weight": (_COVERAGES, self.terms),
            "weights.bias": (_COVERAGES,),
            "candidate.weight": (self.filters, own + FIRST_STAGE_CHANNELS, self.width),
            "candidate.bias": (self.filters,),
            "question.weight": (self.filters, own + 1, self.width),
            "question.bias": (self.filters,),
            "hidden.weight": (self.hidden, self.inputs),
            "hidden.bias": (self.hidden,),
            "score.weight": (1, self.hidden),
            "score.bias": (1,),
            "direct.weight": (1, features),
            "direct.bias": (1,),
        }

    def as_config(self) -> dict[str, Any]:
        """What `from_config` reads back."""
        return {"kind": self.kind, "features": list(FEATURES), **asdict(self)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> FirstStageConfig:
        """The layout out of a model folder's config."""
        if config.get("features") != list(FEATURES):
            raise ModelError(
                f"The model was trained on the features {config.get('features')}, this version of "
                f"askline has {list(FEATURES)}. Train it again, or use the version that wrote it."
            )
        sizes = ("dimensions", "filters", "width", "terms", "hidden")
        wrong = [name for name in sizes if type(config.get(name)) is not int or config[name] < 1]
        if wrong:
            raise ModelError(f"config.json must give a positive number for {', '.join(wrong)}.")
        feedback = config.get("feedback", 0.0)
        if not isinstance(feedback, (int, float)) or not feedback >= 0:
            raise ModelError(f"config.json must give feedback as 0 or more, got {feedback!r}.")
        return cls(**{name: config[name] for name in sizes}, feedback=float(feedback))
