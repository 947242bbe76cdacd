"""
A cascade's encoder on ONNX Runtime, without torch.

`OnnxEncoder` holds the weights and one ONNX Runtime session per part of the network. `EncoderRun`
holds the hidden states of one ranking's candidates between two depths. A score does not depend on
the other candidates, on the batches or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ModelError
from ..models.cascade_config import CascadeConfig, check_cascade_tensors, reader_tensors
from ..models.folder import ModelFolder
from ..models.mapped_tensors import release_pages
from ..types import Passage, Span
from . import graphs
from .context import ContextEncoder
from .graph_cache import GraphCache
from .layerwise import NO_STATES, LayerwiseEncoder, LayerwiseRun, PassageRun, StateCache
from .numpy_ops import FloatArray, IntArray
from .sequences import READER_MAX_SEQUENCE_LENGTH, TokenSequences, TokenSpan, best_span
from .sessions import SessionCache
from .threads import WorkerThreads, equal_length_batches
from .tokenizer import WordPiece

__all__ = [
    "EncoderRun",
    "OnnxEncoder",
    "load_encoder",
]

_CLASSIFIER_BATCH = 128
_DEADLINE_GROUP = 8  # rows that may be reordered by length when there is a deadline

_Part = Literal["embedding", "layers", "pooler", "classifier", "reader"]


@dataclass(frozen=True, eq=False)
class OnnxEncoder(LayerwiseEncoder):
    """
    A cascade's encoder in int8 or float32; any number of threads may use one.

    Sessions are created when they are first needed, so that a short list does not wait for layers
    that it never reaches.
    """

    config: CascadeConfig
    tensors: Mapping[str, NDArray[Any]] = field(repr=False)
    tokenizer: WordPiece = field(repr=False)
    workers: WorkerThreads = field(default_factory=WorkerThreads)
    folder: Path | None = None
    """The model folder, for the graph cache; None if there is none."""
    _sessions: SessionCache = field(default_factory=SessionCache, repr=False)

    @property
    def depths(self) -> tuple[int, ...]:
        return self.config.depths

    @property
    def context_depths(self) -> tuple[int, ...]:
        return self.config.context.depths if self.config.context else ()

    @property
    def reads_in_context(self) -> bool:
        return self.config.reader and self.context_depths[-1:] == (self.config.encoder.layers,)

    @property
    def parts_ready(self) -> int:
        """The number of sessions created so far."""
        return len(self._sessions) + (self.context.parts_ready if self.config.context else 0)

    @cached_property
    def context(self) -> ContextEncoder:
        """The encoder of passages; only with a `context` in the config."""
        return ContextEncoder(self.config, self.tensors, self.tokenizer, self.workers)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """
        Per depth, the number of layers that its classifier's input states have passed.

        A classifier that reads the first token computes its last layer itself: one layer less.
        """
        pooling = self.config.pooling
        return tuple(depth - (pooling(depth) == "first") for depth in self.depths)

    def begin(self, question: str, candidates: Sequence[str]) -> EncoderRun:
        """Tokenize a question's candidates, once for all depths."""
        return self.begin_many([(question, candidates)])

    def begin_many(self, requests: Sequence[tuple[str, Sequence[str]]]) -> EncoderRun:
        """A run over the candidates of several questions, numbered consecutively."""
        positions = self.config.encoder.positions
        sequences = TokenSequences.for_requests(self.tokenizer, requests, positions=positions)
        pairs = [(question, text) for question, texts in requests for text in texts]
        return EncoderRun(self, sequences, pairs)

    def begin_reader(self, pairs: Sequence[tuple[str, str]]) -> EncoderRun:
        """A run for a reader with an adapter, with sequences as long as in its training."""
        sequences = TokenSequences.for_requests(
            self.tokenizer,
            [(question, [text]) for question, text in pairs],
            positions=self.config.encoder.positions,
            max_length=READER_MAX_SEQUENCE_LENGTH,
        )
        return EncoderRun(self, sequences, pairs)

    def begin_passages(self, requests: Sequence[tuple[str, Sequence[Passage]]]) -> PassageRun:
        """Tokenize the passages of several questions, numbered consecutively."""
        if not self.config.context:
            raise ModelError("This cascade cannot read passages: its config has no context.")
        return self.context.begin(requests)

    def load_in_background(
        self, depths: Sequence[int], context_depths: Sequence[int], *, keep_graphs: bool
    ) -> None:
        """Begin to create the sessions in a thread, in the order in which a ranking needs them."""
        networks = [self._sessions, *([self.context.sessions] if context_depths else [])]
        if keep_graphs and self.folder is not None:
            graph_cache = GraphCache.of_model(self.folder)
            for sessions in networks:
                sessions.graph_cache = graph_cache

        def create_sessions() -> None:
            with suppress(Exception):  # a ranking meets the same error, and reports it
                for depth in depths:
                    self.sessions_between(NO_STATES, self.levels[self.depths.index(depth)])
                    self.session("classifier", depth, depth)
                if context_depths:
                    self.context.create_sessions(context_depths)
                for sessions in networks:
                    sessions.write_missing()

        Thread(target=create_sessions, name="askline-load").start()

    def sessions_between(self, level: int, to: int) -> list[Any]:
        """
        The sessions that take states from one level to a higher one, in order.

        From `NO_STATES`, the first session takes the inputs of `graphs.embedding_inputs`.
        """
        levels, sessions = self.levels, list[Any]()
        if level == NO_STATES:
            level = levels[0]
            sessions.append(self.session("embedding", 0, level))
        for low, high in pairwise(levels):
            if level <= low < high <= to:
                sessions.append(self.session("layers", low, high))
        return sessions

    def session(self, part: _Part, first: int = 0, last: int = 0) -> Any:
        """The session of a part of the network, created at its first use."""

        def graph() -> bytes:
            made = self._graph(part, first, last)
            release_pages(self.tensors)  # the session has its own copy of the weights
            return made

        return self._sessions.get(part, first, last, graph)

    def _graph(self, part: _Part, first: int, last: int) -> bytes:
        config, tensors = self.config, self.tensors
        if part == "embedding":
            return graphs.embedding_graph(config.encoder, tensors, last)
        if part == "layers":
            return graphs.layers_graph(config.encoder, tensors, first, last)
        if part == "pooler":
            return graphs.pooler_graph(config, tensors, last)
        if part == "classifier":
            return graphs.classifier_graph(config, tensors, last)
        return graphs.reader_graph(config, reader_tensors(tensors))


