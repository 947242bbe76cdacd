"""
What the other text of a pair says about each word: the channels that stand beside its vector.

Words come as numbers into a table of distinct words, whose row 0 is the zero word: it stands for a
text without words and equals nothing, not even itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import UnknownNameError

__all__ = ["CHANNELS", "Channel", "Lexicon", "check_channels", "pair_channels"]

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]

Channel = Literal["related", "exact", "idf", "exact_idf"]
CHANNELS: tuple[str, ...] = get_args(Channel)
"""
related: the highest cosine to a word of the other text; exact: 1 where the other text has the very
word; idf: how rare the word is, 0 to 1; exact_idf: their product.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Distinct words as a table. Rows follow the numbers that the texts use; row 0 is zero."""

    vectors: FloatArray  # (words, dimensions)
    unit: FloatArray  # (words, dimensions), each row of length 1 or 0
    idf: FloatArray  # (words,)

    @classmethod
    def of(cls, vectors: FloatArray, idf: FloatArray) -> Lexicon:
        """The table with its zero row put before the words' own vectors and idf."""
        rows = np.concatenate([np.zeros((1, vectors.shape[1]), np.float32), vectors])
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
        return cls(rows, unit, np.concatenate([np.zeros(1, np.float32), idf]))


def check_channels(names: Sequence[str]) -> None:
    """Refuse a name that is no channel."""
    for name in names:
        if name not in CHANNELS:
            raise UnknownNameError("channel", name, CHANNELS)


def pair_channels(
    names: Sequence[str],
    lexicon: Lexicon,
    question: IntArray,
    candidates: IntArray,
    starts: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """
    Channels of a question's words beside each candidate, and of the candidates' words.

    `candidates` holds the words of all candidates in a row, `starts` where each begins; no
    candidate is empty. Gives (candidates, question words, channels) and (words, channels).
    """
    asked = np.empty((len(starts), len(question), len(names)), np.float32)
    said = np.empty((len(candidates), len(names)), np.float32)
    if not names:
        return asked, said
    distinct, place = np.unique(candidates, return_inverse=True)
    cosine = (lexicon.unit[question] @ lexicon.unit[distinct].T)[:, place]  # (asked, said)
    match = (question[:, None] == candidates) & (candidates > 0)
    exact = np.maximum.reduceat(match, starts, axis=1).T, match.any(axis=0)
    for column, name in enumerate(names):
        if name == "related":
            asked[..., column] = np.maximum.reduceat(cosine, starts, axis=1).T
            said[:, column] = cosine.max(axis=0)
        else:
            idf = name.endswith("idf")
            asked[..., column] = lexicon.idf[question] if idf else 1.0
            said[:, column] = lexicon.idf[candidates] if idf else 1.0
            if name.startswith("exact"):
                asked[..., column] *= exact[0]
                said[:, column] *= exact[1]
    return asked, said
