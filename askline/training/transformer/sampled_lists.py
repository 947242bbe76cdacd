"""
Candidate lists that are drawn again for every step: a question's own sentences and negatives.

A ranker that runs after retrieval gets sentences of many texts. Trained on single paragraphs alone,
it lost seven points of MAP on lists padded to 400 candidates (research/notes/transformers.md).
Negatives from other paragraphs are mined once, by BM25 over all sentences and by article, and saved
in a file. Most random negatives are too easy, so the network scores some of them in each step and
is trained on those that it scores highest.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...text.atomic_write import atomic_write
from ...text.words import split_words
from ...types import Question
from ..loop import check_not_negative
from .pair_sets import PairSet, TextTable

__all__ = [
    "CONVERSATION_PLAN",
    "REFERENCE_PLAN",
    "DrawnList",
    "ListSource",
    "NegativePool",
    "Negatives",
    "SampledLists",
    "SamplingPart",
    "SamplingPlan",
    "Scorer",
    "is_conversation",
    "mine_negatives",
    "sentence_pool",
]

_MIN_WORDS = 4  # shorter sentences are mostly headings and fragments
_SEARCH_RESULTS = 40
_HARD, _NEAR = 12, 8  # negatives kept per question
_MAX_FREQUENCY = 0.1  # words in a larger share of the sentences are not searched for
_ARTICLE = re.compile(r"(.+)#\d+")  # the id of a paragraph: article, #, number


def sentence_pool(questions: Sequence[Question]) -> list[str]:
    """The distinct sentences of the questions' candidates, sorted, without very short ones."""
    texts = {text for question in questions for text in question.texts}
    return sorted(text for text in texts if len(text.split()) >= _MIN_WORDS)


@dataclass(frozen=True, slots=True, eq=False)
class Negatives:
    """Indices into the sentence pool of the questions; rows are filled up with -1."""

    hard: NDArray[np.int32]  # (questions, n) found by BM25, best first
    near: NDArray[np.int32]  # (questions, m) random ones of the same article
    fingerprint: str
    """Hash of the questions and the pool: negatives of other questions are refused."""

    def save(self, path: Path) -> None:
        """Write the file completely or leave the old one."""
        with atomic_write(path) as stream:
            np.savez_compressed(
                stream, hard=self.hard, near=self.near, fingerprint=np.array(self.fingerprint)
            )

    @classmethod
    def load_or_mine(cls, path: Path, questions: Sequence[Question]) -> Negatives:
        """Read the file, or mine and save negatives; 50,000 questions take half a minute."""
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            mine_negatives(questions).save(path)
        return cls.load(path, questions)

    @classmethod
    def load(cls, path: Path, questions: Sequence[Question]) -> Negatives:
        """Read negatives that were mined for these questions."""
        remedy = "Remove the file, so that they are mined again."
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                found = cls(file["hard"], file["near"], str(file["fingerprint"]))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise InputError(f"{path} cannot be read as a file of negatives. {remedy}") from error
        if found.fingerprint != _fingerprint(questions):
            raise InputError(f"{path} has negatives of other questions. {remedy}")
        return found


def mine_negatives(questions: Sequence[Question]) -> Negatives:
    """
    Negatives of every question from the sentences of all questions.

    Sentences that are candidates of the question or contain one of its gold phrases are left out:
    they may be answers.
    """
    pool = sentence_pool(questions)
    plain = [_plain(text) for text in pool]
    articles = _by_article(questions, {text: place for place, text in enumerate(pool)})
    draw = random.Random(0)
    rows: list[list[list[int]]] = [[], []]
    for question, found in zip(questions, _search(pool, questions), strict=True):
        possible_answers = _PossibleAnswers(question)
        same = articles.get(_article(question), [])
        sample = draw.sample(same, min(len(same), 5 * _NEAR))
        for row, places, size in ((rows[0], found, _HARD), (rows[1], sample, _NEAR)):
            kept = [place for place in places if not possible_answers.include(plain[place])][:size]
            row.append(kept + [-1] * (size - len(kept)))
    return Negatives(
        np.array(rows[0], np.int32).reshape(-1, _HARD),
        np.array(rows[1], np.int32).reshape(-1, _NEAR),
        _fingerprint(questions),
    )


class _PossibleAnswers:
    """Sentences that must not be negatives of a question."""

    def __init__(self, question: Question) -> None:
        self.own = {_plain(text) for text in question.texts}
        self.phrases = [plain for phrase in question.answers if len(plain := _plain(phrase)) > 3]

    def include(self, plain: str) -> bool:
        return plain in self.own or any(phrase in plain for phrase in self.phrases)


def _plain(text: str) -> str:
    """The words with spaces around each, so that `in` finds whole words."""
    return f" {' '.join(split_words(text))} "


