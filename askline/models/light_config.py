"""
The configs of the light networks: Cosinet, Compare-Aggregate, relational CNN and the first stage.

A config is saved in a model folder's `config.json` under its field names. The defaults of the first
three have the parameter counts of Table 4 in the Cosinet paper.
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
"""The recurrent layer over a question's candidates."""
LIST_LAYERS: tuple[str, ...] = get_args(ListLayerKind)

Channel = Literal["related", "exact", "idf", "exact_idf"]
"""
A match channel: a further input beside a word's vector.

related: the highest cosine to a word of the other text; exact: 1 if the other text has the same
word; idf: how rare the word is, 0 to 1; exact_idf: their product.
"""
CHANNELS: tuple[str, ...] = get_args(Channel)

_Config = TypeVar("_Config", bound="LightConfig")


def check_channels(names: Sequence[str]) -> None:
    """Raise UnknownNameError for a name that is not a channel."""
    for name in names:
        if name not in CHANNELS:
            raise UnknownNameError("channel", name, CHANNELS)


@dataclass(frozen=True, slots=True)
class LightConfig:
    """What the configs of all light networks have in common."""

    kind: ClassVar[str]

    dimensions: int = 300
    """Of the word vectors."""
    filters: int = 300
    """Of each convolution."""
    vector_scale: float = 1.0
    """The length to which word vectors are scaled."""

    def __post_init__(self) -> None:
        for name in ("dimensions", "filters"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.vector_scale > 0:
            raise InputError(f"vector_scale must be above 0, got {self.vector_scale}.")

    @property
    def input_channels(self) -> tuple[str, ...]:
        """The match channels that the network reads, in this order."""
        return ()

    def to_config(self) -> dict[str, Any]:
        """The entries of `config.json`, with the kind of network."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_config(cls: type[_Config], config: Mapping[str, Any]) -> _Config:
        """Read the entries of a `config.json`; other entries are ignored."""
        if config.get("kind") != cls.kind:
            raise ModelError(f"Expected a {cls.kind} model, got {config.get('kind')!r}.")
        entries: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for field in fields(cls)
            if (value := config.get(name := field.name)) is not None
        }
        return cls(**entries)


@dataclass(frozen=True, slots=True)
class CosinetConfig(LightConfig):
    """Cosinet: match channels, one convolution per side, a layer over the candidates."""

    kind: ClassVar[str] = "cosinet"

    width: int = 5
    """Of the convolution, in words."""
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
        """The match channels that the network reads, in this order."""
        return self.channels

    @property
    def pair_size(self) -> int:
        """The size of the vector that represents a pair."""
        return 2 * self.filters


@dataclass(frozen=True, slots=True)
class CompareAggregateConfig(LightConfig):
    """Compare-Aggregate: a gate, attention both ways, products, convolutions of several widths."""

    kind: ClassVar[str] = "compare-aggregate"

    # Unit vectors have dot products near 0, and attention would be uniform.
    vector_scale: float = 6.0
    gate: int = 300
    """Hidden size of the gate."""
    widths: tuple[int, ...] = (1, 2, 3, 4, 5)
    list_layer: ListLayerKind = "none"
    list_hidden: int = 600

    def __post_init__(self) -> None:
        LightConfig.__post_init__(self)
        _check_list_layer(self.list_layer)

    @property
    def pair_size(self) -> int:
        """The size of the vector that represents a pair."""
        return 2 * len(self.widths) * self.filters


@dataclass(frozen=True, slots=True)
class RelationalCNNConfig(LightConfig):
    """Relational CNN: overlap embeddings, one convolution per side, similarity matrix, counts."""

    kind: ClassVar[str] = "relational-cnn"

    filters: int = 100
    width: int = 5
    mark: int = 5
    """Size of the learned embedding that says whether the other text has the word."""

    @property
    def input_channels(self) -> tuple[str, ...]:
        """The channel that is embedded, and the channel that is counted."""
        return "exact", "exact_idf"

    @property
    def pair_size(self) -> int:
        """Both texts, their similarity, and the shares of common words and of common idf."""
        return 2 * self.filters + 1 + 4


def _check_list_layer(name: str) -> None:
    if name not in LIST_LAYERS:
        raise UnknownNameError("list layer", name, LIST_LAYERS)


MAX_CANDIDATE_WORDS = 64
"""Words of a candidate that the first stage's convolution reads; its features use all words."""

COVERAGE_SCALE = 4.0
"""Brings coverages, which are shares of 1, to the size of the other inputs."""

FIRST_STAGE_CHANNELS = 4
"""Of a candidate's word: related, exact, rarity, exact times rarity."""

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
"""The columns of the first stage's feature matrix, in order. Model folders record these names."""


@dataclass(frozen=True, slots=True)
class FirstStageConfig:
    """The first stage: Cosinet's convolutions, learned weights of question words, features."""

    kind: ClassVar[str] = "cosinet-filter"

    dimensions: int = 128
    filters: int = 24
    width: int = 5
    terms: int = 32
    """Hidden units that weigh a question word by itself and its neighbors."""
    hidden: int = 32
    feedback: float = 1.2
    """Weight of the feedback from the best candidates, times the logarithm of the list's size."""

    @property
    def inputs(self) -> int:
        """Inputs of the hidden layer: features, coverages, and [q*c ; q-c]."""
        return len(FEATURES) + _COVERAGES + 2 * self.filters

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the tensors in a model folder of this config."""
        dimensions, features = self.dimensions, len(FEATURES)
        return {
            "features.mean": (features,),
            "features.scale": (features,),
            "terms.weight": (self.terms, dimensions + 2, 3),
            "terms.bias": (self.terms,),
            "weights.weight": (_COVERAGES, self.terms),
            "weights.bias": (_COVERAGES,),
            "candidate.weight": (self.filters, dimensions + FIRST_STAGE_CHANNELS, self.width),
            "candidate.bias": (self.filters,),
            "question.weight": (self.filters, dimensions + 1, self.width),
            "question.bias": (self.filters,),
            "hidden.weight": (self.hidden, self.inputs),
            "hidden.bias": (self.hidden,),
            "score.weight": (1, self.hidden),
            "score.bias": (1,),
            "direct.weight": (1, features),
            "direct.bias": (1,),
        }

    def to_config(self) -> dict[str, Any]:
        """The entries of `config.json`."""
        return {"kind": self.kind, "features": list(FEATURES), **asdict(self)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> FirstStageConfig:
        """Read the entries of a `config.json`."""
        if config.get("features") != list(FEATURES):
            raise ModelError(
                f"The model was trained on the features {config.get('features')}, this version of "
                f"askline has {list(FEATURES)}. Train it again, or use the version that wrote it."
            )
        sizes = ("dimensions", "filters", "width", "terms", "hidden")
        wrong = [name for name in sizes if type(config.get(name)) is not int or config[name] < 1]
        if wrong:
            raise ModelError(f"config.json must give a positive integer for {', '.join(wrong)}.")
        feedback = config.get("feedback", 0.0)
        if not isinstance(feedback, (int, float)) or not feedback >= 0:
            raise ModelError(f"config.json must give feedback as 0 or more, got {feedback!r}.")
        return cls(**{name: config[name] for name in sizes}, feedback=float(feedback))
