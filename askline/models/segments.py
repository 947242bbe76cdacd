"""Sums and maxima over the words of each text, for words that are rows of several numbers."""

from __future__ import annotations

import numpy as np

from .channels import FloatArray, IntArray

__all__ = ["folded"]

_LONG = 128  # words; longer texts are few and are done one by one


def folded(
    ufunc: np.ufunc,
    table: FloatArray,
    starts: IntArray,
    lengths: IntArray,
    *,
    words: IntArray | None = None,
) -> FloatArray:
    """
    (texts, columns): `ufunc` over the rows of each text, at least one.

    A text's rows are those from its start on or, with `words`, those that its words name. All
    texts take their next row at once, so that numpy's loops run over many rows; those of
    `ufunc.reduceat` run along one column of one text, which takes several times as long.
    """
    order = np.argsort(-lengths, kind="stable")  # the texts that still have rows stand first
    starts, falling = starts[order], -lengths[order]

    def rows(at: IntArray) -> FloatArray:
        return table.take(at if words is None else words.take(at), axis=0)

    found = rows(starts)
    long = int(np.searchsorted(falling, -_LONG, side="left"))
    for text in range(long):
        own = np.arange(starts[text], starts[text] - falling[text])
        found[text] = ufunc.reduce(rows(own), axis=0)
    longest = -int(falling[long]) if long < len(falling) else 0
    # How many texts have a second row, a third, …
    having = np.searchsorted(falling, -np.arange(2, longest + 1), side="right")
    for place, count in enumerate(having.tolist(), start=1):
        some = found[long:count]
        ufunc(some, rows(starts[long:count] + place), out=some)
    out = np.empty_like(found)
    out[order] = found
    return out