def _search(pool: Sequence[str], questions: Sequence[Question]) -> Iterator[list[int]]:
    """For each question the indices of the sentences that BM25 finds, best first."""
    import tantivy  # here, because reading a file of negatives does not need it

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    builder.add_integer_field("place", fast=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(64_000_000, 1)
    for place, text in enumerate(pool):
        writer.add_document(tantivy.Document(text=" ".join(split_words(text)), place=place))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    most = _MAX_FREQUENCY * len(pool)
    for question in questions:
        terms = dict.fromkeys(split_words(question.text))
        rare = [term for term in terms if 0 < searcher.doc_freq("text", term) <= most]
        parts = [
            (tantivy.Occur.Should, tantivy.Query.term_query(index.schema, "text", term, "freq"))
            for term in rare
        ]
        query = tantivy.Query.boolean_query(parts)
        hits = searcher.search(query, limit=_SEARCH_RESULTS, count=False).hits if parts else []
        places = searcher.fast_field_values("place", [address for _, address in hits])
        yield [int(cast(int, place)) for place in places]


def _article(question: Question) -> str:
    source = question.candidates[0].source if question.candidates else None
    match = _ARTICLE.fullmatch(source.document) if source else None
    return match[1] if match else ""


def _by_article(questions: Sequence[Question], places: dict[str, int]) -> dict[str, list[int]]:
    """The pool indices of each article's sentences, ascending."""
    found: dict[str, set[int]] = {}
    for question in questions:
        if article := _article(question):
            own = {places[text] for text in question.texts if text in places}
            found.setdefault(article, set()).update(own)
    return {article: sorted(own) for article, own in found.items()}


def _fingerprint(questions: Sequence[Question]) -> str:
    digest = blake2b(digest_size=16)
    for question in questions:
        for text in (question.text, *question.texts):
            digest.update(text.encode() + b"\0")
    return digest.hexdigest()


Scorer = Callable[[PairSet], NDArray[np.floating[Any]]]
"""Scores of pairs by the network in its current state, without gradients."""


class ListSource(Protocol):
    """A set to draw the lists of a step from. A `PairSet` returns complete lists."""

    @property
    def name(self) -> str:
        """The name of the set, for checkpoints and cards."""
        ...

    def __len__(self) -> int:
        """The number of questions."""
        ...

    def draw(
        self, chosen: NDArray[np.int64], random: np.random.Generator, score: Scorer
    ) -> PairSet:
        """The lists of these questions, in their order, for one step."""
        ...


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """The number of negatives of each kind in a list, which also has all answers."""

    own: int = 5
    """Sentences of the same paragraph."""
    hard: int = 2
    """Sentences found by BM25."""
    lone: int = 3
    """Additional hard ones if the question has no own negatives."""
    near: int = 1
    """Sentences of the same article."""
    elsewhere: int = 3
    """Random sentences of other questions with the same plan."""
    drawn: int = 16
    """Random sentences that the network scores to choose the `elsewhere` highest."""
    hard_drawn: int = 0
    """The same for `hard`; if it is not larger than `hard`, they are drawn at random."""
    near_drawn: int = 0
    """The same for `near`."""

    def __post_init__(self) -> None:
        check_not_negative(self, *(each.name for each in fields(self)))
        if self.drawn < self.elsewhere:
            raise InputError(
                f"drawn must be at least elsewhere ({self.elsewhere}), got {self.drawn}."
            )


REFERENCE_PLAN = SamplingPlan(hard=3, hard_drawn=8, near=2, near_drawn=8, elsewhere=3, drawn=24)
"""For questions about encyclopedic text."""
CONVERSATION_PLAN = SamplingPlan(hard=1, near=0, elsewhere=1, drawn=1)
"""For questions about reviews and forum posts. Many of them, such as "What is the product?", are
answered by any post, so few sentences from elsewhere are reliable negatives."""

_CONVERSATION_SOURCES = ("Filtered_Reddit_Comments", "Amazon_Reviews")


def is_conversation(question: Question) -> bool:
    """Whether a question of SQuADShifts is about a review or a forum post."""
    source = question.candidates[0].source
    return source is not None and source.document.startswith(_CONVERSATION_SOURCES)


@dataclass(frozen=True, slots=True)
class SamplingPart:
    """Questions with an answer, and the plan of their lists."""

    questions: tuple[Question, ...]
    plan: SamplingPlan


class NegativePool(NamedTuple):
    """Text numbers, of which the `keep` with the highest scores are taken."""

    texts: list[int]
    keep: int


@dataclass(frozen=True, slots=True)
class DrawnList:
    """One list, as text numbers."""

    question: int
    candidates: list[int]
    labels: list[float]
    pools: list[NegativePool]
    """The network chooses more negatives from these."""


class SampledLists:
    """A `ListSource` over one or more parts; `negatives` covers all their questions."""

    def __init__(
        self, name: str, parts: Sequence[SamplingPart], negatives: Negatives, tokenizer: Any
    ) -> None:
        self.name = f"{name}, {', '.join(str(part.plan) for part in parts)}"
        questions = [question for part in parts for question in part.questions]
        if not all(question.answerable for question in questions):
            raise InputError("Lists can be drawn only for questions with an answer. Select those.")
        if len(negatives.hard) != len(questions):
            raise InputError(
                f"Expected negatives of {len(questions)} questions, got {len(negatives.hard)}."
            )
        # The sentences of the pool have the lowest numbers, which are their pool indices.
        number = {text: place for place, text in enumerate(sentence_pool(questions))}
        mined = zip(negatives.hard, negatives.near, strict=True)
        self._lists: list[_List] = []
        for part in parts:
            elsewhere = np.array([number[text] for text in sentence_pool(part.questions)])
            for question in part.questions:
                texts = (question.text, *question.texts)
                own_number, *own = (number.setdefault(text, len(number)) for text in texts)
                hard, near = (row[row >= 0] for row in next(mined))
                self._lists.append(
                    _List.of(question, own_number, own, hard, near, elsewhere, part.plan)
                )
        self.texts = TextTable.encode(list(number), tokenizer)

    def __len__(self) -> int:
        return len(self._lists)

    def one(self, place: int, random: np.random.Generator) -> DrawnList:
        """A list for one question, before the network chooses from its pools."""
        return self._lists[place].draw(random)

    def draw(
        self, chosen: NDArray[np.int64], random: np.random.Generator, score: Scorer
    ) -> PairSet:
        """Answers are first in every list: these networks do not see the order."""
        drawn = [self.one(int(place), random) for place in chosen]
        for own, added in zip(drawn, self._hardest(drawn, score), strict=True):
            own.candidates.extend(added)
            own.labels.extend([0.0] * len(added))
        rows = [(own.question, own.candidates) for own in drawn]
        return self.texts.pairs(rows, [y for own in drawn for y in own.labels], name=self.name)

    def _hardest(self, drawn: Sequence[DrawnList], score: Scorer) -> Iterator[list[int]]:
        """The texts of each list's pools that the network scores highest."""
        pools = [(own.question, pool) for own in drawn for pool in own.pools]
        pairs = self.texts.pairs((question, pool.texts) for question, pool in pools)
        scores = score(pairs) if len(pairs.tokens) else np.zeros(0)
        chosen = (
            [pool.texts[place] for place in np.argsort(-values, kind="stable")[: pool.keep]]
            for (_, pool), values in zip(pools, np.split(scores, pairs.offsets[1:-1]), strict=True)
        )
        for own in drawn:
            yield [text for _ in own.pools for text in next(chosen)]


@dataclass(frozen=True, slots=True, eq=False)
class _List:
    """Text numbers from which the lists of a question are drawn."""

    question_text: int
    answers: list[int]
    others: list[int]
    hard: NDArray[np.int32]
    near: NDArray[np.int32]
    elsewhere: NDArray[np.int64]  # shared by all questions of a part
    plan: SamplingPlan

    @classmethod
    def of(cls, question: Question, question_text: int, own: Sequence[int], *rest: Any) -> _List:
        labels = [candidate.is_answer for candidate in question.candidates]
        answers = [text for text, answer in zip(own, labels, strict=True) if answer]
        others = [text for text, answer in zip(own, labels, strict=True) if not answer]
        return cls(question_text, answers, others, *rest)

    def draw(self, random: np.random.Generator) -> DrawnList:
        plan = self.plan
        lone = 0 if self.others else plan.lone
        others, pools = list[int](), list[NegativePool]()
        for source, size, drawn in (
            (self.others, plan.own, 0),
            (self.hard, plan.hard + lone, plan.hard_drawn and plan.hard_drawn + lone),
            (self.near, plan.near, plan.near_drawn),
        ):
            found = [int(text) for text in _some(source, max(size, drawn), random)]
            if len(found) > size:
                pools.append(NegativePool(found, size))
            else:
                others += found
        if plan.elsewhere and len(self.elsewhere):
            pools.append(NegativePool(self._random(random), plan.elsewhere))
        labels = [1.0] * len(self.answers) + [0.0] * len(others)
        return DrawnList(self.question_text, self.answers + others, labels, pools)

    def _random(self, random: np.random.Generator) -> list[int]:
        own = {*self.answers, *self.others}
        texts = self.elsewhere[random.integers(len(self.elsewhere), size=self.plan.drawn)]
        return [int(text) for text in texts if int(text) not in own]


def _some(
    source: Sequence[int] | NDArray[np.int32], size: int, random: np.random.Generator
) -> Sequence[int] | NDArray[np.int32]:
    return source if len(source) <= size else random.choice(source, size, replace=False)
