"""
A phrase model's folder: `config.json`, `weights.safetensors`, `tokenizer.json`, `README.md`.

The encoder's tensors are named and kept as a cascade's are, float or int8; its words may be in
4 bits too. Of what stands on it, wide matrices are int8 with one scale a row. What is read is
checked against the sizes in the config, and the config is written last.

The phrase model without torch: candidate phrases of a text with their vectors, and questions.

One encoder does all of it. The text is encoded once and its states give the candidates. A phrase's
vector comes from the states at its ends, or, where the folder says so, from two marker tokens that
are encoded against the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from ..engine.quantization import int4_shapes, quantize_rows
from ..engine.threads import WorkerThreads
from ..errors import ModelError
from ..models.encoder_config import EncoderConfig, check_encoder_tensors, dense_shapes
from ..models.folder import ModelFolder, write_folder
from .extraction import Decoding, decode
from .phrase_encoder import (
    KeyValueCache,
    PhraseEncoder,
    PhraseHeads,
    context_word_weights,
    expanded_word_weights,
    question_word_weights,
    span_log_probabilities,
)
from .tokenization import (
    MAX_PHRASE_TOKENS,
    TokenWindow,
    iterate_windows,
    load_tokenizer,
    tokenize_question,
)

__all__ = [
    "EncodedPhrases",
    "EncodedQuestion",
    "PhraseConfig",
    "PhraseForm",
    "PhraseModel",
    "PhraseSpan",
    "pack",
    "read_phrase_folder",
    "write_phrase_folder",
]

KIND = "phrases"
PhraseForm = Literal["markers", "span"]
Floats = NDArray[np.float32]
Tensors = dict[str, NDArray[Any]]
_KEYS = 128
_HIDDEN = 128


@dataclass(frozen=True, slots=True)
class PhraseConfig:
    """What a model is, apart from its weights."""

    encoder: EncoderConfig
    form: PhraseForm = "markers"
    size: int = 384
    """Numbers of a vector, the extractor's log-probability not counted."""
    words: int = 24
    """Words kept of those around a phrase; 0 for a model without the lexical part."""
    window: int = 384
    overlap: int = 128
    identity: str = ""
    """Drawn from the weights when they are written: vectors of one model fit no other."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every float tensor."""
        return self.encoder.shapes() | self.heads()

    def heads(self) -> dict[str, tuple[int, ...]]:
        """Those of them that stand on the encoder."""
        width = self.encoder.width
        found = {
            **dense_shapes("phrase", self.size, 2 * width),
            **dense_shapes("question", self.size, 2 * width),
            **dense_shapes("trust", 1, width),
            **dense_shapes("spans.start", 1, width),
            **dense_shapes("spans.first", _HIDDEN, width),
            "spans.last.weight": (_HIDDEN, width),
            "spans.length.weight": (MAX_PHRASE_TOKENS, _HIDDEN),
            **dense_shapes("spans.join", 1, _HIDDEN),
        }
        if self.words:
            found |= dense_shapes("lexical.seek", _KEYS, 2 * width)
            found |= dense_shapes("lexical.key", _KEYS, width)
            found |= dense_shapes("lexical.own", 1, width)
            found |= dense_shapes("lexical.expand", width, width)
            found |= {"lexical.shift": (1,), "lexical.threshold": (1,)}
        return found


def read_phrase_folder(
    folder: str | PathLike[str],
) -> tuple[PhraseConfig, Tensors, dict[str, Floats]]:
    """The config, the encoder's tensors as they are kept, and the others made real again."""
    opened = ModelFolder.open(folder, kind=KIND)
    config = _config(opened)
    tensors = opened.stored_tensors()
    shapes = config.shapes()
    if tensors.get("words.weight", np.zeros(0)).dtype == np.uint8:
        rows, columns = shapes["words.weight"]
        shapes["words.weight"], shapes["words.scale"] = int4_shapes(rows, columns)
    check_encoder_tensors(shapes, tensors, layers=config.encoder.layers, path=opened.path)
    heads = {name: tensors.pop(name).astype(np.float32) for name in config.heads()}
    for name in heads:
        scale = tensors.pop(f"{name.removesuffix('.weight')}.scale", None)
        if scale is not None:
            heads[name] *= scale[:, None]
    return config, tensors, heads


