"""How a tokeniser joins two texts, so that texts tokenised once make any number of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError

__all__ = ["PairTemplate"]


@dataclass(frozen=True, slots=True, eq=False)
class PairTemplate:
    """The special tokens around two texts, and the segment number of each of the five parts."""

    before: NDArray[np.int32]
    between: NDArray[np.int32]
    after: NDArray[np.int32]
    segments: tuple[int, int, int, int, int]
    """Of `before`, the first text, `between`, the second text, `after`; all 0 where unused."""
    has_segments: bool
    padding: int

    @classmethod
    def of(cls, tokeniser: Any) -> PairTemplate:
        """Read off one encoded pair."""
        found = tokeniser("a", "b")
        owners = found.sequence_ids(0)
        if 0 not in owners or 1 not in owners:
            raise ModelError("The tokeniser knows no word 'a' or 'b', so pairs cannot be made.")
        tokens = np.array(found["input_ids"], np.int32)
        first, second = owners.index(0), owners.index(1)
        first_end = first + owners.count(0)
        second_end = second + owners.count(1)
        kinds = found.get("token_type_ids") or [0] * len(tokens)
        parts = ((0, first), (first, first_end), (first_end, second), (second, second_end))
        segments = [kinds[start] if start < end else 0 for start, end in parts]
        return cls(
            tokens[:first],
            tokens[first_end:second],
            tokens[second_end:],
            (segments[0], segments[1], segments[2], segments[3], kinds[-1]),
            "token_type_ids" in found,
            tokeniser.pad_token_id or 0,
        )

    @property
    def extra(self) -> int:
        """Special tokens in every pair."""
        return len(self.before) + len(self.between) + len(self.after)
