"""
The phrase model: candidate phrases of a text with their vectors, and vectors of questions.

One encoder does both, or texts have a smaller one, the document encoder: it shares the embeddings
of the other and was trained to give the same states with fewer layers. A text is encoded once, and
its states give the candidates. The vector of a phrase comes from the states at its ends or, if the
config says so, from two marker tokens that are encoded against the text.

The folder of a model contains `config.json`, `weights.safetensors`, `tokenizer.json` and
`README.md`. The tensors of the encoder are named and stored as those of a cascade, float or int8;
the word embeddings may also be int4. Those of the document encoder's layers are named
`documents.layers.N`. The large matrices of the heads are int8 with one scale per
row. Everything is checked against the sizes in the config, which is written last.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from ..engine.numpy_ops import IntArray
from ..engine.quantization import int4_shapes, quantize_rows
from ..engine.threads import WorkerThreads, equal_length_batches
from ..errors import ModelError
from ..models.encoder_config import EncoderConfig, check_encoder_tensors, dense_shapes
from ..models.folder import ModelFolder, shipped_model_folder, write_folder
from .phrase_encoder import Decoding, KeyValueCache, PhraseEncoder, PhraseHeads, decode_spans
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
    "document_tensors",
    "minor_tokens",
    "quantize_matrices",
    "read_phrase_folder",
    "write_phrase_folder",
]

KIND = "phrases"
PhraseForm = Literal["markers", "span"]
"""Where the vector of a phrase comes from: two marker tokens, or the states at its ends."""
Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Tensors = dict[str, NDArray[Any]]
_DOCUMENTS = "documents."
_LEXICAL_SIZE = 128  # of the keys and queries that weight words
_SPAN_HIDDEN = 128  # of the layer that scores the ends of spans
_PUNCTUATION = string.punctuation + "«»“”‘’–—…"
_WINDOWS_PER_BATCH = 64  # windows of a long text that are encoded at a time


@dataclass(frozen=True, slots=True)
class PhraseSpan:
    """A phrase of a text: `text[start:end]`."""

    text: str
    start: int
    end: int
    log_probability: float
    """Of the extractor, which does not know any question."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPhrases:
    """The phrases of a text, one row per phrase."""

    phrases: tuple[PhraseSpan, ...]
    dense: Floats  # (phrases, size + 1): the last column is the extractor's log-probability
    words: Ints  # (phrases, k): token ids of words around the phrase
    weights: Floats  # (phrases, k): the weight of each word; 0 if there are fewer words
    model: str = ""
    """The identity of the model that encoded them."""

    def __len__(self) -> int:
        return len(self.phrases)


class EncodedQuestion:
    """The vector of a question, and the weights of words that it expects around an answer."""

    def __init__(self, dense: Floats, states: Floats, tokens: Ints, model: PhraseModel) -> None:
        self.dense = dense  # (size + 1,)
        self._states, self._tokens, self._model = states, tokens, model

    @property
    def model(self) -> str:
        """The identity of its model; it can only be compared with phrases of that model."""
        return self._model.config.identity

    def lexical(self, words: Ints, weights: Floats) -> Floats:
        """The part of the scores (phrases,) that comes from the words around the phrases."""
        if not words.size:
            return np.zeros(len(words), np.float32)
        occurs = np.zeros(words.max() + 1, bool)
        occurs[words] = True
        distinct = np.flatnonzero(occurs).astype(np.int32)
        question_weights = np.zeros(len(occurs), np.float32)
        question_weights[distinct] = self._model.word_weights(self._states, self._tokens, distinct)
        scores: Floats = np.einsum("pk,pk->p", question_weights[words], weights)
        return scores


_EncoderOutputs = tuple[Floats, KeyValueCache]
"""The states of a window (tokens, hidden), and its key/value cache."""


class _Candidates(NamedTuple):
    """The candidate phrases of a window."""

    phrases: tuple[PhraseSpan, ...]
    spans: Ints  # (phrases, 2): first and last token
    states: Floats  # (tokens, hidden) of the window
    cache: KeyValueCache