def write_phrase_folder(
    folder: str | PathLike[str],
    *,
    config: PhraseConfig,
    tensors: Mapping[str, NDArray[Any]],
    tokeniser: str,
    card: str,
) -> Path:
    """Write a folder that `read_phrase_folder` reads; `tokeniser` is the text of its JSON file."""
    digest = hashlib.sha256(save({**tensors})).hexdigest()[:16]
    return write_folder(
        folder,
        config={**asdict(config), "identity": digest, "kind": KIND},
        tensors=tensors,
        card=card,
        files={"tokenizer.json": tokeniser.encode()},
    )


def pack(tensors: Mapping[str, Floats]) -> Tensors:
    """Matrices as int8 and a step a row, all else as it is."""
    packed: Tensors = {}
    for name, value in tensors.items():
        stem, _, kind = name.rpartition(".")
        if kind == "weight" and value.ndim == 2 and min(value.shape) > 2:
            packed[name], packed[f"{stem}.scale"] = quantize_rows(value)
        else:
            packed[name] = value
    return packed


def _config(folder: ModelFolder) -> PhraseConfig:
    path = folder.path / "config.json"
    given = {one.name: folder.config.get(one.name) for one in fields(PhraseConfig)}
    try:
        shape = EncoderConfig.from_entry(folder.config["encoder"])
        config = PhraseConfig(**{**given, "encoder": shape})  # type: ignore[arg-type]
    except (TypeError, KeyError) as error:
        raise ModelError(f"{path} does not describe a model: {error}.") from error
    sizes = [config.size, config.words, config.window, config.overlap]
    whole = all(isinstance(size, int) and size >= 0 for size in sizes)
    if config.form not in get_args(PhraseForm) or not whole or list(shape.problems()):
        raise ModelError(f"{path} must hold sizes and a form, got {given}.")
    return config


_TOGETHER = 64  # windows that are worked off before the next ones are looked at


