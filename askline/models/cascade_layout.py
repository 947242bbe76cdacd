"""What a cascade's runtime folder holds: an encoder, and where its classifiers stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from ..errors import ModelError
from .encoder_layout import DENSE, EncoderShape, check_stored, dense_shapes

__all__ = ["DENSE", "CascadeLayout", "EncoderShape", "Head", "Precision", "check_tensors"]

Head = Literal["first", "mean"]
Precision = Literal["int8", "float32"]


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
            return cls(
                EncoderShape.from_entry(config["encoder"]),
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
        own, shapes = self.encoder, self.encoder.shapes()
        for depth in self.depths:
            for hidden in self.hidden(depth):
                shapes |= dense_shapes(hidden, own.width, own.width)
            shapes |= dense_shapes(f"classifiers.{depth}.out", 1, own.width)
        return shapes | (dense_shapes("reader", 2, own.width) if self.reader else {})

    def hidden(self, depth: int) -> list[str]:
        """The tanh layers of the classifier at that depth."""
        stem = f"classifiers.{depth}"
        if self.head == "first":
            return [f"{stem}.dense"]
        return [f"{stem}.layers.{number}" for number in range(3)]

    def _problems(self) -> Iterable[str]:
        unsound, layers = list(self.encoder.problems()), self.encoder.layers
        yield from unsound
        if unsound:
            return
        if not self.depths or list(self.depths) != sorted({*self.depths}) or self.depths[0] < 1:
            yield f"depths must ascend from 1 or more, got {list(self.depths)}"
        elif self.depths[-1] != layers:
            yield f"the last depth must be {layers}, the last layer, got {self.depths[-1]}"
        if self.head not in get_args(Head):
            yield f"head must be one of {', '.join(get_args(Head))}, got {self.head!r}"
        if self.precision not in get_args(Precision):
            known = ", ".join(get_args(Precision))
            yield f"precision must be one of {known}, got {self.precision!r}"


def check_tensors(
    layout: CascadeLayout, tensors: Mapping[str, NDArray[Any]], *, path: Path
) -> None:
    """Refuse weights that do not fit, naming the first twenty."""
    check_stored(layout.shapes(), tensors, layers=layout.encoder.layers, path=path)
