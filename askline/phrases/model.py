"""
The phrase model without torch: candidate phrases of a text with their vectors, and questions.

One encoder does all of it. The text is encoded once; its states give the candidates; each candidate
then has two marker tokens encoded against the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from .bert import Bert
from .decoding import Decoding, decode
from .folder import PhraseConfig, read_phrase_folder
from .heads import expected_words, linear, own_words, phrase_words, span_tables
from .tokenising import load_tokeniser
from .windows import Window, cut_windows

__all__ = ["CodedPhrases", "CodedQuestion", "Phrase", "PhraseModel"]

Floats = NDArray[np.float32]
_LONGEST_QUESTION = 64


@dataclass(frozen=True, slots=True)
class Phrase:
    """`text[start:end]` of the text it was found in, to the character."""

    text: str
    start: int
    end: int
    chance: float
    """The log-probability that the extractor gives it, before any question."""


@dataclass(frozen=True, slots=True, eq=False)
class CodedPhrases:
    """Phrases of a text and what they are searched by, a row each."""

    phrases: tuple[Phrase, ...]
    dense: Floats  # (phrases, size + 1): the last column is the extractor's log-probability
    words: NDArray[np.int32]  # (phrases, k): token numbers of words around the phrase
    weights: Floats  # (phrases, k): what each word counts; 0 where there are fewer words

    def __len__(self) -> int:
        return len(self.phrases)


class CodedQuestion:
    """A question's vector, and what it would like to see around an answer."""

    def __init__(
        self, dense: Floats, states: Floats, tokens: NDArray[np.int32], model: PhraseModel
    ) -> None:
        self.dense = dense  # (size + 1,)
        self._states, self._tokens, self._model = states, tokens, model

    def lexical(self, words: NDArray[np.int32], weights: Floats) -> Floats:
        """What the words around some phrases add to their scores, (phrases,)."""
        if not words.size:
            return np.zeros(len(words), np.float32)
        known, places = np.unique(words, return_inverse=True)
        wanted = self._model.wanted(self._states, self._tokens, known)
        found: Floats = (wanted[places.reshape(words.shape)] * weights).sum(-1)
        return found


class PhraseModel:
    """A loaded folder. It never changes: any number of threads may use it."""

    def __init__(
        self, config: PhraseConfig, bert: Bert, weights: dict[str, Floats], tokeniser: Any
    ) -> None:
        self.config = config
        self._bert, self._weights, self._tokeniser = bert, weights, tokeniser

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> PhraseModel:
        """The model that `askline train phrases` wrote."""
        config, weights = read_phrase_folder(folder)
        encoder = {name: weights.pop(name) for name in config.encoder.weights()}
        tokeniser = load_tokeniser(folder)
        if tokeniser.get_vocab_size() > config.encoder.vocabulary:
            raise ModelError(f"The tokeniser in {folder} has more words than the encoder.")
        return cls(config, Bert(config.encoder, encoder), weights, tokeniser)

    def extract(
        self, text: str, *, limit: int = 100, how: Decoding = "joint"
    ) -> tuple[Phrase, ...]:
        """Candidate phrases, at most `limit` a window, in the order of the text's windows."""
        return tuple(
            phrase
            for window in self._windows(text)
            for phrase in self._candidates(window, text, limit, how)[0]
        )

    def encode(self, text: str, *, limit: int = 100) -> CodedPhrases:
        """Candidate phrases with their vectors, at most `limit` a window."""
        parts = list(self.encode_windows(text, limit=limit))
        size, words = self.config.size + 1, self.config.words
        return CodedPhrases(
            tuple(phrase for part in parts for phrase in part.phrases),
            _joined([part.dense for part in parts], (0, size), np.float32),
            _joined([part.words for part in parts], (0, words), np.int32),
            _joined([part.weights for part in parts], (0, words), np.float32),
        )

    def encode_windows(self, text: str, *, limit: int = 100) -> Iterator[CodedPhrases]:
        """The same window by window, for texts too long to hold the vectors of."""
        for window in self._windows(text):
            phrases, spans, states, sight = self._candidates(window, text, limit, "joint")
            if not phrases:
                continue
            if self.config.form == "markers":
                ends = self._bert.encode_markers(window.tokens[spans], spans, sight)
            else:
                ends = states[spans]  # (phrases, 2, width)
            joined = ends.reshape(len(spans), -1)
            chances = np.array([[phrase.chance] for phrase in phrases], np.float32)
            dense = np.concatenate([linear(self._weights, "phrase", joined), chances], 1)
            yield CodedPhrases(phrases, dense, *self._around(joined, states, window))

    def question(self, text: str) -> CodedQuestion:
        """A question, ready to be searched with; the end of a very long one is not read."""
        ids = self._tokeniser.encode(text).ids
        tokens = np.array([*ids[: _LONGEST_QUESTION - 1], ids[-1]][: len(ids)], np.int32)
        states, _ = self._bert.encode(tokens)
        mean = states.mean(0)
        joined = np.concatenate([states[0], mean])
        vector = linear(self._weights, "question", joined)
        trust = linear(self._weights, "trust", mean)
        return CodedQuestion(np.concatenate([vector, trust]), states, tokens, self)

    def wanted(self, states: Floats, tokens: NDArray[np.int32], words: NDArray[np.int32]) -> Floats:
        """Weights of words for a question with these states and tokens."""
        found = expected_words(self._weights, states, self._bert.word_vectors(words))
        own = own_words(self._weights, states)
        for token, weight in zip(tokens, own, strict=True):
            found[words == token] += weight
        return found

    def _windows(self, text: str) -> list[Window]:
        config = self.config
        return cut_windows(text, self._tokeniser, size=config.window, overlap=config.overlap)

    def _candidates(
        self, window: Window, text: str, limit: int, how: Decoding
    ) -> tuple[tuple[Phrase, ...], NDArray[np.int32], Floats, Any]:
        states, sight = self._bert.encode(window.tokens, keep=self.config.form == "markers")
        tables = span_tables(self._weights, states, window)
        spans, chances = decode(*tables, limit=limit, how=how)
        places = zip(window.starts[spans[:, 0]], window.ends[spans[:, 1]], chances, strict=True)
        phrases = tuple(
            Phrase(text[start:end], int(start), int(end), float(chance))
            for start, end, chance in places
        )
        return phrases, spans, states, sight

    def _around(
        self, joined: Floats, states: Floats, window: Window
    ) -> tuple[NDArray[np.int32], Floats]:
        """The words that count most around each phrase."""
        count = self.config.words
        if not count:
            return np.zeros((len(joined), 0), np.int32), np.zeros((len(joined), 0), np.float32)
        weights = phrase_words(self._weights, joined, states)
        if weights.shape[1] < count:
            weights = np.pad(weights, ((0, 0), (0, count - weights.shape[1])))
        kept = np.argpartition(-weights, count - 1, axis=1)[:, :count]
        tokens = np.pad(window.tokens, (0, max(0, count - len(window))))
        return tokens[kept].astype(np.int32), np.take_along_axis(weights, kept, 1)


def _joined(
    parts: list[NDArray[Any]], empty: tuple[int, int], kind: type[np.float32] | type[np.int32]
) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(empty, kind)
