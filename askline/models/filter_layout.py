"""The shape of the first-stage filter, as saved in a model folder's config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ..errors import ModelError
from .features import FEATURES

__all__ = ["COVERAGE_SCALE", "FILTER_CHANNELS", "LONGEST", "FilterLayout"]

LONGEST = 64
"""Words of a candidate that the convolution reads; the features see them all."""

COVERAGE_SCALE = 4.0
"""What coverages, shares of 1, are multiplied by to be of the size of other inputs."""

FILTER_CHANNELS = 4
"""Beside a candidate's word: related, exact, rarity, exact times rarity."""

_COVERAGES = 3
"""By the square of the relatedness, by its fourth power, by exact matches."""


@dataclass(frozen=True, slots=True)
class FilterLayout:
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
            "candidate.weight": (self.filters, own + FILTER_CHANNELS, self.width),
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
    def from_config(cls, config: Mapping[str, Any]) -> FilterLayout:
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