class PhraseModel:
    """A loaded model folder. It never changes; several threads may use it."""

    def __init__(
        self,
        config: PhraseConfig,
        encoder: PhraseEncoder,
        heads: dict[str, Floats],
        tokenizer: Any,
        threads: WorkerThreads | None = None,
        *,
        document_encoder: PhraseEncoder | None = None,
    ) -> None:
        self.config = config
        self._question_encoder, self._encoder = encoder, document_encoder or encoder
        self._heads, self._tokenizer = PhraseHeads(heads), tokenizer
        self._threads = threads or WorkerThreads()
        vocabulary = config.encoder.vocabulary
        self._minor = minor_tokens(tokenizer, config.articles, vocabulary)

    @classmethod
    def load(
        cls,
        folder: str | PathLike[str] | None = None,
        *,
        language: str = "en",
        threads: int | None = None,
    ) -> PhraseModel:
        """
        Load a folder that `askline train phrases` wrote; by default, the shipped model.

        Without a folder, `language` chooses among the shipped models: `en` or `fr`. `threads` is
        the number of windows that are encoded at once; by default, one per core.
        """
        path = folder if folder is not None else shipped_model_folder(KIND, language)
        config, tensors, heads = read_phrase_folder(path)
        tokenizer = load_tokenizer(path)
        vocabulary = tokenizer.get_vocab_size()
        if vocabulary > config.encoder.vocabulary:
            raise ModelError(
                f"The tokenizer in {path} must have at most {config.encoder.vocabulary} tokens, "
                f"as the encoder, got {vocabulary}. Copy the folder again."
            )
        encoder = PhraseEncoder(config.encoder, tensors)
        documents = encoder
        if config.document_layers:
            documents = PhraseEncoder(config.document_encoder, document_tensors(tensors))
        workers = WorkerThreads(threads)
        return cls(config, encoder, heads, tokenizer, workers, document_encoder=documents)

    def extract(
        self, text: str, *, limit: int = 100, decoding: Decoding = "joint"
    ) -> tuple[PhraseSpan, ...]:
        """Candidate phrases, at most `limit` per window, in the order of the windows."""
        return tuple(
            phrase
            for window in self._windows(text)
            for phrase in self._find_candidates(window, text, limit, decoding).phrases
        )

    def encode(self, text: str, *, limit: int = 100) -> EncodedPhrases:
        """Candidate phrases with their vectors, at most `limit` per window."""
        return self._concatenate(list(self.encode_windows(text, limit=limit)))

    def encode_windows(self, text: str, *, limit: int = 100) -> Iterator[EncodedPhrases]:
        """The same per window, for texts whose vectors do not fit into memory together."""
        windows = ((text, window) for window in self._windows(text))
        while batch := list(islice(windows, _WINDOWS_PER_BATCH)):
            yield from self._encode_batch(batch, limit)

    def encode_many(self, texts: Sequence[str], *, limit: int = 100) -> list[EncodedPhrases]:
        """Encode several texts at once, which keeps all cores busy even if each text is short."""
        per_text = [list(self._windows(text)) for text in texts]
        batch = [
            (text, window)
            for text, windows in zip(texts, per_text, strict=True)
            for window in windows
        ]
        encoded = iter(self._encode_batch(batch, limit))
        return [self._concatenate(list(islice(encoded, len(windows)))) for windows in per_text]

    def candidate_tokens(self, text: str, *, limit: int = 100) -> Iterator[tuple[Ints, Ints]]:
        """For each window its tokens, and the first and last token of each candidate (n, 2)."""
        for window in self._windows(text):
            yield window.tokens, self._find_candidates(window, text, limit, "joint").spans

    def encode_question(self, question: str) -> EncodedQuestion:
        """The vector of a question; a very long question is truncated."""
        from ..rankers.requests import check_question  # not needed to encode phrases

        check_question(question)
        tokens = tokenize_question(question, self._tokenizer)
        states, _ = self._question_encoder.encode(tokens)
        mean = states.mean(0)
        vector = self._heads.linear("question", np.concatenate([states[0], mean]))
        trust = self._heads.linear("trust", mean)  # the weight of the extractor's log-probability
        return EncodedQuestion(np.concatenate([vector, trust]), states, tokens, self)

    def word_weights(self, states: Floats, tokens: Ints, words: Ints) -> Floats:
        """The weights (words,) of words for a question with these states and tokens."""
        embeddings = self._question_encoder.word_vectors(words)
        weights = self._heads.expanded_word_weights(states, embeddings)
        question_weights = self._heads.question_word_weights(states)
        for token, weight in zip(tokens, question_weights, strict=True):
            weights[words == token] += weight
        return weights

    def _concatenate(self, parts: Sequence[EncodedPhrases]) -> EncodedPhrases:
        if len(parts) == 1:
            return parts[0]
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
        return iterate_windows(text, self._tokenizer, size=config.window, overlap=config.overlap)

    def _encode_batch(
        self, batch: Sequence[tuple[str, TokenWindow]], limit: int
    ) -> list[EncodedPhrases]:
        """
        The phrases of each window, several windows at a time.

        Windows of the same length are encoded together, whatever text they belong to. Their phrases
        are the same to the byte as if they were encoded alone.
        """
        encoded: dict[int, EncodedPhrases] = {}

        def encode_group(group: IntArray) -> None:
            windows = [batch[at][1] for at in group.tolist()]
            encoder_outputs = self._encode_states(windows)
            for at, outputs in zip(group.tolist(), encoder_outputs, strict=True):
                text, window = batch[at]
                encoded[at] = self._encode_window(text, window, outputs, limit)

        numbers = np.arange(len(batch))
        lengths = np.array([len(window) for _, window in batch], np.int64)
        threads = self._threads.threads
        groups = equal_length_batches(numbers, lengths, np.zeros_like(lengths), threads=threads)
        self._threads.run_all(groups, encode_group)
        return [encoded[at] for at in range(len(batch))]

    def _encode_states(self, windows: Sequence[TokenWindow]) -> list[_EncoderOutputs]:
        """The states of windows of the same length, with a key/value cache if markers need it."""
        keep = self.config.form == "markers"
        if keep or not self._encoder.is_int8:
            return [self._encoder.encode(window.tokens, keep=keep) for window in windows]
        tokens = np.stack([window.tokens for window in windows])
        return [(states, {}) for states in self._encoder.encode_batch(tokens)]

    def _encode_window(
        self, text: str, window: TokenWindow, outputs: _EncoderOutputs, limit: int
    ) -> EncodedPhrases:
        phrases, spans, states, cache = self._find_candidates(window, text, limit, "joint", outputs)
        if not phrases:
            return self._concatenate([])
        if self.config.form == "markers":
            ends = self._encoder.encode_markers(window.tokens[spans], spans, cache)
        else:
            ends = states[spans]  # (phrases, 2, hidden)
        phrase_states = ends.reshape(len(spans), -1)
        log_probabilities = np.array([[phrase.log_probability] for phrase in phrases], np.float32)
        vectors = self._heads.linear("phrase", phrase_states)
        return EncodedPhrases(
            phrases,
            np.concatenate([vectors, log_probabilities], 1),
            *self._context_words(phrase_states, states, window),
            self.config.identity,
        )

    def _find_candidates(
        self,
        window: TokenWindow,
        text: str,
        limit: int,
        decoding: Decoding,
        outputs: _EncoderOutputs | None = None,
    ) -> _Candidates:
        """The candidates of a window; without `outputs`, it is encoded first."""
        states, cache = outputs or self._encoder.encode(window.tokens)
        starts, ends = self._heads.span_log_probabilities(states, window)
        minor = None if self._minor is None else self._minor[window.tokens]
        spans, log_probabilities = decode_spans(
            starts, ends, limit=limit, decoding=decoding, minor=minor
        )
        starts_and_ends = window.starts[spans[:, 0]], window.ends[spans[:, 1]]
        columns = (column.tolist() for column in (*starts_and_ends, log_probabilities))
        phrases = tuple(
            PhraseSpan(text[start:end], start, end, log_probability)
            for start, end, log_probability in zip(*columns, strict=True)
        )
        return _Candidates(phrases, spans, states, cache)

    def _context_words(
        self, phrase_states: Floats, states: Floats, window: TokenWindow
    ) -> tuple[Ints, Floats]:
        """The words around each phrase with the highest weights, (phrases, words) each."""
        count, phrases = self.config.words, len(phrase_states)
        if not count:
            return np.zeros((phrases, 0), np.int32), np.zeros((phrases, 0), np.float32)
        weights, tokens = self._heads.context_word_weights(phrase_states, states), window.tokens
        if weights.shape[1] < count:
            weights = np.pad(weights, ((0, 0), (0, count - weights.shape[1])))
            tokens = np.pad(tokens, (0, count - len(tokens)))
        best = np.argpartition(-weights, count - 1, axis=1)[:, :count]
        return tokens[best].astype(np.int32), np.take_along_axis(weights, best, 1)


