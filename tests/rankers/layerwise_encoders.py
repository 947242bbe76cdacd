"""A small staged encoder made by hand: what it computes is plain, and it logs its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from askline.engine.layerwise import LayerwiseEncoder, LayerwiseRun
from askline.text.words import split_words
from askline.types import Span

IntArray = NDArray[np.int64]


@dataclass
class WordRun(LayerwiseRun):
    """At depth d, a candidate's logit is the count of question words among its first d words."""

    encoder: WordEncoder
    question: set[str]
    candidates: list[list[str]]
    depth: int = 0
    alive: set[int] = field(default_factory=set)

    @property
    def tokens(self) -> IntArray:
        asked = len(self.question)
        return np.array([3 + asked + len(said) for said in self.candidates], np.int64)

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,
    ) -> NDArray[np.float32]:
        assert depth > self.depth, "depths must rise"
        assert set(rows.tolist()) <= self.alive, "a row was asked for again after it was left out"
        self.depth = depth
        logits = np.full(len(rows), np.nan, np.float32)
        for start in range(0, len(rows), self.encoder.batch):
            if stop is not None and stop():
                break
            block = slice(start, start + self.encoder.batch)
            logits[block] = [self._logit(row, depth) for row in rows[block].tolist()]
            time.sleep(self.encoder.seconds_a_batch)
        self.alive = set(rows[~np.isnan(logits)].tolist())
        self.encoder.log.append((depth, rows.tolist()))
        return logits

    def read(self, rows: IntArray) -> list[Span | None]:
        said = [self.candidates[row] for row in rows.tolist()]
        return [Span(0, len(words[0]), 1.0, 0.0) if words else None for words in said]

    def _logit(self, row: int, depth: int) -> float:
        return float(sum(word in self.question for word in self.candidates[row][:depth])) - 1.5


@dataclass
class WordEncoder(LayerwiseEncoder):
    depths: tuple[int, ...] = (2, 4, 6)
    batch: int = 4
    seconds_a_batch: float = 0.0
    log: list[tuple[int, list[int]]] = field(default_factory=list)

    def begin(self, question: str, candidates: Sequence[str]) -> WordRun:
        said = [split_words(candidate) for candidate in candidates]
        return WordRun(self, set(split_words(question)), said, alive=set(range(len(said))))
