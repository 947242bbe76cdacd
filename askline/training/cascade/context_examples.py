"""
Training examples of the context pass: questions, their passage, and passages that do not answer.

A passage is a run of sentences with the title (heading path) that it stands under. Everything is
stored as token arrays, each text tokenized once, so that a set fits into one small file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.squad import Paragraph
from ...engine.tokenizer import WordPiece
from ...errors import DataError, InputError, Problem
from ...text.sentences import split_sentences
from ..packing import Rows

__all__ = [
    "ContextExamples",
    "PassageQuestion",
    "TrainingPassage",
    "paragraph_passages",
    "read_passages",
]

NEAR_PASSAGES = 24
"""Passages per question that share most words with it, from which negatives are drawn."""
_BM25_K1, _BM25_B = 1.2, 0.75
_COMMON, _ALWAYS_SEARCHED = 0.1, 1000
"""Tokens of more passages than this share and this number are not searched: they cost most."""
_SEARCH_BATCH = 512


@dataclass(frozen=True, slots=True)
class PassageQuestion:
    """A question that is asked about a passage."""

    text: str
    answers: tuple[int, ...] = ()
    """The sentences that answer it; none if the passage does not answer it."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """The answer's words, where they are known: sentence, start and end in the sentence."""


@dataclass(frozen=True, slots=True)
class TrainingPassage:
    """Sentences that follow each other in a document, and questions about them."""

    document: str
    sentences: tuple[str, ...]
    questions: tuple[PassageQuestion, ...] = ()
    title: str = ""


def read_passages(path: str | PathLike[str]) -> list[TrainingPassage]:
    """
    Read passages from a file of JSON lines.

    Each line has `sentences`, and may have `document`, `title` and `questions`: objects with
    `question`, `answers` (numbers of sentences) and `spans` (sentence, start, end).
    """
    found = []
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                found.append(_passage(json.loads(line)))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                problem = Problem(str(path), number, f"not a passage: {error!r}")
                raise DataError([problem]) from error
    return found


def _passage(entry: dict[str, Any]) -> TrainingPassage:
    sentences = tuple(entry["sentences"])
    questions = []
    for own in entry.get("questions", ()):
        answers = tuple(int(at) for at in own.get("answers", ()))
        spans = tuple((int(at), int(start), int(end)) for at, start, end in own.get("spans", ()))
        for at in (*answers, *(span[0] for span in spans)):
            if not 0 <= at < len(sentences):
                raise ValueError(f"sentence {at} of {len(sentences)}")
        questions.append(PassageQuestion(own["question"], answers, spans))
    return TrainingPassage(
        entry.get("document", ""), sentences, tuple(questions), entry.get("title", "")
    )


def paragraph_passages(paragraphs: Iterable[Paragraph]) -> list[TrainingPassage]:
    """Paragraphs of a set in SQuAD's format; a span counts for the sentence with most of it."""
    return [_from_paragraph(paragraph) for paragraph in paragraphs]


def _from_paragraph(paragraph: Paragraph) -> TrainingPassage:
    bounds = split_sentences(paragraph.text)
    questions = []
    for question in paragraph.questions:
        spans = set()
        for answer in question.answers:
            shared = [min(answer.end, end) - max(answer.start, start) for start, end in bounds]
            at = int(np.argmax(shared))
            start, end = bounds[at]
            if shared[at] > 0:
                span = (max(answer.start, start) - start, min(answer.end, end) - start)
                spans.add((at, *span))
        answers = tuple(sorted({span[0] for span in spans}))
        questions.append(PassageQuestion(question.text, answers, tuple(sorted(spans))))
    title = paragraph.article.replace("_", " ")
    sentences = tuple(paragraph.text[start:end] for start, end in bounds)
    return TrainingPassage(paragraph.article or paragraph.id, sentences, tuple(questions), title)


class Window(NamedTuple):
    """A part of a passage for one question of a batch."""

    question: int
    """The example, a row of the set."""
    passage: int
    first: int
    last: int
    """Sentences of the passage, `last` excluded."""
    has_title: bool