def minor_tokens(
    tokenizer: Any, articles: Sequence[str], vocabulary: int
) -> NDArray[np.bool_] | None:
    """Which tokens (vocabulary,) are articles or punctuation; None without articles."""
    if not articles:
        return None
    tokens = map(tokenizer.token_to_id, (*articles, *_PUNCTUATION))
    minor = np.zeros(vocabulary, bool)
    minor[[token for token in tokens if token is not None]] = True
    return minor


@dataclass(frozen=True, slots=True)
class PhraseConfig:
    """The `config.json` of a phrase model."""

    encoder: EncoderConfig
    form: PhraseForm = "markers"
    size: int = 384
    """The size of a vector, without the extractor's log-probability."""
    words: int = 24
    """Words stored per phrase; 0 for a model without lexical weights."""
    window: int = 384
    overlap: int = 128
    identity: str = ""
    """A digest of the weights: vectors of different models cannot be compared."""
    articles: tuple[str, ...] = ()
    """Candidates that differ only by these words or punctuation at their ends count as one."""
    document_layers: int = 0
    """Layers of the document encoder; 0 if texts and questions have one encoder."""
    document_inner: int = 0
    """The feed-forward size of the document encoder."""
    document_block: int = 0
    """The `block` of the document encoder."""

    @property
    def document_encoder(self) -> EncoderConfig:
        """The encoder of texts; without layers of its own, that of questions."""
        if not self.document_layers:
            return self.encoder
        sizes = {"layers": self.document_layers, "inner": self.document_inner}
        return replace(self.encoder, **sizes, block=self.document_block)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, as float."""
        shapes = self.encoder.shapes() | self.head_shapes()
        for layer in range(self.document_layers):
            shapes |= self.document_encoder.layer_shapes(f"{_DOCUMENTS}layers.{layer}")
        return shapes

    def head_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the tensors of the heads."""
        hidden = self.encoder.width
        shapes = {
            **dense_shapes("phrase", self.size, 2 * hidden),
            **dense_shapes("question", self.size, 2 * hidden),
            **dense_shapes("trust", 1, hidden),
            **dense_shapes("spans.start", 1, hidden),
            **dense_shapes("spans.first", _SPAN_HIDDEN, hidden),
            "spans.last.weight": (_SPAN_HIDDEN, hidden),
            "spans.length.weight": (MAX_PHRASE_TOKENS, _SPAN_HIDDEN),
            **dense_shapes("spans.join", 1, _SPAN_HIDDEN),
        }
        if self.words:
            shapes |= dense_shapes("lexical.seek", _LEXICAL_SIZE, 2 * hidden)
            shapes |= dense_shapes("lexical.key", _LEXICAL_SIZE, hidden)
            shapes |= dense_shapes("lexical.own", 1, hidden)
            shapes |= dense_shapes("lexical.expand", hidden, hidden)
            shapes |= {"lexical.shift": (1,), "lexical.threshold": (1,)}
        return shapes


