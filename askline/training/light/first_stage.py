"""
Training of the first stage, the network of the shipped `cosinet`: lists, network and training.

A first stage gets candidates of retrieval as well as of one paragraph, so it is trained on lists of
both kinds: a question's own candidates, alone or among many from other questions of the same
source; from another source, the style of a text would tell them apart. `askline.rankers.cosinet`
runs it without torch. Its relevance feedback, which needs the whole list, has no parameters and is
not part of the network here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...engine.lexical_matches import LexicalMatches, TokenizedList, feature_matrix
from ...engine.numpy_ops import FloatArray, IntArray
from ...evaluation import evaluate
from ...models.light_config import (
    COVERAGE_SCALE,
    FEATURES,
    FIRST_STAGE_CHANNELS,
    MAX_CANDIDATE_WORDS,
    FirstStageConfig,
)
from ...models.word_vectors import WordVectors
from ...rankers.cosinet import Cosinet, FirstStageNetwork
from ...types import Question, QuestionSet
from ..checkpoint import Epoch
from ..loop import SeededOnceTask, TrainingRecipe, TrainingStep, run_training
from ..optimizer import AdamW, Optimizer, ParameterGroup
from .encoded_questions import PaddedTexts
from .light_networks import PooledConvolution
from .light_training import DEV_MEASURES, TrainedLightRanker, folder_name, tensors_of

__all__ = [
    "FINE_TUNING",
    "FirstStageBatch",
    "FirstStageExample",
    "FirstStageRecipe",
    "TorchFirstStage",
    "Vocabulary",
    "first_stage_examples",
    "train_first_stage",
]

_ADDED = ((0.45, 0), (0.75, 25), (0.97, 100), (1.0, 300))
"""(cumulative share of the questions, sentences added from other texts)."""

_KEPT = 24
"""Candidates of a list that are learned from: answers, the likeliest others, and a sample."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstStageExample:
    """A question with some candidates of its list, the answers first."""

    answers: int
    log_weight: FloatArray  # (candidates,) log of how many candidates a sampled one represents
    features: FloatArray  # (candidates, features)
    question_words: IntArray  # (question words,) numbers of the vocabulary
    scarcity: FloatArray  # (question words,)
    best: FloatArray  # (candidates, question words)
    exact: NDArray[np.bool_]  # (candidates, question words)
    candidate_words: tuple[IntArray, ...]  # the words of each candidate
    related: tuple[FloatArray, ...]  # of each word to the question


class Vocabulary:
    """Words by number, in the order first met; the empty word is number 0."""

    def __init__(self) -> None:
        self._number = {"": 0}

    def numbers(self, words: Sequence[str]) -> IntArray:
        """The number of each word, a new one for a new word."""
        take = self._number.setdefault
        return np.array([take(word, len(self._number)) for word in words], np.int64)

    def table(self, vectors: WordVectors) -> tuple[FloatArray, FloatArray]:
        """Vectors and rarities, in the order of the numbers."""
        words = list(self._number)
        rows, rarity = vectors.of(words), vectors.idf(words)
        rows[0] = rarity[0] = 0.0
        return rows, rarity


def first_stage_examples(
    sets: Sequence[QuestionSet], vectors: WordVectors, vocabulary: Vocabulary, *, seed: int
) -> Iterator[FirstStageExample]:
    """One for each answerable question."""
    draw = random.Random(seed)
    pools: dict[tuple[str, bool], list[str]] = {}
    for own in sets:
        for question in own:
            pools.setdefault(_source(own, question), []).extend(question.texts)
    for source, texts in pools.items():
        pools[source] = list(dict.fromkeys(texts))
    for own in sets:
        for question in own:
            if question.answerable:
                texts = _list(question, pools[_source(own, question)], draw)
                yield _example(question, texts, vectors, vocabulary, draw)


def _source(own: QuestionSet, question: Question) -> tuple[str, bool]:
    return own.name, question.candidates[0].text.islower()


def _list(question: Question, pool: Sequence[str], draw: random.Random) -> list[str]:
    """The question's own texts, then those from elsewhere. A lone answer always gets some."""
    own = question.texts
    drawn = draw.random()
    count = next(number for share, number in _ADDED if drawn <= share)
    if len(own) == 1:
        count = max(count, _ADDED[1][1])
    elsewhere = draw.sample(pool, min(count, len(pool)))
    return own + [text for text in elsewhere if text not in set(own)]


