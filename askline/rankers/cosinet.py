"""
`cosinet` (Bonadiman & Moschitti, 2020): the ranker, and its networks in numpy.

Without a folder it is the first-stage filter that ships with askline, which ignores the order of
the texts: `FirstStageNetwork`. With a folder it is any network that `askline train cosinet` wrote,
including those that read the list in its order: `CosinetNetwork`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.resources import files
from os import PathLike, fspath
from typing import ClassVar

import numpy as np

from ..engine.lexical_matches import LexicalMatches, PairFeatures, TokenizedList, feature_matrix
from ..engine.numpy_layers import ConvolutionLookup, apply_list_layer, list_layer_shapes
from ..engine.numpy_ops import FloatArray, matmul, segment_reduce, weighted_sum
from ..models.folder import ModelFolder, check_shapes
from ..models.light_config import (
    COVERAGE_SCALE,
    MAX_CANDIDATE_WORDS,
    CosinetConfig,
    FirstStageConfig,
)
from ..models.word_vectors import WordVectors
from .base import Ranker, folder_to_pickle, spec_with_folder
from .requests import ScoreArray

__all__ = ["Cosinet", "CosinetNetwork", "FirstStageNetwork", "cosinet_shapes"]

_FEEDBACK_COMPONENTS = 64  # leading principal components; all 128 are no better and cost twice
_FEEDBACK_SHARPNESS = 2.0  # of the weights of the best candidates
_MIN_WORDS_FOR_THREAD = 8_000  # in a shorter list, starting a thread takes longer than it saves

_KEPT_BYTES = 2**24
"""
Linux's C library returns freed memory to the kernel until it has seen a block as large as this
allocated and freed. Getting the pages back takes up to a quarter of a call.
"""


@dataclass(frozen=True, slots=True, eq=False)
class FirstStageNetwork:
    """The network's config and weights, with torch's names and shapes."""

    config: FirstStageConfig
    tensors: Mapping[str, FloatArray]

    def scores(self, listing: TokenizedList) -> FloatArray:
        """One score per candidate; it depends on the other candidates, but not on their order."""
        tensors = self.tensors
        np.empty(_KEPT_BYTES, np.uint8)  # allocated and freed, never written
        matches = LexicalMatches.of(listing)
        if len(listing.words) >= _MIN_WORDS_FOR_THREAD:
            with ThreadPoolExecutor(1) as pool:  # numpy releases the interpreter lock
                convolved = pool.submit(self._candidates, listing, matches)
                features, texts = feature_matrix(listing, matches), _text_vectors(listing)
                candidates = convolved.result()
        else:
            candidates = self._candidates(listing, matches)
            features, texts = feature_matrix(listing, matches), _text_vectors(listing)
        features = (features - tensors["features.mean"]) / tensors["features.scale"]
        question = self._question(listing)  # (filters,)
        coverages = self._coverages(listing, matches)
        inputs = [features, coverages, question * candidates, question - candidates]
        hidden = matmul(np.concatenate(inputs, axis=1), tensors["hidden.weight"].T)
        hidden = np.maximum(hidden + tensors["hidden.bias"], 0.0)
        scores = matmul(hidden, tensors["score.weight"][0]) + tensors["score.bias"]
        scores += matmul(features, tensors["direct.weight"][0]) + tensors["direct.bias"]
        return np.asarray(scores + self._feedback(texts, scores))

    def _feedback(self, texts: FloatArray, scores: FloatArray) -> FloatArray:
        """
        Pseudo-relevance feedback: the similarity to the best candidates, more in longer lists.

        An answer that says "he" or "the show" has few of the question's words, but shares its
        subject with sentences that have them.
        """
        weights = np.exp(_FEEDBACK_SHARPNESS * (scores - scores.max()))
        subject = weighted_sum(weights, texts)
        similarity = matmul(texts, subject / max(float(np.linalg.norm(subject)), 1e-6))
        return np.asarray(self.config.feedback * np.log(len(scores)) * similarity, np.float32)

    def _coverages(self, listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
        """(candidates, coverages): the weighted share of question words that match."""
        tensors, size = self.tensors, listing.question_size
        rarities = np.stack([matches.rarity, matches.scarcity], axis=1)
        words = np.concatenate([listing.vectors[:size], rarities], axis=1)
        hidden = np.tanh(_convolved(words, tensors["terms.weight"]) + tensors["terms.bias"])
        raw = hidden @ tensors["weights.weight"].T + tensors["weights.bias"]
        weights = np.logaddexp(raw, 0.0)  # softplus, (question words, coverages)
        weights = weights / (weights.sum(axis=0) + 1e-3)
        squared = matches.best**2
        exact = (matches.counts > 0).astype(np.float32)
        coverages = [
            matmul(*pair) for pair in zip((squared, squared**2, exact), weights.T, strict=True)
        ]
        return np.asarray(np.stack(coverages, axis=1) * COVERAGE_SCALE, np.float32)

    def _question(self, listing: TokenizedList) -> FloatArray:
        """The question's pooled convolution, (filters,)."""
        tensors, size = self.tensors, listing.question_size
        words = np.concatenate([listing.vectors[:size], listing.rarity[:size, None]], axis=1)
        values = _convolved(words, tensors["question.weight"])
        return np.asarray(values.max(axis=0) + tensors["question.bias"], np.float32)

    def _candidates(self, listing: TokenizedList, matches: LexicalMatches) -> FloatArray:
        """The candidates' pooled convolution over their first words, (candidates, filters)."""
        size = listing.question_size
        exact = np.zeros(len(listing.distinct), np.float32)
        exact[:size] = [word != "" for word in listing.distinct[:size]]
        channels = (matches.related.max(axis=0), exact, listing.rarity, exact * listing.rarity)
        weight, bias = self.tensors["candidate.weight"], self.tensors["candidate.bias"]
        # The channels depend on the word alone here, so they are part of the lookup table.
        lookup = ConvolutionLookup.of_words(
            listing.vectors, np.stack(channels, axis=1), weight, bias
        )
        words, lengths = listing.words, listing.lengths
        if lengths.max() > MAX_CANDIDATE_WORDS:
            place = np.arange(len(words)) - listing.starts[listing.owner]
            words = words[place < MAX_CANDIDATE_WORDS]
            lengths = np.minimum(lengths, MAX_CANDIDATE_WORDS)
        return lookup.pooled(words + 1, np.zeros((len(words), 0), np.float32), lengths)