def read_phrase_folder(
    folder: str | PathLike[str],
) -> tuple[PhraseConfig, Tensors, dict[str, Floats]]:
    """The config, the tensors of the encoders as stored, and those of the heads as float."""
    opened = ModelFolder.open(folder, kind=KIND)
    config = _read_config(opened)
    tensors = opened.stored_tensors()
    shapes = config.shapes()
    if tensors.get("words.weight", np.zeros(0)).dtype == np.uint8:
        rows, columns = shapes["words.weight"]
        shapes["words.weight"], shapes["words.scale"] = int4_shapes(rows, columns)
    check_encoder_tensors(shapes, tensors, path=opened.path)
    heads = {name: tensors.pop(name).astype(np.float32) for name in config.head_shapes()}
    for name in heads:
        scale = tensors.pop(f"{name.removesuffix('.weight')}.scale", None)
        if scale is not None:
            heads[name] *= scale[:, None]
    return config, tensors, heads


def document_tensors(tensors: Mapping[str, NDArray[Any]]) -> Tensors:
    """The tensors of the document encoder: its layers, and the embeddings that both share."""
    shared = {
        name: value
        for name, value in tensors.items()
        if not name.startswith(("layers.", _DOCUMENTS))
    }
    own = {
        name.removeprefix(_DOCUMENTS): value
        for name, value in tensors.items()
        if name.startswith(_DOCUMENTS)
    }
    return shared | own


