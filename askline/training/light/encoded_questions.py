"""
Question sets as tensors for the light rankers: word numbers and match channels, computed once.

Texts of different lengths are stored end to end and padded only when a batch is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ...engine.lexical_matches import Lexicon, pair_channels
from ...engine.numpy_ops import FloatArray, IntArray
from ...errors import InputError
from ...models.light_config import LightConfig
from ...models.word_vectors import WordVectors
from ...text.words import split_words
from ...types import QuestionSet

__all__ = [
    "EncodedQuestions",
    "PaddedTexts",
    "QuestionBatch",
    "Ragged",
    "encode_questions",
]


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Rows of different lengths, stored end to end without padding."""

    values: Tensor  # (total, …)
    starts: Tensor  # (rows,)
    lengths: Tensor  # (rows,)

    @classmethod
    def of(
        cls, values: FloatArray | IntArray, lengths: Sequence[int] | IntArray, device: str
    ) -> Ragged:
        """Rows of these lengths, one after the other."""
        ends = np.cumsum(lengths)
        return cls(
            torch.as_tensor(values, device=device),
            torch.as_tensor(ends - lengths, device=device),
            torch.as_tensor(np.asarray(lengths), device=device),
        )

    def to(self, device: str) -> Ragged:
        """The same on another device."""
        parts = (self.values, self.starts, self.lengths)
        return Ragged(*(part.to(device) for part in parts))

    def padded(self, rows: Tensor) -> Tensor:
        """Some rows as (rows, longest, …), with zeros after the end of each."""
        lengths = self.lengths[rows]
        place = torch.arange(int(lengths.max()), device=rows.device)
        mask = place < lengths[:, None]  # (rows, longest)
        at = torch.where(mask, self.starts[rows, None] + place, 0)
        values = self.values[at]
        return values * mask.view(*mask.shape, *[1] * (values.ndim - 2))