@dataclass(frozen=True, slots=True)
class PhraseSpan:
    """`text[start:end]` of the text it was found in, to the character."""

    text: str
    start: int
    end: int
    chance: float
    """The log-probability that the extractor gives it, before any question."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPhrases:
    """Phrases of a text and what they are searched by, a row each."""

    phrases: tuple[PhraseSpan, ...]
    dense: Floats  # (phrases, size + 1): the last column is the extractor's log-probability
    words: NDArray[np.int32]  # (phrases, k): token numbers of words around the phrase
    weights: Floats  # (phrases, k): what each word counts; 0 where there are fewer words
    model: str = ""
    """The identity of the model they are of."""

    def __len__(self) -> int:
        return len(self.phrases)


class EncodedQuestion:
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
        crew: WorkerThreads | None = None,
    ) -> None:
        self.config = config
        self._encoder, self._heads, self._tokeniser = encoder, PhraseHeads(heads), tokeniser
        self._crew = crew or WorkerThreads()

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
        tokeniser = load_tokenizer(path)
        if tokeniser.get_vocab_size() > config.encoder.vocabulary:
            raise ModelError(f"The tokeniser in {path} has more words than the encoder.")
        return cls(
            config, PhraseEncoder(config.encoder, tensors), heads, tokeniser, WorkerThreads(threads)
        )

    def extract(
        self, text: str, *, limit: int = 100, how: Decoding = "joint"
    ) -> tuple[PhraseSpan, ...]:
        """Candidate phrases, at most `limit` a window, in the order of the text's windows."""
        return tuple(
            phrase
            for window in self._windows(text)
            for phrase in self._candidates(window, text, limit, how)[0]
        )

    def encode(self, text: str, *, limit: int = 100) -> EncodedPhrases:
        """Candidate phrases with their vectors, at most `limit` a window."""
        return self._joined(list(self.encode_windows(text, limit=limit)))

    def encode_windows(self, text: str, *, limit: int = 100) -> Iterator[EncodedPhrases]:
        """The same window by window, for texts too long to hold the vectors of."""
        windows = ((text, window) for window in self._windows(text))
        while some := list(islice(windows, _TOGETHER)):
            yield from self._coded(some, limit)

    def encode_many(self, texts: Sequence[str], *, limit: int = 100) -> list[EncodedPhrases]:
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

    def encode_question(self, text: str) -> EncodedQuestion:
        """A question, ready to be searched with; the end of a very long one is not read."""
        tokens = tokenize_question(text, self._tokeniser)
        states, _ = self._encoder.encode(tokens)
        mean = states.mean(0)
        joined = np.concatenate([states[0], mean])
        vector = self._heads.linear("question", joined)
        trust = self._heads.linear("trust", mean)
        return EncodedQuestion(np.concatenate([vector, trust]), states, tokens, self)

    def wanted(self, states: Floats, tokens: NDArray[np.int32], words: NDArray[np.int32]) -> Floats:
        """Weights of words for a question with these states and tokens."""
        found = expanded_word_weights(self._heads, states, self._encoder.word_vectors(words))
        own = question_word_weights(self._heads, states)
        for token, weight in zip(tokens, own, strict=True):
            found[words == token] += weight
        return found

    def _joined(self, parts: Sequence[EncodedPhrases]) -> EncodedPhrases:
        size, words = self.config.size + 1, self.config.words
        return EncodedPhrases(
            tuple(phrase for part in parts for phrase in part.phrases),
            np.concatenate([np.zeros((0, size), np.float32), *(part.dense for part in parts)]),
            np.concatenate([np.zeros((0, words), np.int32), *(part.words for part in parts)]),
            np.concatenate([np.zeros((0, words), np.float32), *(part.weights for part in parts)]),
            self.config.identity,
        )

    def _windows(self, text: str) -> Iterator[TokenWindow]:
        config = self.config
        return iterate_windows(text, self._tokeniser, size=config.window, overlap=config.overlap)

    def _coded(
        self, windows: Sequence[tuple[str, TokenWindow]], limit: int
    ) -> list[EncodedPhrases]:
        """Phrases of each window, several windows at a time."""
        found: dict[int, EncodedPhrases] = {}

        def work(at: int) -> None:
            found[at] = self._coded_window(*windows[at], limit)

        self._crew.run_all(range(len(windows)), work)
        return [found[at] for at in range(len(windows))]

    def _coded_window(self, text: str, window: TokenWindow, limit: int) -> EncodedPhrases:
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
        return EncodedPhrases(phrases, dense, *around, self.config.identity)

    def _candidates(
        self, window: TokenWindow, text: str, limit: int, how: Decoding
    ) -> tuple[tuple[PhraseSpan, ...], NDArray[np.int32], Floats, KeyValueCache]:
        states, sight = self._encoder.encode(window.tokens, keep=self.config.form == "markers")
        tables = span_log_probabilities(self._heads, states, window)
        spans, chances = decode(*tables, limit=limit, how=how)
        places = zip(window.starts[spans[:, 0]], window.ends[spans[:, 1]], chances, strict=True)
        phrases = tuple(
            PhraseSpan(text[start:end], int(start), int(end), float(chance))
            for start, end, chance in places
        )
        return phrases, spans, states, sight

    def _around(
        self, joined: Floats, states: Floats, window: TokenWindow
    ) -> tuple[NDArray[np.int32], Floats]:
        """The words that count most around each phrase."""
        count = self.config.words
        if not count:
            return np.zeros((len(joined), 0), np.int32), np.zeros((len(joined), 0), np.float32)
        weights = context_word_weights(self._heads, joined, states)
        if weights.shape[1] < count:
            weights = np.pad(weights, ((0, 0), (0, count - weights.shape[1])))
        kept = np.argpartition(-weights, count - 1, axis=1)[:, :count]
        tokens = np.pad(window.tokens, (0, max(0, count - len(window))))
        return tokens[kept].astype(np.int32), np.take_along_axis(weights, kept, 1)
