"""
The phrase model without torch: candidate phrases of a text with their vectors, and questions.

One encoder does all of it. The text is encoded once and its states give the candidates. A phrase's
vector comes from the states at its ends, or, where the folder says so, from two marker tokens that
are encoded against the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..runtime.batches import Crew
from .decoding import Decoding, decode
from .encoder import PhraseEncoder, Sight
from .folder import PhraseConfig, read_phrase_folder
from .heads import Heads, expected_words, own_words, phrase_words, span_tables
from .tokenising import load_tokeniser, question_tokens
from .windows import Window, each_window

__all__ = ["CodedPhrases", "CodedQuestion", "Phrase", "PhraseModel"]

Floats = NDArray[np.float32]
_TOGETHER = 64  # windows that are worked off before the next ones are looked at


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
    model: str = ""
    """The identity of the model they are of."""

    def __len__(self) -> int:
        return len(self.phrases)


class CodedQuestion:
    """A question's vector, and what it would like to see around an answer."""

    def __init__(
        self, dense: Floats, states: Floats, tokens: NDArray[np.int32], model: PhraseModel
    ) -> None:
        self.dense = dense  # (size + 1,)
        self._states, self._tokens, self._model = states, tokens, model

    @property
    def model(self) -> str:
        """The identity of the model it is of, whose phrases alone it can be searched among."""
        return self._model.config.identity

    def lexical(self, words: NDArray[np.int32], weights: Floats) -> Floats:
        """What the words around some phrases add to their scores, (phrases,)."""
        if not words.size:
            return np.zeros(len(words), np.float32)
        occurs = np.zeros(words.max() + 1, bool)
        occurs[words] = True
        wanted = np.zeros(len(occurs), np.float32)
        known = np.flatnonzero(occurs).astype(np.int32)
        wanted[known] = self._model.wanted(self._states, self._tokens, known)
        found: Floats = np.einsum("pk,pk->p", wanted[words], weights)
        return found


class PhraseModel:
    """A loaded folder. It never changes: any number of threads may use it."""

    def __init__(
        self,
        config: PhraseConfig,
        encoder: PhraseEncoder,
        heads: dict[str, Floats],
        tokeniser: Any,
        crew: Crew | None = None,
    ) -> None:
        self.config = config
        self._encoder, self._heads, self._tokeniser = encoder, Heads(heads), tokeniser
        self._crew = crew or Crew()

    @classmethod
    def load(
        cls, folder: str | PathLike[str] | None = None, *, threads: int | None = None
    ) -> PhraseModel:
        """
        The model that `askline train phrases` wrote; without a folder, the one that comes along.

        `threads` is how many windows are encoded at once; as many as there are cores by default.
        """
        path = (
            folder if folder is not None else str(files("askline.models") / "shipped" / "phrases")
        )
        config, tensors, heads = read_phrase_folder(path)
        tokeniser = load_tokeniser(path)
        if tokeniser.get_vocab_size() > config.encoder.vocabulary:
            raise ModelError(f"The tokeniser in {path} has more words than the encoder.")
        return cls(config, PhraseEncoder(config, tensors), heads, tokeniser, Crew(threads))

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
        return self._joined(list(self.encode_windows(text, limit=limit)))

    def encode_windows(self, text: str, *, limit: int = 100) -> Iterator[CodedPhrases]:
        """The same window by window, for texts too long to hold the vectors of."""
        windows = ((text, window) for window in self._windows(text))
        while some := list(islice(windows, _TOGETHER)):
            yield from self._coded(some, limit)

    def encode_all(self, texts: Sequence[str], *, limit: int = 100) -> list[CodedPhrases]:
        """Several texts at once, which keeps all cores busy where each is short."""
        cut = [list(self._windows(text)) for text in texts]
        windows = [(text, one) for text, own in zip(texts, cut, strict=True) for one in own]
        coded = iter(self._coded(windows, limit))
        return [self._joined(list(islice(coded, len(own)))) for own in cut]

    def marked(
        self, text: str, *, limit: int = 100
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Of each window its tokens, and the first and last token of its candidates (n, 2)."""
        for window in self._windows(text):
            yield window.tokens, self._candidates(window, text, limit, "joint")[1]

    def question(self, text: str) -> CodedQuestion:
        """A question, ready to be searched with; the end of a very long one is not read."""
        tokens = question_tokens(text, self._tokeniser)
        states, _ = self._encoder.encode(tokens)
        mean = states.mean(0)
        joined = np.concatenate([states[0], mean])
        vector = self._heads.linear("question", joined)
        trust = self._heads.linear("trust", mean)
        return CodedQuestion(np.concatenate([vector, trust]), states, tokens, self)

    def wanted(self, states: Floats, tokens: NDArray[np.int32], words: NDArray[np.int32]) -> Floats:
        """Weights of words for a question with these states and tokens."""
        found = expected_words(self._heads, states, self._encoder.word_vectors(words))
        own = own_words(self._heads, states)
        for token, weight in zip(tokens, own, strict=True):
            found[words == token] += weight
        return found

    def _joined(self, parts: Sequence[CodedPhrases]) -> CodedPhrases:
        size, words = self.config.size + 1, self.config.words
        return CodedPhrases(
            tuple(phrase for part in parts for phrase in part.phrases),
            np.concatenate([np.zeros((0, size), np.float32), *(part.dense for part in parts)]),
            np.concatenate([np.zeros((0, words), np.int32), *(part.words for part in parts)]),
            np.concatenate([np.zeros((0, words), np.float32), *(part.weights for part in parts)]),
            self.config.identity,
        )

    def _windows(self, text: str) -> Iterator[Window]:
        config = self.config
        return each_window(text, self._tokeniser, size=config.window, overlap=config.overlap)

    def _coded(self, windows: Sequence[tuple[str, Window]], limit: int) -> list[CodedPhrases]:
        """Phrases of each window, several windows at a time."""
        found: dict[int, CodedPhrases] = {}

        def work(at: int) -> None:
            found[at] = self._coded_window(*windows[at], limit)

        self._crew.work_off(range(len(windows)), work)
        return [found[at] for at in range(len(windows))]

    def _coded_window(self, text: str, window: Window, limit: int) -> CodedPhrases:
        phrases, spans, states, sight = self._candidates(window, text, limit, "joint")
        if not phrases:
            return self._joined([])
        if self.config.form == "markers":
            ends = self._encoder.encode_markers(window.tokens[spans], spans, sight)
        else:
            ends = states[spans]  # (phrases, 2, width)
        joined = ends.reshape(len(spans), -1)
        chances = np.array([[phrase.chance] for phrase in phrases], np.float32)
        dense = np.concatenate([self._heads.linear("phrase", joined), chances], 1)
        around = self._around(joined, states, window)
        return CodedPhrases(phrases, dense, *around, self.config.identity)

    def _candidates(
        self, window: Window, text: str, limit: int, how: Decoding
    ) -> tuple[tuple[Phrase, ...], NDArray[np.int32], Floats, Sight]:
        states, sight = self._encoder.encode(window.tokens, keep=self.config.form == "markers")
        tables = span_tables(self._heads, states, window)
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
        weights = phrase_words(self._heads, joined, states)
        if weights.shape[1] < count:
            weights = np.pad(weights, ((0, 0), (0, count - weights.shape[1])))
        kept = np.argpartition(-weights, count - 1, axis=1)[:, :count]
        tokens = np.pad(window.tokens, (0, max(0, count - len(window))))
        return tokens[kept].astype(np.int32), np.take_along_axis(weights, kept, 1)
