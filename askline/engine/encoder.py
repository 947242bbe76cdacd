"""
The way of candidates through the layers: what is where, and who is still on the way.

A cascade's encoder on ONNX Runtime: no torch, all cores, the same scores in any company.

A cascade's folder → the engine that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..models.cascade_config import CascadeConfig, check_cascade_tensors
from ..models.folder import ModelFolder
from . import graphs
from .layerwise import Span
from .sequences import IntArray, TokenSequences
from .spans import TokenSpan, best_span
from .threads import WorkerThreads, equal_length_batches
from .tokenizer import WordPiece

__all__ = [
    "EncoderRun",
    "OnnxEncoder",
    "create_session",
    "load_encoder",
]

FloatArray = NDArray[np.float32]

_HELD = 98_304  # tokens whose states are kept, 150 MB at width 384; others begin anew if they go on
_JUDGED = 128  # windows whose classifier is computed at once
_IN_ORDER = 8  # rows that are sorted by length together where there is a deadline

_NOWHERE = -1  # the level of a window whose states are not kept


class EncoderRun:
    """A `LayerwiseRun`. Memory stays the same however many candidates there are."""

    def __init__(
        self, encoder: OnnxEncoder, windows: TokenSequences, pairs: Sequence[tuple[str, str]]
    ) -> None:
        """`pairs` are questions and candidates, in the order of the windows' owners."""
        self._encoder = encoder
        self._sequences = windows
        self._pairs = pairs
        self._states: list[FloatArray | None] = [None] * len(windows)  # (tokens, width)
        self._levels = np.full(len(windows), _NOWHERE)  # of the states
        self.tokens = windows.tokens(len(pairs))

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        """
        The logits at that depth; a candidate in several windows has its best window's.

        Those that are `waiting` stay where they are, and may be named again.
        """
        encoder = self._encoder
        if depth not in encoder.depths:
            known = ", ".join(map(str, encoder.depths))
            raise InputError(f"depth must be one of {known}, got {depth}.")
        own, others = self._own(rows), self._own(rows[:0] if waiting is None else waiting)
        self._forget(own, others)
        read_on = encoder.config.reader and not encoder.config.adapter
        held = self._held(own, others, wanted=depth < encoder.layers or read_on)
        level = encoder.levels[encoder.depths.index(depth)]
        pooled = np.empty((len(self._sequences), encoder.config.encoder.width), np.float32)
        reached = np.zeros(len(self._sequences), bool)

        def work(batch: IntArray) -> None:
            states = self._at(batch, level)
            pooled[batch] = encoder.pooled(states, depth)
            reached[batch] = True
            self._keep(batch, states, level, held)

        # Where time may run out, it runs out on the rows that were named last.
        parts = [own] if stop is None else [self._own(part) for part in _parts(rows)]
        batches = [batch for part in parts for batch in self._batches(part)]
        encoder.workers.run_all(batches, work, stop=stop)
        return self._best(self._judged(pooled, np.flatnonzero(reached), depth))[rows]

    def read(self, rows: IntArray) -> list[Span | None]:
        """The best span of each candidate over its windows."""
        if self._encoder.config.adapter:
            own = self._encoder.begin_reading([self._pairs[row] for row in rows.tolist()])
            return own._read(np.arange(len(rows)))
        return self._read(rows)

    def _read(self, rows: IntArray) -> list[Span | None]:
        encoder, windows = self._encoder, self._sequences
        found: list[list[TokenSpan]] = [[] for _ in self._pairs]
        if encoder.config.reader:

            def work(batch: IntArray) -> None:
                for one, logits in zip(batch.tolist(), self._ends(batch), strict=True):
                    begin = len(windows.prefixes[one])
                    span = best_span(logits, begin)
                    if span is not None:
                        shift = int(windows.start[one]) - begin
                        found[windows.candidate[one]].append(span.shifted(shift))

            encoder.workers.run_all(self._batches(self._own(rows)), work)
        return [self._span(row, found[row]) for row in rows.tolist()]

    def _ends(self, batch: IntArray) -> FloatArray:
        encoder = self._encoder
        if encoder.config.adapter:
            return encoder.read(*self._sequences.batch(batch))
        return encoder.ends(self._at(batch, encoder.levels[-1]))

    def _own(self, rows: IntArray) -> IntArray:
        """The windows of these candidates."""
        going = np.zeros(len(self._pairs), bool)
        going[rows] = True
        return np.flatnonzero(going[self._sequences.candidate])

    def _batches(self, windows: IntArray) -> list[IntArray]:
        lengths, levels = self._sequences.lengths[windows], self._levels[windows]
        return equal_length_batches(windows, lengths, levels, threads=self._encoder.workers.threads)

    def _at(self, batch: IntArray, level: int) -> FloatArray:
        """The states of a batch at that level, from where it stands."""
        now = int(self._levels[batch[0]])
        held = [states for one in batch.tolist() if (states := self._states[one]) is not None]
        if not held:
            return self._encoder.embed(*self._sequences.batch(batch), level)
        return self._encoder.climb(np.stack(held), now, level)

    def _keep(
        self, batch: IntArray, states: FloatArray, level: int, held: NDArray[np.bool_]
    ) -> None:
        for one, own in zip(batch.tolist(), states, strict=True):
            self._states[one] = own if held[one] else None
        self._levels[batch] = np.where(held[batch], level, _NOWHERE)

    def _held(self, windows: IntArray, others: IntArray, *, wanted: bool) -> NDArray[np.bool_]:
        """Whose states are kept behind this depth: as many, in order, as there is room for."""
        held = np.zeros(len(self._sequences), bool)
        if wanted:
            lengths = self._sequences.lengths
            room = _HELD - int(lengths[others][self._levels[others] != _NOWHERE].sum())
            held[windows] = np.cumsum(lengths[windows]) <= room
        return held

    def _forget(self, *going: IntArray) -> None:
        """Let go of the states of those that were left behind."""
        left = np.ones(len(self._sequences), bool)
        left[np.concatenate(going)] = False
        for one in np.flatnonzero(left & (self._levels != _NOWHERE)).tolist():
            self._states[one] = None
        self._levels[left] = _NOWHERE

    def _judged(self, pooled: FloatArray, reached: IntArray, depth: int) -> FloatArray:
        """(windows,) logits: a classifier is wide and reads little, so all are judged together."""
        logits = np.full(len(pooled), np.nan, np.float32)

        def judge(some: IntArray) -> None:
            logits[some] = self._encoder.logits(pooled[some], depth)

        if len(reached):
            parts = np.array_split(reached, -(-len(reached) // _JUDGED))
            self._encoder.workers.run_all(parts, judge)
        return logits

    def _best(self, logits: FloatArray) -> FloatArray:
        """(windows,) → (candidates,): the maximum, nan where a window was not reached."""
        best = np.full(len(self._pairs), -np.inf, np.float32)
        with np.errstate(invalid="ignore"):  # nan is meant
            np.maximum.at(best, self._sequences.candidate, logits)
        return best

    def _span(self, row: int, found: list[TokenSpan]) -> Span | None:
        """
        The best of a candidate's windows, as places in its text.

        It has no answer only if none of its windows has one.
        """
        if not found:
            return None
        best = max(found, key=lambda span: (span.score, -span.start))
        pieces = self._encoder.tokenizer.tokens_with_offsets(self._pairs[row][1])
        start, end = pieces[best.start][1], pieces[best.end][2]
        return Span(start, end, best.score, min(span.no_answer for span in found))


def _parts(rows: IntArray) -> list[IntArray]:
    """In the order given, a few batches each."""
    return np.split(rows, range(_IN_ORDER, len(rows), _IN_ORDER))


_READ = 384  # tokens of a sequence that a reader with an adapter takes in


@dataclass(frozen=True, eq=False)
class OnnxEncoder:
    """
    A `LayerwiseEncoder`. Any number of threads may use one.

    Layers are made ready when they are first needed, so that a list that a first stage has cut
    short waits for no layer that it does not reach.
    """

    config: CascadeConfig
    tensors: Mapping[str, NDArray[Any]] = field(repr=False)
    tokenizer: WordPiece = field(repr=False)
    workers: WorkerThreads = field(default_factory=WorkerThreads)
    _ready: dict[tuple[str, int, int], Any] = field(default_factory=dict, repr=False)
    _making: Lock = field(default_factory=Lock, repr=False)

    @property
    def depths(self) -> tuple[int, ...]:
        return self.config.depths

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
        positions = self.config.encoder.positions
        windows = TokenSequences.for_requests(self.tokenizer, requests, positions=positions)
        pairs = [(question, text) for question, texts in requests for text in texts]
        return EncoderRun(self, windows, pairs)

    def begin_reading(self, pairs: Sequence[tuple[str, str]]) -> EncoderRun:
        """A run for a reader with an adapter: its windows are as long as in its training."""
        requests = [(question, [text]) for question, text in pairs]
        positions = self.config.encoder.positions
        windows = TokenSequences.for_requests(
            self.tokenizer, requests, positions=positions, longest=_READ
        )
        return EncoderRun(self, windows, pairs)

    @property
    def levels(self) -> tuple[int, ...]:
        """
        How many layers stand behind the states that each depth's classifier takes in.

        One that reads the first token computes its own last layer, so a layer less.
        """
        reads = self.config.pooling
        return tuple(depth - (reads(depth) == "first") for depth in self.depths)

    def embed(self, numbers: NDArray[np.int64], kinds: NDArray[np.int64], level: int) -> FloatArray:
        """(pairs, tokens) → states at that level, which is one of `levels`."""
        first = self.levels[0]
        states = self._run("embedder", 0, first, token_ids=numbers, token_types=kinds)
        return self.climb(states, first, level)

    def climb(self, states: FloatArray, level: int, to: int) -> FloatArray:
        """States at one of the levels → at a higher one, level by level."""
        for low, high in zip(self.levels, self.levels[1:], strict=False):
            if level <= low < high <= to:
                states = self._run("body", low, high, states=states)
        return states

    def pooled(self, states: FloatArray, depth: int) -> FloatArray:
        """(pairs, width) what the classifier reads, from the states at the depth's level."""
        if self.config.pooling(depth) == "mean":
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
        return self._run("reader", 0, 0, token_ids=numbers, token_types=kinds)

    def _run(self, part: str, first: int, last: int, **inputs: NDArray[Any]) -> FloatArray:
        made: FloatArray = self._session(part, first, last).run(None, inputs)[0]
        return made

    def _session(self, part: str, first: int, last: int) -> Any:
        key = (part, first, last)
        if key not in self._ready:
            with self._making:
                if key not in self._ready:
                    self._ready[key] = create_session(self._graph(*key))
        return self._ready[key]

    def _graph(self, part: str, first: int, last: int) -> bytes:
        if part == "embedder":
            return graphs.embedding_graph(self.config.encoder, self.tensors, last)
        if part == "body":
            return graphs.layers_graph(self.config.encoder, self.tensors, first, last)
        if part == "pooler":
            return graphs.pooler_graph(self.config, self.tensors, last)
        if part == "scorer":
            return graphs.classifier_graph(self.config, self.tensors, last)
        return graphs.reader_graph(self.config, self.tensors)


def create_session(graph: bytes) -> Any:
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


def load_encoder(folder: ModelFolder, *, threads: int | None = None) -> OnnxEncoder:
    """
    An encoder with every weight checked; `threads` is how many batches run at once.

    Without `threads`, as many as the process has cores.
    """
    config = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    tensors = folder.stored_tensors()
    check_cascade_tensors(config, tensors, path=folder.path)
    tokenizer = WordPiece.load(folder.path / "tokenizer.json")
    return OnnxEncoder(config, tensors, tokenizer, WorkerThreads(threads))
