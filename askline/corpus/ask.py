"""
What a ranker gets to read of a sentence.

In a document with a title, and under a heading, a sentence need not say what it is about: "MIT."
says enough below "Licence". So where title or heading have words of the question that the sentence
lacks, they stand before it (research/decisions/corpus-store.md has the figures).

From a question to its answers: retrieve sentences, rank them, look around the best.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple, Protocol

from ..errors import InputError
from ..rankers.base import Ranker
from ..rankers.probability import log_odds
from ..rankers.registry import DEFAULT_SPEC
from ..text.words import split_words
from ..types import Hit, Ranking, StageReport
from .bm25 import Stemmer, standard
from .results import Answer, AnswerPhrase, Answers, RetrievedSentence
from .retrieval import MAX_SENTENCE_CHARACTERS, HasNeighbors, Retriever

__all__ = [
    "DEFAULT_BLEND",
    "DEFAULT_RANKER",
    "DEFAULT_RETRIEVED",
    "LOG_ODDS_BLEND",
    "SentenceInContext",
    "TitledSentence",
    "add_title_context",
    "answer",
    "read_phrase",
]

_LONGEST_LEAD = 200  # characters of a title or heading; the rest of a longer one is no name

_SUFFIX = re.compile(r"(?<=\w)\.[A-Za-z]{2,5}$")
_BETWEEN = re.compile(r"[_-]+")
# Words that a heading may share with a question without saying anything.
_EMPTY = frozenset(
    """a an and are as at be been but by can could did do does for from had has have how i if in is
    it its may much many no not of on or should so than that the their them then there these they
    this those to us was we were what when where which while who whom whose why will with would you
    your

    au aux ce cela ces cette combien comment d dans de des du elle en est et il ils l la le les leur
    mais ne où ou par pas pour pourquoi qu quand que quel quelle quelles quels qui quoi sa se ses
    son sont sur un une""".split()
)


class TitledSentence(Protocol):
    """A sentence, the title of its document, and the heading above it."""

    @property
    def text(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def heading(self) -> str: ...


class SentenceInContext(NamedTuple):
    """A sentence behind what stands above it: `text[lead:]` is the sentence."""

    text: str
    lead: int


def add_title_context(question: str, found: Sequence[TitledSentence]) -> list[SentenceInContext]:
    """Each sentence, at most 4,000 characters of it, with what it needs in front."""
    stem = Stemmer().stem

    def terms(text: str) -> frozenset[str]:
        return frozenset(stem(word) for word in split_words(text) if word not in _EMPTY)

    asked = terms(question)
    above = cache(lambda name: asked & terms(name))  # most sentences share theirs with others
    said = []
    for each in found:
        text = each.text[:MAX_SENTENCE_CHARACTERS]
        names = [name for name in _names(each) if above(name)]
        if names:
            own = terms(text)
            names = [name for name in names if not above(name) <= own]
        lead = f"{' · '.join(names)}: " if names else ""
        said.append(SentenceInContext(lead + text, len(lead)))
    return said


def _names(found: TitledSentence) -> Iterable[str]:
    """The title and the heading, each once."""
    names = _spoken(found.title), found.heading
    return dict.fromkeys(name[:_LONGEST_LEAD] for name in names if name)


def _spoken(title: str) -> str:
    """A file's name as one would say it: `travel-policy.txt` as `travel policy`."""
    if " " in title:
        return title
    return _BETWEEN.sub(" ", _SUFFIX.sub("", title))


DEFAULT_RANKER: str | None = DEFAULT_SPEC
"""Lexical rankers after retrieval do worse than retrieval alone, which has read the passage."""
DEFAULT_BLEND = 1.0
"""Retrieval has seen the passage and the ranker the sentence; together they beat either alone."""
LOG_ODDS_BLEND = 0.5
"""So much of it where the ranker's scores are chances (research/results/corpus_blend.json)."""
DEFAULT_RETRIEVED = 100
"""Sentences handed to the ranker: a hundred held the answer nearly as often as two hundred."""