def _example(
    question: Question,
    texts: Sequence[str],
    vectors: WordVectors,
    vocabulary: Vocabulary,
    draw: random.Random,
) -> FirstStageExample:
    listing = TokenizedList.of(question.text, texts, vectors)
    matches = LexicalMatches.of(listing)
    direct = feature_matrix(listing, matches)
    labels = [candidate.is_answer for candidate in question.candidates]
    chosen, log_weight = _chosen(direct[:, 1] + 0.5 * direct[:, 3], labels, draw)
    number = vocabulary.numbers(listing.distinct)
    related = matches.related.max(axis=0)
    rows = [
        listing.words[start : start + min(length, MAX_CANDIDATE_WORDS)]
        for start, length in _spans(listing, chosen)
    ]
    return FirstStageExample(
        answers=sum(labels),
        log_weight=log_weight,
        features=direct[chosen],
        question_words=number[: listing.question_size],
        scarcity=matches.scarcity,
        best=matches.best[chosen],
        exact=matches.counts[chosen] > 0,
        candidate_words=tuple(number[row] for row in rows),
        related=tuple(related[row] for row in rows),
    )


def _spans(listing: TokenizedList, chosen: Sequence[int]) -> list[tuple[int, int]]:
    return [(int(listing.starts[place]), int(listing.lengths[place])) for place in chosen]


