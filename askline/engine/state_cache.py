"""The hidden states that a run keeps between two depths, with an upper limit of memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .numpy_ops import FloatArray, IntArray

__all__ = ["NO_STATES", "StateCache"]

_MAX_KEPT_TOKENS = 98_304  # whose states are kept: 150 MB at width 384; others start over
NO_STATES = -1
"""The level of a sequence whose states are not kept."""


class StateCache:
    """Per sequence, its states (tokens, hidden) and the number of layers that they have passed."""

    def __init__(self, lengths: IntArray) -> None:
        self._lengths = lengths
        self._states: list[FloatArray | None] = [None] * len(lengths)
        self.levels = np.full(len(lengths), NO_STATES)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Per sequence, whether its states are kept."""
        return np.array([states is not None for states in self._states], bool)

    def states(self, batch: IntArray) -> FloatArray | None:
        """The states of sequences of one length and level, (batch, tokens, hidden), if kept."""
        if len(batch) == 1:  # most batches of a short list: nothing to copy
            only = self._states[batch[0]]
            return None if only is None else only[np.newaxis]
        kept = [
            states for sequence in batch.tolist() if (states := self._states[sequence]) is not None
        ]
        return np.stack(kept) if kept else None

    def store(
        self, batch: IntArray, states: FloatArray, level: int, keep: NDArray[np.bool_]
    ) -> None:
        """Keep the states of a batch, for the sequences where `keep` is true."""
        for sequence, own_states in zip(batch.tolist(), states, strict=True):
            self._states[sequence] = own_states if keep[sequence] else None
        self.levels[batch] = np.where(keep[batch], level, NO_STATES)

    def choose(self, sequences: IntArray, others: IntArray) -> NDArray[np.bool_]:
        """
        Per sequence, whether its states are to be kept: the first ones, as far as there is room.

        `others` are sequences that keep the states that they have.
        """
        keep = np.zeros(len(self._lengths), bool)
        used = int(self._lengths[others][self.levels[others] != NO_STATES].sum())
        keep[sequences] = np.cumsum(self._lengths[sequences]) <= _MAX_KEPT_TOKENS - used
        return keep

    def drop_except(self, *sequences: IntArray) -> None:
        """Free the states of all other sequences, whose candidates have been dropped."""
        dropped = np.ones(len(self._states), bool)
        dropped[np.concatenate(sequences)] = False
        for sequence in np.flatnonzero(dropped & (self.levels != NO_STATES)).tolist():
            self._states[sequence] = None
        self.levels[dropped] = NO_STATES