def _text_vectors(listing: TokenizedList) -> FloatArray:
    """(candidates, components): the sum of a candidate's word vectors by rarity, at length 1."""
    words = listing.vectors[:, :_FEEDBACK_COMPONENTS] * listing.rarity[:, None] ** 2
    texts = segment_reduce(np.add, words, listing.starts, listing.lengths, words=listing.words)
    texts /= np.maximum(np.linalg.norm(texts, axis=1, keepdims=True), 1e-6)
    return texts


def _convolved(words: FloatArray, weight: FloatArray) -> FloatArray:
    """(words, inputs) and (filters, inputs, width) → (words, filters), zeros beyond the ends."""
    count, width = len(words), weight.shape[2]
    padded = np.zeros((count + width - 1, words.shape[1]), np.float32)
    padded[width // 2 : width // 2 + count] = words
    return np.asarray(
        sum(padded[tap : tap + count] @ weight[:, :, tap].T for tap in range(width)), np.float32
    )


@dataclass(frozen=True, slots=True, eq=False)
class CosinetNetwork:
    """The network's config and weights, with torch's names and shapes."""

    config: CosinetConfig
    tensors: Mapping[str, FloatArray]

    def scores(self, pairs: PairFeatures) -> FloatArray:
        """One score per candidate."""
        vectors = pairs.lexicon.unit * np.float32(self.config.vector_scale)
        question_rows = np.concatenate([np.zeros(1, np.int64), pairs.question])  # zero word first
        question_words = np.arange(1, len(pairs.question) + 1)
        questions = self._lookup("question", vectors[question_rows]).pooled_per_pair(
            question_words, pairs.question_channels
        )  # (candidates, filters)
        candidates = self._lookup("candidate", vectors).pooled(
            pairs.words, pairs.candidate_channels, pairs.lengths
        )  # (candidates, filters)
        joined = np.concatenate([questions * candidates, questions - candidates], axis=1)
        outputs = apply_list_layer(self.config.list_layer, self.tensors, joined)
        return np.asarray(outputs @ self.tensors["score.weight"][0] + self.tensors["score.bias"])

    def _lookup(self, side: str, vectors: FloatArray) -> ConvolutionLookup:
        weight, bias = self.tensors[f"{side}.weight"], self.tensors[f"{side}.bias"]
        return ConvolutionLookup.of(vectors, weight, bias)


def cosinet_shapes(config: CosinetConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in a model folder of this config."""
    inputs = config.dimensions + len(config.channels)
    shapes: dict[str, tuple[int, ...]] = {}
    for side in ("question", "candidate"):
        shapes[f"{side}.weight"] = (config.filters, inputs, config.width)
        shapes[f"{side}.bias"] = (config.filters,)
    shapes |= list_layer_shapes(config.list_layer, config.pair_size, config.list_hidden)
    outputs = config.pair_size if config.list_layer == "none" else config.list_hidden
    shapes["score.weight"] = (1, outputs)
    shapes["score.bias"] = (1,)
    return shapes


@dataclass(frozen=True, eq=False)
class Cosinet(Ranker):
    """
    A small network over word vectors: word relatedness, convolutions, direct features.

    It ranks a hundred documents in milliseconds. Some networks have a recurrent layer that reads
    the list in its order. Scores depend on the whole list.
    """

    name: ClassVar[str] = "cosinet"

    folder: str | None
    """As given to `load`; empty for the shipped model, None if not loaded from a folder."""
    network: CosinetNetwork | FirstStageNetwork = field(repr=False)
    own_vectors: WordVectors | None = field(repr=False)
    """None for the vectors that ship with askline, which are read when they are first needed."""

    @classmethod
    def load(cls, folder: str | PathLike[str] = "") -> Cosinet:
        """Load a model folder, or the shipped first-stage filter."""
        path = fspath(folder) or str(files("askline.models") / "shipped" / "cosinet")
        opened = ModelFolder.open(path, kind=(CosinetConfig.kind, FirstStageConfig.kind))
        own_vectors = None if opened.has_shipped_vectors else opened.vectors()
        return cls(fspath(folder), _network(opened), own_vectors)

    @property
    def vectors(self) -> WordVectors:
        """The word vectors that the network was trained with."""
        return WordVectors.load() if self.own_vectors is None else self.own_vectors

    @property
    def listwise(self) -> bool:
        if isinstance(self.network, FirstStageNetwork):
            return True
        return self.network.config.list_layer != "none"

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """The logit of each text."""
        if isinstance(self.network, FirstStageNetwork):
            scores = self.network.scores(TokenizedList.of(question, texts, self.vectors))
        else:
            channels = self.network.config.channels
            pairs = PairFeatures.of(question, texts, self.vectors, channels=channels)
            scores = self.network.scores(pairs)
        return np.asarray(scores, np.float64)

    def __str__(self) -> str:
        return spec_with_folder(self.name, self.folder)

    def __reduce__(self) -> tuple[Callable[..., Cosinet], tuple[str]]:
        return type(self).load, (folder_to_pickle(self, self.folder),)


def _network(opened: ModelFolder) -> CosinetNetwork | FirstStageNetwork:
    tensors = opened.tensors()
    if opened.config["kind"] == FirstStageConfig.kind:
        first_stage = FirstStageConfig.from_config(opened.config)
        check_shapes(tensors, first_stage.shapes(), path=opened.path)
        return FirstStageNetwork(first_stage, tensors)
    config = CosinetConfig.from_config(opened.config)
    check_shapes(tensors, cosinet_shapes(config), path=opened.path)
    return CosinetNetwork(config, tensors)