class EncoderRun(LayerwiseRun):
    """A run of an `OnnxEncoder`. Its memory is bounded, whatever the number of candidates."""

    def __init__(
        self, encoder: OnnxEncoder, sequences: TokenSequences, pairs: Sequence[tuple[str, str]]
    ) -> None:
        """`pairs` are questions and candidates, as the sequences number their candidates."""
        self._encoder = encoder
        self._sequences = sequences
        self._pairs = pairs
        self._cache = StateCache(sequences.lengths)
        self._tokens = sequences.tokens(len(pairs))

    @property
    def tokens(self) -> IntArray:
        return self._tokens

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        """The logits at that depth; a candidate with several sequences has its best one's."""
        encoder, config = self._encoder, self._encoder.config
        if depth not in encoder.depths:
            known = ", ".join(map(str, encoder.depths))
            raise InputError(f"depth must be one of {known}, got {depth}.")
        own = self._sequences_of(rows)
        others = self._sequences_of(rows[:0] if waiting is None else waiting)
        self._cache.drop_except(own, others)
        reads_states = config.reader and not (config.adapter or config.context)
        needed_later = depth < encoder.layers or reads_states
        keep = self._cache.choose(own if needed_later else own[:0], others)
        level = encoder.levels[encoder.depths.index(depth)]
        is_mean = config.pooling(depth) == "mean"
        pooled = np.empty((len(self._sequences), config.encoder.width), np.float32)
        reached = np.zeros(len(self._sequences), bool)

        def advance_batch(batch: IntArray) -> None:
            inputs = self._inputs(batch)
            for session in encoder.sessions_between(int(self._cache.levels[batch[0]]), level):
                inputs = {"states": session.run(None, inputs)[0]}
            states = inputs["states"]  # (batch, tokens, hidden)
            if is_mean:
                pooled[batch] = np.add.reduce(states, axis=1) / np.float32(states.shape[1])
            else:
                pooled[batch] = encoder.session("pooler", depth, depth).run(None, inputs)[0]
            reached[batch] = True
            self._cache.store(batch, states, level, keep)

        # At a deadline, the rows that were named last are the ones that are left out.
        groups = [own]
        if stop is not None:
            edges = range(_DEADLINE_GROUP, len(rows), _DEADLINE_GROUP)
            groups = [self._sequences_of(group) for group in np.split(rows, edges)]
        batches = [batch for group in groups for batch in self._batches(group)]
        encoder.workers.run_all(batches, advance_batch, stop=stop)
        return self._best_logits(self._classify(pooled, np.flatnonzero(reached), depth))[rows]

    def read(self, rows: IntArray) -> list[Span | None]:
        """The best span of each candidate over all of its sequences."""
        config = self._encoder.config
        if not config.reader:
            return [None] * len(rows)
        if config.context:  # every candidate is a passage of one sentence
            pairs = [self._pairs[row] for row in rows.tolist()]
            run = self._encoder.begin_passages([(pair[0], [Passage(pair[1:])]) for pair in pairs])
            return run.read(np.arange(len(rows)))
        if config.adapter:  # the reader has layers of its own and starts from the tokens
            reader = self._encoder.begin_reader([self._pairs[row] for row in rows.tolist()])
            return reader._decode(np.arange(len(rows)), level=None)
        return self._decode(rows, level=self._encoder.levels[-1])

    def _decode(self, rows: IntArray, *, level: int | None) -> list[Span | None]:
        """Run the reader on these candidates' states at `level`; None: on their tokens."""
        encoder, sequences = self._encoder, self._sequences
        spans: list[list[TokenSpan]] = [[] for _ in self._pairs]

        def read_batch(batch: IntArray) -> None:
            inputs = self._inputs(batch)
            if level is not None:
                for session in encoder.sessions_between(int(self._cache.levels[batch[0]]), level):
                    inputs = {"states": session.run(None, inputs)[0]}
            logits = encoder.session("reader").run(None, inputs)[0]  # (batch, tokens, 2)
            for sequence, own_logits in zip(batch.tolist(), logits, strict=True):
                begin = len(sequences.prefixes[sequence])
                span = best_span(own_logits, begin)
                if span is not None:
                    shift = int(sequences.start[sequence]) - begin
                    spans[sequences.candidate[sequence]].append(span.shifted(shift))

        encoder.workers.run_all(self._batches(self._sequences_of(rows)), read_batch)
        return [self._best_span(row, spans[row]) for row in rows.tolist()]

    def _best_span(self, row: int, spans: list[TokenSpan]) -> Span | None:
        """
        The best span of a candidate's sequences, as offsets in its text.

        The candidate has no answer only if none of its sequences has one.
        """
        if not spans:
            return None
        best = max(spans, key=lambda span: (span.score, -span.start))
        tokens = self._encoder.tokenizer.tokens_with_offsets(self._pairs[row][1])
        start, end = tokens[best.start][1], tokens[best.end][2]
        return Span(start, end, best.score, min(span.no_answer for span in spans))

    def _sequences_of(self, rows: IntArray) -> IntArray:
        """The sequences of these candidates."""
        if len(self._pairs) == len(self._sequences):  # one sequence per candidate
            return np.sort(rows)
        chosen = np.zeros(len(self._pairs), bool)
        chosen[rows] = True
        return np.flatnonzero(chosen[self._sequences.candidate])

    def _batches(self, sequences: IntArray) -> list[IntArray]:
        lengths, levels = self._sequences.lengths[sequences], self._cache.levels[sequences]
        return equal_length_batches(
            sequences, lengths, levels, threads=self._encoder.workers.threads
        )

    def _inputs(self, batch: IntArray) -> dict[str, NDArray[Any]]:
        """The kept states of a batch, or its tokens if none are kept."""
        states = self._cache.states(batch)
        if states is not None:
            return {"states": states}
        return graphs.embedding_inputs(self._encoder.tensors, *self._sequences.batch(batch))

    def _classify(self, pooled: FloatArray, reached: IntArray, depth: int) -> FloatArray:
        """
        (sequences,) logits, NaN for sequences that were not reached.

        A classifier has many weights and a small input, so large batches pay off.
        """
        logits = np.full(len(pooled), np.nan, np.float32)

        def classify_batch(batch: IntArray) -> None:
            logits[batch] = session.run(None, {"pooled": pooled[batch]})[0][:, 0]

        if len(reached):
            session = self._encoder.session("classifier", depth, depth)
            parts = -(-len(reached) // _CLASSIFIER_BATCH)
            batches = np.array_split(reached, parts) if parts > 1 else [reached]
            self._encoder.workers.run_all(batches, classify_batch)
        return logits

    def _best_logits(self, logits: FloatArray) -> FloatArray:
        """(sequences,) → (candidates,): the maximum, NaN if a sequence was not reached."""
        if len(self._pairs) == len(logits):  # one sequence per candidate
            return logits
        best = np.full(len(self._pairs), -np.inf, np.float32)
        with np.errstate(invalid="ignore"):  # NaN is intended
            np.maximum.at(best, self._sequences.candidate, logits)
        return best


def load_encoder(folder: ModelFolder, *, threads: int | None = None) -> OnnxEncoder:
    """
    Load a cascade's encoder from its model folder and check all weights.

    `threads` batches run at once, by default as many as the process has cores.
    """
    config = CascadeConfig.from_config(folder.config, path=folder.path / "config.json")
    tensors = folder.stored_tensors()
    check_cascade_tensors(config, tensors, path=folder.path)
    tokenizer = WordPiece.load(folder.path / "tokenizer.json")
    return OnnxEncoder(config, tensors, tokenizer, WorkerThreads(threads), folder.path)
