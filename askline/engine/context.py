"""
Passages read in context: the adapted encoder over windows of several sentences.

`ContextEncoder` holds the sessions of the merged layers. `ContextRun` holds the states of one
ranking's windows between two depths, and drops those of passages that are not named again. A
sentence's logit depends on its passage, the passage's title and the question. It is the same to the
byte whatever the other passages, the batches and the number of threads are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..models.cascade_config import CascadeConfig, ContextConfig
from ..models.mapped_tensors import release_pages
from ..types import Passage, Span
from . import graphs
from .adapter import merged_layers
from .layerwise import NO_STATES, PassageRun, StateCache
from .numpy_ops import FloatArray, IntArray
from .sequences import TokenSpan, Windows, best_span
from .sessions import SessionCache
from .threads import WorkerThreads, equal_length_batches
from .tokenizer import WordPiece

__all__ = ["ContextEncoder", "ContextRun"]

_CLASSIFIER_BATCH = 128
_ROW_BLOCK = 8  # a product of fewer rows is computed in another order, with other last digits
_DEADLINE_GROUP = 2  # passages that may be reordered by length when there is a deadline


@dataclass(frozen=True, eq=False)
class ContextEncoder:
    """
    The adapted layers of a cascade and its context classifiers.

    The adapter is merged into a group of layers when the group is first needed.
    """

    config: CascadeConfig
    tensors: Mapping[str, NDArray[Any]] = field(repr=False)
    tokenizer: WordPiece = field(repr=False)
    workers: WorkerThreads = field(default_factory=WorkerThreads)
    sessions: SessionCache = field(default_factory=lambda: SessionCache("context"), repr=False)

    @property
    def context(self) -> ContextConfig:
        assert self.config.context is not None
        return self.config.context

    @property
    def parts_ready(self) -> int:
        """The number of sessions created so far."""
        return len(self.sessions)

    def begin(self, requests: Sequence[tuple[str, Sequence[Passage]]]) -> ContextRun:
        """Tokenize the passages of several questions, once for all depths."""
        windows = Windows.for_requests(self.tokenizer, self.context, requests)
        return ContextRun(self, windows, [one for _, passages in requests for one in passages])

    def create_sessions(self, depths: Sequence[int]) -> None:
        """Create the sessions for these depths, in the order in which a ranking needs them."""
        for depth in depths:
            self.sessions_between(NO_STATES, depth)
            self.classifier(depth)
        self.sessions_between(NO_STATES, self.config.encoder.layers)
        if self.config.reader:
            self.reader()

    def sessions_between(self, level: int, to: int) -> list[Any]:
        """The sessions that take states from one level to a higher one; see `NO_STATES`."""
        levels, found = sorted({*self.context.depths, self.config.encoder.layers}), list[Any]()
        if level == NO_STATES:
            level = levels[0]
            found.append(self._layers("embedding", 0, level))
        for low, high in pairwise(levels):
            if level <= low < high <= to:
                found.append(self._layers("layers", low, high))
        return found

    def classifier(self, depth: int) -> Any:
        """The session of the classifier at that depth."""
        encoder, tensors = self.config.encoder, self.tensors
        return self.sessions.get(
            "classifier",
            depth,
            depth,
            lambda: graphs.context_classifier_graph(encoder, tensors, depth),
        )

    def reader(self) -> Any:
        """The session of the reader's output layer."""
        encoder, tensors = self.config.encoder, self.tensors
        return self.sessions.get("reader", 0, 0, lambda: graphs.span_graph(encoder, tensors))

    def _layers(self, part: str, first: int, last: int) -> Any:
        encoder = self.config.encoder

        def graph() -> bytes:
            tensors = merged_layers(self.config, self.tensors, first, last)
            release_pages(self.tensors)
            if part == "embedding":
                return graphs.embedding_graph(encoder, tensors, last)
            return graphs.layers_graph(encoder, tensors, first, last)

        return self.sessions.get(part, first, last, graph)


