"""A cascade's encoder on ONNX Runtime: no torch, all cores, the same scores in any company."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.cascade_layout import CascadeLayout
from . import graphs
from .batches import Crew
from .run import EncoderRun
from .windows import Windows
from .wordpiece import WordPiece

__all__ = ["OnnxEncoder", "open_session"]

FloatArray = NDArray[np.float32]

_READ = 384  # tokens of a sequence that a reader with an adapter takes in


@dataclass(frozen=True, eq=False)
class OnnxEncoder:
    """
    A `StagedEncoder`. Any number of threads may use one.

    Layers are made ready when they are first needed, so that a list that a first stage has cut
    short waits for no layer that it does not reach.
    """

    layout: CascadeLayout
    tensors: Mapping[str, NDArray[Any]] = field(repr=False)
    tokeniser: WordPiece = field(repr=False)
    crew: Crew = field(default_factory=Crew)
    _ready: dict[tuple[str, int, int], Any] = field(default_factory=dict, repr=False)
    _making: Lock = field(default_factory=Lock, repr=False)

    @property
    def depths(self) -> tuple[int, ...]:
        return self.layout.depths

    @property
    def layers(self) -> int:
        return self.depths[-1]

    @property
    def parts_ready(self) -> int:
        """Graphs that have been made, as `Unhurried` has it."""
        return len(self._ready)

    def begin(self, question: str, candidates: Sequence[str]) -> EncoderRun:
        """Tokenise once, for all depths; windows for what is too long, nothing cut off."""
        return self.begin_many([(question, candidates)])

    def begin_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> EncoderRun:
        """A run over the candidates of several questions, numbered through."""
        positions = self.layout.encoder.positions
        windows = Windows.of_all(self.tokeniser, requests, positions=positions)
        pairs = [(question, text) for question, texts in requests for text in texts]
        return EncoderRun(self, windows, pairs)

    def begin_reading(self, pairs: Sequence[tuple[str, str]]) -> EncoderRun:
        """A run for a reader with an adapter: its windows are as long as in its training."""
        requests = [(question, [text]) for question, text in pairs]
        positions = self.layout.encoder.positions
        windows = Windows.of_all(self.tokeniser, requests, positions=positions, longest=_READ)
        return EncoderRun(self, windows, pairs)

    @property
    def levels(self) -> tuple[int, ...]:
        """
        How many layers stand behind the states that each depth's classifier takes in.

        One that reads the first token computes its own last layer, so a layer less.
        """
        reads = self.layout.reads
        return tuple(depth - (reads(depth) == "first") for depth in self.depths)

    def embed(self, numbers: NDArray[np.int64], kinds: NDArray[np.int64], level: int) -> FloatArray:
        """(pairs, tokens) → states at that level, which is one of `levels`."""
        first = self.levels[0]
        states = self._run("embedder", 0, first, numbers=numbers, kinds=kinds)
        return self.climb(states, first, level)

    def climb(self, states: FloatArray, level: int, to: int) -> FloatArray:
        """States at one of the levels → at a higher one, level by level."""
        for low, high in zip(self.levels, self.levels[1:], strict=False):
            if level <= low < high <= to:
                states = self._run("body", low, high, states=states)
        return states

    def pooled(self, states: FloatArray, depth: int) -> FloatArray:
        """(pairs, width) what the classifier reads, from the states at the depth's level."""
        if self.layout.reads(depth) == "mean":
            return np.asarray(states.mean(axis=1), np.float32)
        return self._run("pooler", depth, depth, states=states)

    def logits(self, pooled: FloatArray, depth: int) -> FloatArray:
        """(pairs,) of the classifier at that depth."""
        return self._run("scorer", depth, depth, pooled=pooled)[:, 0]

    def ends(self, states: FloatArray) -> FloatArray:
        """(pairs, tokens, 2) start and end logits, from the states at the last level."""
        return self._run("reader", 0, 0, states=states)

    def read(self, numbers: NDArray[np.int64], kinds: NDArray[np.int64]) -> FloatArray:
        """The same from tokens, for a reader with an adapter: no state of another helps it."""
        return self._run("reader", 0, 0, numbers=numbers, kinds=kinds)

    def _run(self, part: str, first: int, last: int, **inputs: NDArray[Any]) -> FloatArray:
        made: FloatArray = self._session(part, first, last).run(None, inputs)[0]
        return made

    def _session(self, part: str, first: int, last: int) -> Any:
        key = (part, first, last)
        if key not in self._ready:
            with self._making:
                if key not in self._ready:
                    self._ready[key] = open_session(self._graph(*key))
        return self._ready[key]

    def _graph(self, part: str, first: int, last: int) -> bytes:
        if part == "embedder":
            return graphs.embedder(self.layout, self.tensors, last)
        if part == "body":
            return graphs.body(self.layout, self.tensors, first, last)
        if part == "pooler":
            return graphs.pooler(self.layout, self.tensors, last)
        if part == "scorer":
            return graphs.scorer(self.layout, self.tensors, last)
        return graphs.reader(self.layout, self.tensors)


def open_session(graph: bytes) -> Any:
    """A graph made ready to run, on one thread: batches run side by side instead."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # shapes differ from batch to batch
    options.enable_cpu_mem_arena = False  # one a graph; they never shrink, and save no time here
    # Higher levels fuse sums and norms into an operator that is four times as slow.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