def write_phrase_folder(
    folder: str | PathLike[str],
    *,
    config: PhraseConfig,
    tensors: Mapping[str, NDArray[Any]],
    tokenizer: str,
    card: str,
) -> Path:
    """Write a folder for `read_phrase_folder`; `tokenizer` is the content of its JSON file."""
    digest = hashlib.sha256(save({**tensors})).hexdigest()[:16]
    return write_folder(
        folder,
        config={**asdict(config), "identity": digest, "kind": KIND},
        tensors=tensors,
        card=card,
        files={"tokenizer.json": tokenizer.encode()},
    )


def quantize_matrices(tensors: Mapping[str, Floats]) -> Tensors:
    """Matrices as int8 with one scale per row; vectors and narrow matrices stay float."""
    quantized: Tensors = {}
    for name, value in tensors.items():
        stem, _, kind = name.rpartition(".")
        if kind == "weight" and value.ndim == 2 and min(value.shape) > 2:
            quantized[name], quantized[f"{stem}.scale"] = quantize_rows(value)
        else:
            quantized[name] = value
    return quantized


def _read_config(folder: ModelFolder) -> PhraseConfig:
    path = folder.path / "config.json"
    given = {field.name: folder.config.get(field.name) for field in fields(PhraseConfig)}
    try:
        given["articles"] = tuple(given["articles"] or ())
        for name in ("document_layers", "document_inner", "document_block"):  # older ones have none
            given[name] = given[name] or 0
        encoder = EncoderConfig.from_entry(folder.config["encoder"])
        config = PhraseConfig(**{**given, "encoder": encoder})  # type: ignore[arg-type]
    except (TypeError, KeyError) as error:
        raise ModelError(f"{path} does not describe a model: {error}.") from error
    sizes = [config.size, config.words, config.window, config.overlap]
    sizes += [config.document_layers, config.document_inner, config.document_block]
    valid_sizes = all(isinstance(size, int) and size >= 0 for size in sizes)
    valid_sizes &= bool(config.document_layers) == bool(config.document_inner)
    if config.document_block:
        valid_sizes &= config.form == "span" and config.document_layers > 0
    valid_sizes &= all(isinstance(word, str) for word in config.articles)
    if config.form not in get_args(PhraseForm) or not valid_sizes or list(encoder.problems()):
        raise ModelError(f"{path} must have valid sizes and a form, got {given}.")
    return config