class ContextRun(PassageRun):
    """A run of a `ContextEncoder`. Its memory is bounded, whatever the number of passages."""

    def __init__(
        self, encoder: ContextEncoder, windows: Windows, passages: Sequence[Passage]
    ) -> None:
        self._encoder = encoder
        self._windows = windows
        self._sentences = list(chain.from_iterable(passage.sentences for passage in passages))
        self._passage_of = np.repeat(
            np.arange(len(passages)), [len(passage.sentences) for passage in passages]
        )  # (sentences,)
        self._tokens = np.bincount(windows.passage, windows.lengths, len(passages)).astype(np.int64)
        self._cache = StateCache(windows.lengths)
        self._span_logits: dict[int, FloatArray] = {}  # (tokens, 2) per window at the last layer
        counts = [len(pieces) for pieces in windows.pieces]
        self._first_piece = np.cumsum([0, *counts])  # (windows + 1,)
        self._piece_sentence = np.array(
            [piece.sentence for pieces in windows.pieces for piece in pieces], np.int64
        )

    @property
    def tokens(self) -> IntArray:
        return self._tokens

    def advance(
        self,
        passages: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        """The logits at that depth; a sentence that is in several windows has the highest one."""
        depths = self._encoder.context.depths
        if depth not in depths:
            known = ", ".join(map(str, depths))
            raise InputError(f"depth must be one of {known}, got {depth}.")
        own = self._windows_of(passages)
        others = self._windows_of(passages[:0] if waiting is None else waiting)
        self._cache.drop_except(own, others)
        config = self._encoder.config
        is_last = depth == (config.encoder.layers if config.reader else depths[-1])
        keep = self._cache.choose(own[:0] if is_last else own, others)
        pooled = np.empty((len(self._piece_sentence), config.encoder.width), np.float32)
        reached = np.zeros(len(self._windows), bool)

        def advance_batch(batch: IntArray) -> None:
            states = self._advance_batch(batch, depth, keep)
            for window, own_states in zip(batch.tolist(), states, strict=True):
                first = self._first_piece[window]
                for at, piece in enumerate(self._windows.pieces[window]):
                    pooled[first + at] = own_states[piece.begin : piece.end].mean(axis=0)
            reached[batch] = True

        # At a deadline, the passages that were named last are the ones that are left out.
        groups = [own]
        if stop is not None:
            edges = range(_DEADLINE_GROUP, len(passages), _DEADLINE_GROUP)
            groups = [self._windows_of(group) for group in np.split(passages, edges)]
        batches = [batch for group in groups for batch in self._batches(group)]
        self._encoder.workers.run_all(batches, advance_batch, stop=stop)
        return self._sentence_logits(self._classify(pooled, reached, depth), passages)

    def read(self, sentences: IntArray) -> list[Span | None]:
        """The best span of each sentence over all windows that hold it."""
        config = self._encoder.config
        if not config.reader:
            return [None] * len(sentences)
        windows = self._windows_of(self._passage_of[sentences])
        missing = windows[[window not in self._span_logits for window in windows.tolist()]]
        keep = np.zeros(len(self._windows), bool)

        def advance_batch(batch: IntArray) -> None:
            self._advance_batch(batch, config.encoder.layers, keep)

        self._encoder.workers.run_all(self._batches(missing), advance_batch)
        spans: dict[int, list[TokenSpan]] = {number: [] for number in sentences.tolist()}
        for window in windows.tolist():
            logits = self._span_logits[window]
            for piece in self._windows.pieces[window]:
                if piece.sentence not in spans:
                    continue
                begin = piece.begin + 1  # after the marker
                span = best_span(logits[: piece.end + 1], begin)
                if span is not None:
                    spans[piece.sentence].append(span.shifted(piece.start - begin))
        return [self._best_span(number, spans[number]) for number in sentences.tolist()]

    def _advance_batch(
        self, batch: IntArray, level: int, keep: NDArray[np.bool_]
    ) -> FloatArray:  # (batch, tokens, hidden)
        """Take a batch to a level; at the last layer, the reader reads it too."""
        encoder = self._encoder
        inputs = self._inputs(batch)
        for session in encoder.sessions_between(int(self._cache.levels[batch[0]]), level):
            inputs = {"states": session.run(None, inputs)[0]}
        states: FloatArray = inputs["states"]
        if level == encoder.config.encoder.layers and encoder.config.reader:
            logits = encoder.reader().run(None, inputs)[0]  # (batch, tokens, 2)
            self._span_logits.update(zip(batch.tolist(), logits, strict=True))
        self._cache.store(batch, states, level, keep)
        return states

    def _inputs(self, batch: IntArray) -> dict[str, NDArray[Any]]:
        """The kept states of a batch, or its tokens if none are kept."""
        states = self._cache.states(batch)
        if states is not None:
            return {"states": states}
        return graphs.embedding_inputs(self._encoder.tensors, *self._windows.batch(batch))

    def _windows_of(self, passages: IntArray) -> IntArray:
        """The windows of these passages."""
        chosen = np.zeros(len(self._tokens), bool)
        chosen[passages] = True
        return np.flatnonzero(chosen[self._windows.passage])

    def _batches(self, windows: IntArray) -> list[IntArray]:
        lengths, levels = self._windows.lengths[windows], self._cache.levels[windows]
        return equal_length_batches(windows, lengths, levels, threads=self._encoder.workers.threads)

    def _classify(
        self, pooled: FloatArray, reached: NDArray[np.bool_], depth: int
    ) -> FloatArray:  # (pieces,)
        """The logits of all pieces of the windows that were reached, NaN for the others."""
        logits = np.full(len(pooled), np.nan, np.float32)
        rows = np.flatnonzero(np.repeat(reached, np.diff(self._first_piece)))

        def classify_batch(batch: IntArray) -> None:
            inputs = np.zeros((-(-len(batch) // _ROW_BLOCK) * _ROW_BLOCK, pooled.shape[1]), "f4")
            inputs[: len(batch)] = pooled[batch]
            logits[batch] = session.run(None, {"pooled": inputs})[0][: len(batch), 0]

        if len(rows):
            session = self._encoder.classifier(depth)
            batches = np.array_split(rows, -(-len(rows) // _CLASSIFIER_BATCH))
            self._encoder.workers.run_all(batches, classify_batch)
        return logits

    def _sentence_logits(self, logits: FloatArray, passages: IntArray) -> FloatArray:
        """(pieces,) → (sentences,): the highest, NaN if a window of the passage is missing."""
        best = np.full(len(self._sentences), -np.inf, np.float32)
        with np.errstate(invalid="ignore"):  # NaN is intended
            np.maximum.at(best, self._piece_sentence, logits)
        complete = np.zeros(len(self._tokens), bool)
        complete[passages] = True
        missing = self._passage_of[np.isnan(best)]
        complete[missing] = False
        return np.where(complete[self._passage_of], best, np.float32(np.nan))

    def _best_span(self, sentence: int, spans: Sequence[TokenSpan]) -> Span | None:
        """The best of a sentence's spans, as offsets in its text."""
        if not spans:
            return None
        best = max(spans, key=lambda span: (span.score, -span.start))
        tokens = self._encoder.tokenizer.tokens_with_offsets(self._sentences[sentence])
        start, end = tokens[best.start][1], tokens[best.end][2]
        return Span(start, end, best.score, min(span.no_answer for span in spans))
