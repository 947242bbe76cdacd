"""The one place where scores become an order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RankerError
from ..types import Hit

__all__ = ["FloatArray", "by_score"]

FloatArray = NDArray[np.float64]


def by_score(scores: ArrayLike, *, stage: int = 0) -> list[Hit]:
    """
    Highest score first; equal scores keep the original order.

    Infinite scores are fine, NaN is an error: it has no place in an order.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise RankerError(f"Scores must be one number a candidate, got shape {values.shape}.")
    unordered = np.isnan(values)
    if unordered.any():
        raise RankerError(f"Candidate {int(unordered.argmax())} has the score NaN.")
    order = np.argsort(-values, kind="stable")
    return [
        Hit(index, score, stage)
        for index, score in zip(order.tolist(), values[order].tolist(), strict=True)
    ]