@dataclass(frozen=True, slots=True, eq=False)
class PaddedTexts:
    """Texts over a table of their distinct words. Row 0 of the table is zero and pads."""

    vectors: Tensor  # (distinct, dimensions)
    words: Tensor  # (texts, longest) rows of `vectors`
    lengths: Tensor  # (texts,)

    @classmethod
    def of(cls, ragged: Ragged, rows: Tensor, vectors: Tensor) -> PaddedTexts:
        """Some texts, with a table of only their own distinct words."""
        words = ragged.padded(rows)
        with_zero = torch.cat([words.new_zeros(1), words.flatten()])  # so that 0 stays 0
        distinct, number = torch.unique(with_zero, return_inverse=True)
        return cls(vectors[distinct], number[1:].view_as(words), ragged.lengths[rows])

    @property
    def mask(self) -> Tensor:
        """(texts, longest): whether there is a word; False after the end of a text."""
        place = torch.arange(self.words.shape[1], device=self.words.device)
        return place < self.lengths[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class QuestionBatch:
    """Some questions with all their candidates; a pair is a candidate with its question."""

    questions: PaddedTexts
    candidates: PaddedTexts  # one text a pair
    question_channels: Tensor  # (pairs, longest question, channels)
    candidate_channels: Tensor  # (pairs, longest candidate, channels)
    owner: Tensor  # (pairs,) which of the questions
    sizes: tuple[int, ...]  # candidates of each question
    labels: Tensor  # (pairs,)
    random: torch.Generator | None = None  # what dropout draws from; torch's own if None


_CHANNELS = ("question_channels", "candidate_channels")


@dataclass(frozen=True, slots=True, eq=False)
class EncodedQuestions:
    """The questions of a set with their candidates, on one device. A pair is a candidate."""

    name: str
    vectors: Tensor  # (distinct words + 1, dimensions); row 0 is the zero word
    questions: Ragged  # word numbers of each question
    candidates: Ragged  # word numbers of each candidate, all questions' candidates in a row
    question_channels: Ragged  # of the question's words, for each pair
    candidate_channels: Ragged  # of the candidate's words, for each pair
    labels: Tensor  # (pairs,) 1.0 for an answer
    sizes: IntArray  # (questions,) candidates of each

    def __len__(self) -> int:
        return len(self.sizes)

    def to(self, device: str) -> EncodedQuestions:
        """The same on another device."""
        names = ("vectors", "questions", "candidates", *_CHANNELS, "labels")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    @property
    def words(self) -> IntArray:
        """(questions,) the words of all candidates of a question: the cost of a step."""
        owner = np.repeat(np.arange(len(self)), self.sizes)
        counts = np.zeros(len(self), np.int64)
        np.add.at(counts, owner, self.candidates.lengths.cpu().numpy())
        return counts

    def batch(
        self, chosen: Sequence[int] | IntArray, random: torch.Generator | None = None
    ) -> QuestionBatch:
        """Some questions with all their candidates."""
        rows = np.asarray(chosen)
        ends = np.cumsum(self.sizes)
        sizes = self.sizes[rows]
        pairs = np.concatenate([np.arange(ends[row] - self.sizes[row], ends[row]) for row in rows])
        device = self.vectors.device
        at, pair = torch.as_tensor(rows, device=device), torch.as_tensor(pairs, device=device)
        owner = torch.as_tensor(np.repeat(np.arange(len(rows)), sizes), device=device)
        return QuestionBatch(
            questions=PaddedTexts.of(self.questions, at, self.vectors),
            candidates=PaddedTexts.of(self.candidates, pair, self.vectors),
            question_channels=self.question_channels.padded(pair),
            candidate_channels=self.candidate_channels.padded(pair),
            owner=owner,
            sizes=tuple(sizes.tolist()),
            labels=self.labels[pair],
            random=random,
        )


def encode_questions(
    questions: QuestionSet,
    vectors: WordVectors,
    config: LightConfig,
    *,
    device: str = "cpu",
) -> EncodedQuestions:
    """
    Look up all words and compute all channels, once for all epochs.

    Word vectors are scaled as the config says. The result can be used for every config with the
    same channels and the same scale.
    """
    if vectors.dimensions != config.dimensions:
        raise InputError(
            f"The config takes vectors of {config.dimensions} dimensions, "
            f"got {vectors.dimensions} in {vectors}."
        )
    if not questions.candidate_count:
        raise InputError(f"Question set {questions.name!r} has no candidates to train on.")
    question_words = [split_words(question.text) for question in questions]
    candidate_words = [split_words(text) for question in questions for text in question.texts]
    number = {
        word: row for row, word in enumerate(_distinct(question_words, candidate_words), start=1)
    }
    lexicon = Lexicon.of(vectors.of(list(number)), vectors.idf(list(number)))
    question_ids = _numbered(question_words, number)
    candidate_ids = _numbered(candidate_words, number)
    sizes = np.array([len(question.candidates) for question in questions], np.int64)
    rows = _channels(config.input_channels, lexicon, question_ids, candidate_ids, sizes)
    labels = [float(one.is_answer) for question in questions for one in question.candidates]
    pair_lengths = np.repeat([len(text) for text in question_ids], sizes)
    return EncodedQuestions(
        name=questions.name,
        vectors=torch.as_tensor(lexicon.unit * np.float32(config.vector_scale), device=device),
        questions=Ragged.of(np.concatenate(question_ids), list(map(len, question_ids)), device),
        candidates=Ragged.of(np.concatenate(candidate_ids), list(map(len, candidate_ids)), device),
        question_channels=Ragged.of(rows[0], pair_lengths, device),
        candidate_channels=Ragged.of(rows[1], list(map(len, candidate_ids)), device),
        labels=torch.tensor(labels, device=device),
        sizes=sizes,
    )


def _distinct(*texts: Iterable[Iterable[str]]) -> dict[str, None]:
    return dict.fromkeys(word for some in texts for text in some for word in text)


def _numbered(texts: Iterable[Sequence[str]], number: dict[str, int]) -> list[IntArray]:
    """Word numbers. A text without words gets the zero word, so that no text is empty."""
    return [np.array([number[word] for word in text] or [0], np.int64) for text in texts]


def _channels(
    names: Sequence[str],
    lexicon: Lexicon,
    question_ids: Sequence[IntArray],
    candidate_ids: Sequence[IntArray],
    sizes: IntArray,
) -> tuple[np.ndarray, np.ndarray]:
    """Channels of all pairs: (words of all pairs, channels) for questions and for candidates."""
    for_questions, for_candidates, end = [], [], 0
    for question, size in zip(question_ids, sizes.tolist(), strict=True):
        own = candidate_ids[end : end + size]
        end += size
        if not own:
            continue
        starts = np.cumsum([0, *map(len, own[:-1])])
        one, other = pair_channels(names, lexicon, question, np.concatenate(own), starts)
        for_questions.append(one.reshape(size * len(question), len(names)))
        for_candidates.append(other)
    return np.concatenate(for_questions), np.concatenate(for_candidates)