def _chosen(
    promise: FloatArray, labels: Sequence[bool], draw: random.Random
) -> tuple[list[int], FloatArray]:
    """
    All answers, the most promising others, and some of the rest with the weight of all of them.

    Without the weights the others would look more promising than those of a real list, and the
    network would learn to mistrust what is promising.
    """
    answers = [place for place, answer in enumerate(labels) if answer]
    others = [place for place in range(len(promise)) if not (place < len(labels) and labels[place])]
    others.sort(key=lambda place: -promise[place])
    room = max(2, _KEPT - len(answers))
    if len(others) <= room:
        return answers + others, np.zeros(len(answers) + len(others), np.float32)
    top, rest = others[: room // 2], others[room // 2 :]
    sample = draw.sample(rest, room - len(top))
    weights = np.zeros(len(answers) + room, np.float32)
    weights[-len(sample) :] = math.log(len(rest) / len(sample))
    return answers + top + sample, weights


@dataclass(frozen=True, slots=True, eq=False)
class FirstStageBatch:
    """Examples, padded: questions to one length, lists to one size, candidates to one length."""

    features: Tensor  # (lists, candidates, features)
    present: Tensor  # (lists, candidates) bool
    answer: Tensor  # (lists, candidates) bool
    log_weight: Tensor  # (lists, candidates)
    question_words: Tensor  # (lists, question words)
    in_question: Tensor  # (lists, question words) float
    scarcity: Tensor  # (lists, question words)
    best: Tensor  # (lists, candidates, question words)
    exact: Tensor  # (lists, candidates, question words)
    candidate_words: Tensor  # (lists, candidates, words)
    in_candidate: Tensor  # (lists, candidates, words) float
    related: Tensor  # (lists, candidates, words)

    @classmethod
    def of(cls, examples: Sequence[FirstStageExample]) -> FirstStageBatch:
        """Pad with zeros."""
        lists = len(examples)
        most = max(len(one.features) for one in examples)
        question_words = max(len(one.question_words) for one in examples)
        candidate_words = max(len(words) for one in examples for words in one.candidate_words)
        padded = {
            "features": np.zeros((lists, most, len(FEATURES)), np.float32),
            "present": np.zeros((lists, most), np.bool_),
            "answer": np.zeros((lists, most), np.bool_),
            "log_weight": np.zeros((lists, most), np.float32),
            "question_words": np.zeros((lists, question_words), np.int64),
            "in_question": np.zeros((lists, question_words), np.float32),
            "scarcity": np.zeros((lists, question_words), np.float32),
            "best": np.zeros((lists, most, question_words), np.float32),
            "exact": np.zeros((lists, most, question_words), np.float32),
            "candidate_words": np.zeros((lists, most, candidate_words), np.int64),
            "in_candidate": np.zeros((lists, most, candidate_words), np.float32),
            "related": np.zeros((lists, most, candidate_words), np.float32),
        }
        for row, one in enumerate(examples):
            _fill(padded, row, one)
        return cls(**{name: torch.from_numpy(value) for name, value in padded.items()})

    def to(self, device: torch.device) -> FirstStageBatch:
        """The same on another device."""
        parts = {each.name: getattr(self, each.name).to(device) for each in fields(self)}
        return FirstStageBatch(**parts)


def _fill(padded: dict[str, np.ndarray], row: int, one: FirstStageExample) -> None:
    size, question_words = one.best.shape
    for name in ("features", "log_weight"):
        padded[name][row, :size] = getattr(one, name)
    padded["present"][row, :size] = True
    padded["answer"][row, : one.answers] = True
    for name in ("question_words", "scarcity"):
        padded[name][row, :question_words] = getattr(one, name)
    padded["in_question"][row, :question_words] = 1
    for name in ("best", "exact"):
        padded[name][row, :size, :question_words] = getattr(one, name)
    for place, (words, related) in enumerate(zip(one.candidate_words, one.related, strict=True)):
        padded["candidate_words"][row, place, : len(words)] = words
        padded["in_candidate"][row, place, : len(words)] = 1
        padded["related"][row, place, : len(words)] = related


class TorchFirstStage(nn.Module):
    """Direct features, learned weights for question words, and Cosinet's two convolutions."""

    mean: Tensor
    scale: Tensor

    def __init__(self, config: FirstStageConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        own, around = config.dimensions, config.width // 2
        self.register_buffer("mean", torch.zeros(len(FEATURES)))
        self.register_buffer("scale", torch.ones(len(FEATURES)))
        self.terms = nn.Conv1d(own + 2, config.terms, 3, padding=1)
        self.weights = nn.Linear(config.terms, 3)
        shape = config.filters, config.width
        self.candidate = PooledConvolution(own, FIRST_STAGE_CHANNELS, *shape)
        self.question = nn.Conv1d(own + 1, *shape, padding=around)
        self.hidden = nn.Linear(config.inputs, config.hidden)
        self.score = nn.Linear(config.hidden, 1)
        self.direct = nn.Linear(len(FEATURES), 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: FirstStageBatch, vectors: Tensor, rarity: Tensor) -> Tensor:
        """(lists, candidates)."""
        direct = (batch.features - self.mean) / self.scale
        question_words = vectors[batch.question_words]  # (lists, question words, dimensions)
        rare = rarity[batch.question_words]
        question = self._question(question_words, rare, batch.in_question)[:, None]
        candidate = self._candidates(batch, vectors, rarity)
        pairs = torch.cat([question * candidate, question - candidate], 2)
        seen = [direct, self._coverages(batch, question_words, rare), self.dropout(pairs)]
        hidden = self.hidden(torch.cat(seen, 2)).relu()
        scores: Tensor = self.score(hidden)[..., 0] + self.direct(direct)[..., 0]
        return scores

    def _coverages(self, batch: FirstStageBatch, question_words: Tensor, rare: Tensor) -> Tensor:
        inputs = torch.cat([question_words, rare[..., None], batch.scarcity[..., None]], 2)
        inside = batch.in_question[..., None]
        hidden = self.terms((inputs * inside).transpose(1, 2)).tanh().transpose(1, 2)
        weights = F.softplus(self.weights(hidden)) * inside  # (lists, question words, coverages)
        weights = weights / (weights.sum(1, keepdim=True) + 1e-3)
        squared = batch.best**2
        met = [
            (part @ weights[..., column : column + 1])[..., 0]
            for column, part in enumerate((squared, squared**2, batch.exact))
        ]
        return torch.stack(met, 2) * COVERAGE_SCALE

    def _question(self, question_words: Tensor, rare: Tensor, inside: Tensor) -> Tensor:
        inputs = torch.cat([self.dropout(question_words), rare[..., None]], 2) * inside[..., None]
        values = self.question(inputs.transpose(1, 2))  # (lists, filters, question words)
        pooled: Tensor = values.masked_fill(inside[:, None] == 0, -torch.inf).amax(2)
        return pooled

    def _candidates(self, batch: FirstStageBatch, vectors: Tensor, rarity: Tensor) -> Tensor:
        words, inside = batch.candidate_words[batch.present], batch.in_candidate[batch.present]
        related = batch.related[batch.present]  # (pairs, words)
        exact = (related > 0.995).float()  # no other word than the very one comes so near
        rare = rarity[words] * inside
        beside = torch.stack([related, exact, rare, exact * rare], 2)
        distinct, number = torch.unique(F.pad(words.flatten(), (1, 0)), return_inverse=True)
        texts = PaddedTexts(vectors[distinct], number[1:].view_as(words), inside.sum(1).long())
        found = self.candidate(texts, beside)  # (pairs, filters)
        pooled = vectors.new_zeros(*batch.present.shape, found.shape[1])
        pooled[batch.present] = found
        return pooled


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStageRecipe(TrainingRecipe):
    """The values that the shipped `cosinet` was trained with; chosen on dev sets."""

    epochs: int = 2
    learning_rate: float = 2e-3
    batch_size: int = 32
    dropout: float = 0.1
    weight_decay: float = 1e-4


FINE_TUNING = FirstStageRecipe(epochs=3, learning_rate=1e-3, batch_size=8, dropout=0.0)
"""To continue from trained weights on a small set; chosen on the train and dev sets of WikiQA."""


class _FirstStageTask(SeededOnceTask[list[int]]):
    """Lists of similar size are batched together."""

    recipe: FirstStageRecipe
    network: TorchFirstStage

    def __init__(
        self,
        network: TorchFirstStage,
        lists: Sequence[FirstStageExample],
        table: tuple[FloatArray, FloatArray],
        recipe: FirstStageRecipe,
    ) -> None:
        self.network, self.recipe, self._lists = network, recipe, lists
        self._device = network.mean.device
        self._vectors, self._rarity = (torch.as_tensor(part, device=self._device) for part in table)
        self._draw = random.Random(recipe.seed)

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self._lists) // self.recipe.batch_size)

    def seed_run(self) -> np.random.Generator:
        """Torch was seeded before the network was created."""
        return np.random.default_rng(self.recipe.seed)

    def new_optimizer(self) -> Optimizer:
        rate, decay = self.recipe.learning_rate, self.recipe.weight_decay
        return AdamW(self.network, [ParameterGroup(list(self.network.parameters()), rate, decay)])

    def batches(self, epoch: int, random: np.random.Generator) -> list[list[int]]:  # noqa: ARG002
        return _batches(self._lists, self.recipe.batch_size, self._draw)

    def random_state(self) -> dict[str, Any] | None:
        """With the generator of the batches."""
        version, numbers, spare = self._draw.getstate()
        state = super().random_state() or {}
        return state | {"batches": [version, list(numbers), spare]}

    def restore_random_state(self, state: Mapping[str, Any]) -> None:
        """With the generator of the batches."""
        super().restore_random_state(state)
        version, numbers, spare = state["batches"]
        self._draw.setstate((version, tuple(numbers), spare))

    def loss(self, part: list[int]) -> Tensor:
        batch = FirstStageBatch.of([self._lists[place] for place in part]).to(self._device)
        return _loss(self.network(batch, self._vectors, self._rarity), batch)


def train_first_stage(
    lists: Sequence[FirstStageExample],
    vocabulary: Vocabulary,
    vectors: WordVectors,
    config: FirstStageConfig,
    recipe: FirstStageRecipe,
    *,
    name: str,
    start: Mapping[str, FloatArray] | None = None,
    dev: QuestionSet | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[TrainingStep], None] = lambda _: None,
) -> TrainedLightRanker:
    """
    Minimize the negative log of the share of a list's softmax that its answers have.

    `vocabulary` is the one that the lists were numbered with, `name` that of their set. `start` are
    the tensors of a model folder to continue from: a first stage is fine-tuned with them, and
    trained anew without. The dev set is ranked as the model folder would, with relevance feedback.
    If the file `checkpoint` exists, training resumes after the epochs it holds.
    """
    torch.manual_seed(recipe.seed)
    network = TorchFirstStage(config, dropout=recipe.dropout)
    if start is None:
        _initialize(network, lists)
    else:
        own = {each: torch.tensor(start[folder_name(each)]) for each in network.state_dict()}
        network.load_state_dict(own)
    network.to(device)

    def measure() -> dict[str, float]:
        assert dev is not None
        ranker = Cosinet(None, FirstStageNetwork(config, tensors_of(network)), vectors)
        return evaluate(ranker, dev, measures=DEV_MEASURES).percent

    history = run_training(
        [_FirstStageTask(network, lists, vocabulary.table(vectors), recipe)],
        settings=f"{config} {recipe} on {len(lists)} questions of {name}",
        evaluate=None if dev is None else measure,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
        on_step=on_step,
    )
    return TrainedLightRanker(network, config, recipe, name, history)