@dataclass(frozen=True, slots=True, eq=False)
class ContextExamples:
    """Questions with their passages, as arrays."""

    tokens: NDArray[np.int32]
    offsets: NDArray[np.int64]
    """Text i has the tokens from offsets[i] up to offsets[i + 1]."""
    passage_texts: Rows
    """(passages + 1,): the sentences of a passage are the texts in this range."""
    passage_titles: Rows
    """(passages,): a text, or -1."""
    question_texts: Rows
    question_passages: Rows
    answers: NDArray[np.int64]
    """(answers, 2): example and sentence in its passage."""
    spans: NDArray[np.int64]
    """(spans, 4): example, sentence in its passage, first and last token in the sentence."""
    near: NDArray[np.int32]
    """(examples, 24): passages that share words with the question but do not answer it; or -1."""

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.question_texts)

    @property
    def passages(self) -> int:
        return len(self.passage_titles)

    @classmethod
    def of(cls, passages: Sequence[TrainingPassage], tokenizer: WordPiece) -> ContextExamples:
        """
        Tokenize passages and their questions, and search near passages for each question.

        A passage that contains the words of one of the question's answers is never near.
        """
        if not any(passage.questions for passage in passages):
            raise InputError("Expected passages with questions, got none.")
        texts: list[str] = []
        bounds, titles = [0], []
        for passage in passages:
            texts += passage.sentences
            bounds.append(len(texts))
        for passage in passages:
            titles.append(len(texts) if passage.title else -1)
            texts += [passage.title] if passage.title else []
        asked, owners = list[int](), list[int]()
        answers, spans = list[tuple[int, int]](), list[tuple[int, int, int, int]]()
        for at, passage in enumerate(passages):
            for question in passage.questions:
                answers += [(len(asked), sentence) for sentence in question.answers]
                for sentence, start, end in question.spans:
                    own = _token_span(tokenizer, passage.sentences[sentence], start, end)
                    if own is not None:
                        spans.append((len(asked), sentence, *own))
                asked.append(len(texts))
                owners.append(at)
                texts.append(question.text)
        pieces = [tokenizer.token_ids(text) for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(own) for own in pieces])]).astype(np.int64)
        tokens = np.concatenate([np.array(own, np.int32) for own in pieces])
        made = cls(
            tokens,
            offsets,
            np.array(bounds, np.int64),
            np.array(titles, np.int64),
            np.array(asked, np.int64),
            np.array(owners, np.int64),
            np.array(answers, np.int64).reshape(-1, 2),
            np.array(spans, np.int64).reshape(-1, 4),
            np.full((len(asked), NEAR_PASSAGES), -1, np.int32),
        )
        _search_near(made, passages)
        return made

    def save(self, path: str | PathLike[str]) -> None:
        """Write one compressed file of arrays."""
        np.savez_compressed(path, **{name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ContextExamples:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as found:
            return cls(**{name: found[name] for name in cls.__slots__})

    def text(self, number: int) -> NDArray[np.int32]:
        """The tokens of a text."""
        return self.tokens[self.offsets[number] : self.offsets[number + 1]]

    def answer_lists(self) -> list[tuple[int, ...]]:
        """Per example, the sentences that answer it."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for example, sentence in self.answers.tolist():
            found[example].append(sentence)
        return [tuple(own) for own in found]

    def span_lists(self) -> list[list[tuple[int, int, int]]]:
        """Per example, the known answer spans: sentence, first and last token."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in range(len(self))]
        for example, sentence, first, last in self.spans.tolist():
            found[example].append((sentence, first, last))
        return found

    def sentence_count(self, passage: int) -> int:
        return int(self.passage_texts[passage + 1] - self.passage_texts[passage])


def _token_span(tokenizer: WordPiece, text: str, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last token that overlap `text[start:end]`; None if there is none."""
    inside = [
        at
        for at, (_, left, right) in enumerate(tokenizer.tokens_with_offsets(text))
        if left < end and right > start
    ]
    return (inside[0], inside[-1]) if inside else None


def _search_near(examples: ContextExamples, passages: Sequence[TrainingPassage]) -> None:
    """Fill `near` with the passages that BM25 over tokens finds."""
    from scipy.sparse import csr_matrix

    lowered = [" ".join(passage.sentences).lower() for passage in passages]
    gold = [
        {passage.sentences[at][start:end].lower() for at, start, end in question.spans}
        for passage in passages
        for question in passage.questions
    ]
    starts = examples.offsets[examples.passage_texts]
    lengths = np.diff(starts)
    owners = np.repeat(np.arange(len(passages)), lengths)
    shape = (len(passages), int(examples.tokens.max()) + 1)
    counts = csr_matrix((np.ones(len(owners)), (owners, examples.tokens[: starts[-1]])), shape)
    counts.sum_duplicates()
    found = np.bincount(counts.indices, minlength=shape[1])
    idf = np.log1p((len(passages) - found + 0.5) / (found + 0.5))
    norm = _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths / max(1.0, lengths.mean()))
    rows = np.repeat(np.arange(len(passages)), np.diff(counts.indptr))
    counts.data *= idf[counts.indices] * (_BM25_K1 + 1) / (counts.data + norm[rows])
    counts.data[found[counts.indices] > max(_COMMON * len(passages), _ALWAYS_SEARCHED)] = 0
    counts.eliminate_zeros()
    for begin in range(0, len(examples), _SEARCH_BATCH):
        part = range(begin, min(begin + _SEARCH_BATCH, len(examples)))
        asked = [np.unique(examples.text(int(examples.question_texts[at]))) for at in part]
        sizes = [len(own) for own in asked]
        where = (np.repeat(np.arange(len(part)), sizes), np.concatenate(asked))
        queries = csr_matrix((np.ones(sum(sizes)), where), (len(part), shape[1]))
        scores = queries @ counts.T
        for row, example in enumerate(part):
            own = int(examples.question_passages[example])
            inside = slice(*scores.indptr[row : row + 2])
            best = _highest(scores.indices[inside], scores.data[inside], 2 * NEAR_PASSAGES)
            kept = [
                at
                for at in best.tolist()
                if at != own
                and lowered[at] != lowered[own]
                and not any(answer in lowered[at] for answer in gold[example])
            ]
            kept = kept[:NEAR_PASSAGES]
            examples.near[example, : len(kept)] = kept


def _highest(numbers: Rows, scores: NDArray[np.float64], most: int) -> Rows:
    """The numbers with the highest scores, highest first; of equal scores, the lower number."""
    if len(scores) > most:
        chosen = np.argpartition(-scores, most - 1)[:most]
        numbers, scores = numbers[chosen], scores[chosen]
    return numbers[np.lexsort((numbers, -scores))]
