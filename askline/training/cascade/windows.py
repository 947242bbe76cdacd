"""Texts that are longer than an encoder reaches, as parts that overlap."""

from __future__ import annotations

import numpy as np

from ..packed.packing import Rows, TokenTable
from ..packed.templates import PairTemplate

__all__ = ["QUESTION_LIMIT", "room_beside", "windows"]

QUESTION_LIMIT = 64
"""Tokens of a question; what is beyond is cut."""


def room_beside(table: TokenTable, questions: Rows, template: PairTemplate, limit: int) -> Rows:
    """Tokens of a second text that fit beside each question."""
    asked = np.minimum(table.lengths(questions), QUESTION_LIMIT)
    found: Rows = limit - template.extra - asked
    return found


def windows(
    table: TokenTable,
    questions: Rows,
    texts: Rows,
    template: PairTemplate,
    *,
    limit: int,
    overlap: int = 128,
) -> tuple[Rows, Rows, Rows]:
    """
    The text of each window (its place in `texts`), its first token and its length.

    A text that fits is one window; so is an empty one.
    """
    counts = table.lengths(texts)
    room = room_beside(table, questions, template, limit)
    shared = np.minimum(overlap, room // 2)
    rows = [
        (place, start, min(size, count - start))
        for place, (count, size, both) in enumerate(
            zip(counts.tolist(), room.tolist(), shared.tolist(), strict=True)
        )
        for start in range(0, max(1, count - both), size - both)
    ]
    owners, starts, lengths = np.array(rows, np.int64).reshape(-1, 3).T
    return owners, starts, lengths
