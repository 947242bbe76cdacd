"""
Score tables: every pair of a labelled set with its logit at every depth.

A table is one .npz file. With it a schedule is measured without running the encoder again, because
a pair's score does not depend on the other candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..text.writing import replacing

__all__ = ["ScoreTable"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Pairs lie question after question, candidates in their original order."""

    name: str
    pad: int
    """What the lists were padded to; 0 where they were not."""
    model: str
    """Which weights: tables of other weights are not comparable."""
    depths: tuple[int, ...]
    questions: tuple[str, ...]
    sizes: IntArray  # (questions,)
    labels: BoolArray  # (pairs,)
    added: BoolArray  # (pairs,) whether padding brought it
    tokens: IntArray  # (pairs,) what it costs a layer
    scores: FloatArray  # (depths, pairs) raw logits
    light: FloatArray | None = None  # (pairs,) a first stage's scores of the whole list
    light_layers: float = 0.0
    """What the first stage costs a candidate, in layers of the encoder, as measured."""

    def __post_init__(self) -> None:
        pairs = int(self.sizes.sum())
        columns = {"labels": self.labels, "added": self.added, "tokens": self.tokens}
        shapes = {name: value.shape for name, value in columns.items()}
        if self.light is not None:
            shapes["light"] = self.light.shape
        wrong = {name: shape for name, shape in shapes.items() if shape != (pairs,)}
        if self.scores.shape != (len(self.depths), pairs):
            wrong["scores"] = self.scores.shape
        if wrong or len(self.questions) != len(self.sizes):
            raise InputError(
                f"The score table of {self.name} must have {pairs} pairs at {len(self.depths)} "
                f"depths, got {wrong or len(self.questions)}."
            )
        if not np.isfinite(self.scores).all():
            raise InputError(f"The score table of {self.name} has scores that are no numbers.")

    @property
    def starts(self) -> IntArray:
        """Where each question's pairs begin."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def with_light(self, scores: NDArray[np.floating], layers: float) -> ScoreTable:
        """The same table with a first stage's scores and their cost."""
        return replace(self, light=np.asarray(scores, np.float32), light_layers=layers)

    def take(self, count: int) -> ScoreTable:
        """The first so many questions."""
        pairs = int(self.sizes[:count].sum())
        return replace(
            self,
            questions=self.questions[:count],
            sizes=self.sizes[:count],
            labels=self.labels[:pairs],
            added=self.added[:pairs],
            tokens=self.tokens[:pairs],
            scores=self.scores[:, :pairs],
            light=None if self.light is None else self.light[:pairs],
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table; the file appears whole or not at all."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        columns |= {"labels": self.labels.astype(np.uint8), "added": self.added.astype(np.uint8)}
        found = {name: value for name, value in columns.items() if value is not None}
        with replacing(path) as stream:
            np.savez_compressed(stream, **found)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ScoreTable:
        """Read a table; never a pickle."""
        try:
            with np.load(Path(path), allow_pickle=False) as found:
                columns = {name: found[name] for name in found.files}
            return cls(
                name=str(columns["name"]),
                pad=int(columns["pad"]),
                model=str(columns["model"]),
                depths=tuple(columns["depths"].astype(int).tolist()),
                questions=tuple(columns["questions"].astype(str).tolist()),
                sizes=columns["sizes"].astype(np.int64),
                labels=columns["labels"].astype(bool),
                added=columns["added"].astype(bool),
                tokens=columns["tokens"].astype(np.int64),
                scores=columns["scores"].astype(np.float32),
                light=columns.get("light"),
                light_layers=float(columns.get("light_layers", 0.0)),
            )
        except (OSError, KeyError, ValueError, EOFError) as error:
            raise InputError(f"{path} is no score table ({error}). Score the set again.") from error