def answer(
    question: str,
    retriever: Retriever,
    ranker: Ranker | None = None,
    *,
    top_k: int = 5,
    retrieved: int = DEFAULT_RETRIEVED,
    blend: float = DEFAULT_BLEND,
) -> Answers:
    """
    The best `top_k` answers out of `retrieved` sentences.

    The ranker gets the sentences of a document next to each other and in their order, the document
    with the best sentence first, each behind the words of the question that only its title or
    heading has (`add_title_context`). What its last stage puts on top is ordered by the sum of its
    score (as log odds where it is a chance, as a standard score otherwise) and `blend` times the
    retrieval's standard score, half as much beside log odds; with 0, as the ranker says. Without a
    ranker, the answers come as they were found.

    The best answer has its phrase, where the ranker can read; others have the nearest one, where
    the retriever searches phrases.
    """
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"The question must be a text with words in it, got {question!r}.")
    if top_k < 1 or retrieved < top_k:
        raise InputError(
            "top_k must be at least 1 and at most retrieved, "
            f"got top_k={top_k}, retrieved={retrieved}."
        )
    start = time.perf_counter()
    total = len(retriever)
    found = retriever.retrieve(question, retrieved)
    report = StageReport(
        f"{retriever} % {retrieved}", total, len(found), time.perf_counter() - start
    )
    if ranker is None:
        ranking = Ranking(tuple(Hit(at, each.score) for at, each in enumerate(found)), ())
        chances: dict[int, float] = {}
    else:
        found = in_document_order(found)
        said = [each.text for each in add_title_context(question, found)]
        ranking = ranker.trace(question, said)
        chances = _chances(ranking)
        ranking = replace(ranking, hits=_blended(ranking, found, blend))
    shift = 0 if ranker is None else 1  # retrieval is stage 0
    answers = [
        _answer(found[hit.index], hit, chances.get(hit.index), shift, retriever)
        for hit in ranking.hits[:top_k]
    ]
    if ranker is not None and answers:
        read = read_phrase(ranker, question, answers[0])
        answers[0] = replace(answers[0], phrase=read or answers[0].phrase)
    return Answers(
        question,
        tuple(answers),
        (report, *ranking.stages),
        time.perf_counter() - start,
        None if ranker is None else ranker.threshold,
    )


def in_document_order(found: Sequence[RetrievedSentence]) -> list[RetrievedSentence]:
    """Documents by their best sentence, each document's sentences as they stand in it."""
    place: dict[str, int] = {}
    for sentence in found:
        place.setdefault(sentence.document, len(place))
    return sorted(found, key=lambda sentence: (place[sentence.document], sentence.ordinal))


def _chances(ranking: Ranking) -> dict[int, float]:
    """Of the candidates that a calibrated stage decided."""
    return {hit.index: hit.probability for hit in ranking.hits if hit.probability is not None}


def _blended(ranking: Ranking, found: Sequence[RetrievedSentence], blend: float) -> tuple[Hit, ...]:
    hits = ranking.hits
    last = max((hit.stage for hit in hits), default=0)
    decided = [hit for hit in hits if hit.stage == last]
    sure = bool(decided) and ranking.stages[last].calibrated
    own = [log_odds(hit.score) for hit in decided] if sure else standard([h.score for h in decided])
    retrieval = standard([found[hit.index].score for hit in decided])
    if not blend or own is None or retrieval is None:
        return hits
    weight = blend * LOG_ODDS_BLEND if sure else blend
    mixed = [
        replace(hit, score=a + weight * b)
        for hit, a, b in zip(decided, own, retrieval, strict=True)
    ]
    # Equal ones stay as the ranker had them, and so does what its earlier stages dropped.
    return (*sorted(mixed, key=lambda hit: -hit.score), *hits[len(decided) :])


def read_phrase(ranker: Ranker, question: str, sentence: TitledSentence) -> AnswerPhrase | None:
    """What in the sentence answers; it is read in its context, but nothing there is an answer."""
    (said,) = add_title_context(question, [sentence])
    (span,) = ranker.read(question, [said.text])
    if span is not None and span.start < said.lead:
        said = SentenceInContext(said.text[said.lead :], 0)
        (span,) = ranker.read(question, [said.text])
    if span is None:
        return None
    text = said.text[span.start : span.end]
    return AnswerPhrase(text, span.start - said.lead, span.end - said.lead)


def _answer(
    found: RetrievedSentence, hit: Hit, probability: float | None, shift: int, retriever: Retriever
) -> Answer:
    around = retriever.neighbors(found) if isinstance(retriever, HasNeighbors) else ("", "")
    return Answer(
        text=found.text,
        score=hit.score,
        stage=hit.stage + shift,
        probability=probability,
        document=found.document,
        title=found.title,
        start=found.start,
        end=found.end,
        unit=found.unit,
        number=found.number,
        heading=found.heading,
        before=around[0],
        after=around[1],
        row=found.row,
        record=found.record,
        phrase=found.phrase,
    )