def _initialize(network: TorchFirstStage, lists: Sequence[FirstStageExample]) -> None:
    """Features at mean 0 and deviation 1, and a lexical ranker to start from."""
    seen = np.concatenate([one.features for one in lists])
    network.mean.copy_(torch.from_numpy(seen.mean(axis=0)))
    network.scale.copy_(torch.from_numpy(seen.std(axis=0) + 1e-3))
    weight = torch.zeros(len(FEATURES))
    weight[FEATURES.index("covered_here")] = 10.0
    weight[FEATURES.index("bm25")] = 5.0
    with torch.no_grad():
        network.direct.weight.copy_((weight * network.scale)[None])


def _batches(lists: Sequence[FirstStageExample], size: int, draw: random.Random) -> list[list[int]]:
    order = sorted(
        range(len(lists)), key=lambda place: (len(lists[place].features) // 6, draw.random())
    )
    batches = [order[first : first + size] for first in range(0, len(order), size)]
    draw.shuffle(batches)
    return batches


def _loss(scores: Tensor, batch: FirstStageBatch) -> Tensor:
    weighed = (scores + batch.log_weight).masked_fill(~batch.present, -1e4)
    shares = weighed.log_softmax(1).masked_fill(~batch.answer, -1e4)
    return -shares.logsumexp(1).mean()
