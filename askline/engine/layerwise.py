"""
The interface between a cascade and its encoder: run a few layers, drop candidates, run on.

An encoder starts a run per ranking. The run keeps the states of its candidates between two depths,
so that each candidate costs only the layers that it reaches. `StateCache` holds these states, with
an upper limit of memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..types import Passage, Span
from .numpy_ops import FloatArray, IntArray

__all__ = ["NO_STATES", "LayerwiseEncoder", "LayerwiseRun", "PassageRun", "StateCache"]


class LayerwiseRun(ABC):
    """The candidates of one ranking, numbered from 0. Used by one thread, for one ranking."""

    @property
    @abstractmethod
    def tokens(self) -> IntArray:
        """Per candidate, the tokens of all its sequences: what it costs in each layer."""

    @abstractmethod
    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        """
        The raw logits of candidates at a depth, in the order of `rows`.

        Depths ascend from call to call. Rows must have been in `rows` or `waiting` of the call
        before; the first call may name any. Rows in `waiting` keep their states for a later call.

        `stop` is called between batches, by one thread at a time. Once it returns True, rows that
        were not reached get NaN and must not be named again.
        """

    def read(self, rows: IntArray) -> list[Span | None]:
        """
        The best span in each of these candidates, None for a candidate without tokens.

        Missing layers are computed first, whatever depth the candidates have reached. None for all
        candidates if the encoder has no reader, which is the default.
        """
        return [None] * len(rows)


class PassageRun(ABC):
    """
    The passages of one ranking, numbered from 0, and their sentences, numbered over all passages.

    Used by one thread, for one ranking.
    """

    @property
    @abstractmethod
    def tokens(self) -> IntArray:
        """Per passage, the tokens of all its windows: what it costs in each layer."""

    @abstractmethod
    def advance(
        self,
        passages: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        """
        The raw logits (sentences,) at a depth; NaN for sentences of all other passages.

        `passages`, `stop` and `waiting` are as the rows of `LayerwiseRun.advance`. The sentences of
        a passage are all reached or none of them is.
        """

    def read(self, sentences: IntArray) -> list[Span | None]:
        """
        The best span in each of these sentences, read in its passage.

        The layers of passages that have not reached the last one are computed first. None for a
        sentence without tokens, and for all if the encoder has no reader, which is the default.
        """
        return [None] * len(sentences)


class LayerwiseEncoder(ABC):
    """An encoder with classifiers at several depths. Any number of threads may start runs."""

    @property
    @abstractmethod
    def depths(self) -> tuple[int, ...]:
        """The layers after which there is a classifier, ascending; the last is the full depth."""

    @property
    def layers(self) -> int:
        """The full depth."""
        return self.depths[-1]

    @property
    def context_depths(self) -> tuple[int, ...]:
        """The layers after which sentences are classified in context; empty without a context."""
        return ()

    @property
    def reads_in_context(self) -> bool:
        """Whether spans cost no further layers once a passage has reached the last depth."""
        return False

    @property
    def parts_ready(self) -> int:
        """
        The number of parts that were built so far, for encoders that build them at first use.

        A ranking during which it rises takes longer than the next one will.
        """
        return 0

    def load_in_background(  # noqa: B027 - optional
        self, depths: Sequence[int], context_depths: Sequence[int], *, keep_graphs: bool
    ) -> None:
        """
        Begin to build the parts for these depths in a thread, in this order; return at once.

        With `keep_graphs`, prepared graphs are kept in the user's cache folder.
        """

    @abstractmethod
    def begin(self, question: str, candidates: Sequence[str]) -> LayerwiseRun:
        """
        Tokenize the candidates, once for all depths.

        A candidate longer than the maximum sequence length becomes several overlapping sequences,
        of which the best counts; it is never truncated.
        """

    def begin_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> LayerwiseRun:
        """
        One run over the candidates of several questions, numbered consecutively.

        By default the questions are computed one after the other. An encoder may share batches
        between them; the logits are the same.
        """
        return _SeparateRuns([self.begin(*request) for request in requests])

    def begin_passages(self, requests: Sequence[tuple[str, Sequence[Passage]]]) -> PassageRun:
        """
        A run over the passages of several questions, numbered consecutively.

        Only for an encoder with context depths.
        """
        raise NotImplementedError(f"{type(self).__name__} has no context.")


class _SeparateRuns(LayerwiseRun):
    """Several questions' runs as one, computed one after the other."""

    def __init__(self, runs: Sequence[LayerwiseRun]) -> None:
        self._runs = runs
        self._tokens = np.concatenate([run.tokens for run in runs])
        self._ends = np.cumsum([len(run.tokens) for run in runs])

    @property
    def tokens(self) -> IntArray:
        return self._tokens

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,  # noqa: ARG002
    ) -> FloatArray:
        """Rows in `waiting` belong to other questions' runs, which are not advanced."""
        logits = np.full(len(rows), np.nan, np.float32)
        owner = np.searchsorted(self._ends, rows, side="right")
        for number in sorted({*owner.tolist()}):
            own, run = owner == number, self._runs[number]
            base = self._ends[number] - len(run.tokens)
            logits[own] = run.advance(rows[own] - base, depth, stop=stop)
        return logits


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
