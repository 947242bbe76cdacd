"""
Retrieval: from a question to the sentences that are worth ranking.

`Retriever` is the protocol that `answer` needs. `LexicalRetriever` is the corpus's own; a search
engine that you already run fits behind the same three methods. `HasNeighbors` and `HasPassages` are
optional.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from textwrap import indent
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..rankers.requests import check_question
from ..text.readers.kinds import PlaceUnit
from ..text.words import split_words
from .document_store import DocumentReader
from .passages import MAX_SENTENCE_CHARACTERS, PassageHit, PassageIndex, passage_heading
from .question_terms import (
    QuestionTerms,
    RetrievalOptions,
    TermIndex,
    correct_question,
    question_terms,
)
from .results import DocumentSentence, RetrievedSentence
from .schema import SENTENCE_KINDS, DocumentHeader, SentenceRecord
from .similar_words import SimilarWords, load_similar_words
from .text_match import SplitTexts, TextMatches, cosines, load_sentence_vectors, match_texts

__all__ = [
    "HasCorrections",
    "HasNeighbors",
    "HasPassages",
    "LexicalRetriever",
    "Retriever",
    "StoreRetriever",
    "standard_scores",
    "to_document_sentence",
    "to_retrieved_sentence",
]

_PASSAGES_PER_SENTENCE = 0.5
"""Passages per requested sentence whose sentences are chosen by the scores of both."""
_WIDE_PASSAGES_PER_SENTENCE = 2.0
"""Passages per requested sentence whose sentences are chosen by their own match."""
_MIN_PASSAGES = 10
_CHOSEN_BY_OWN_MATCH = 4
"""Every fourth sentence is chosen by its own match (research/notes/corpus.md has the figures)."""
_WITH_VECTORS_BY_OWN_MATCH = 2
"""With sentence vectors, every second."""
_CONSIDERED = 4
"""Sentences per requested one whose vectors are compared with that of the question."""
_SAME_SCORE = 1e-4
"""Passages whose scores differ by less have the same rank, in one index and in shards."""
_FACTORS = (2.78, -1.46, 2.39, 1.29, 3.5, -0.4, 0.01, 5.81, 1.91)
"""
Weights of the passage's score, of the sentence's BM25 and soft match without and with its titles,
of the logarithms of the passage's rank and the sentence's length, and of both cosines
(`python -m research.recipes.sentence_vectors fit`).
"""
CODE_INDENT = "    "
"""Before each line of code among the neighbors of a sentence."""


@runtime_checkable
class Retriever(Protocol):
    """Finds sentences for a question."""

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """
        At most `k` sentences, best first; an empty list if nothing matches.

        InputError for an empty or blank question.
        """
        ...

    def __len__(self) -> int:
        """The number of sentences that are searched."""
        ...

    def __str__(self) -> str:
        """The name in stage reports."""
        ...


@runtime_checkable
class HasNeighbors(Protocol):
    """A retriever that knows the sentences around a sentence."""

    def neighbors(self, sentence: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        """At most `count` sentences before and after, joined by spaces; empty if there is none."""
        ...


@runtime_checkable
class HasPassages(Protocol):
    """A retriever that knows the passage of a sentence."""

    def passage(self, sentence: RetrievedSentence) -> list[DocumentSentence]:
        """
        The sentences of the passage in their order, headings and the sentence itself included.

        Empty if the sentence has no passage or its document has been removed.
        """
        ...


@runtime_checkable
class HasCorrections(Protocol):
    """A retriever that corrects misspelled words by the words of its index."""

    def corrected(self, question: str) -> str:
        """The question as a ranker should read it; the question itself if nothing is wrong."""
        ...


_Found = tuple[PassageHit, SentenceRecord]
"""A sentence, and the passage that it was found in."""


class StoreRetriever:
    """What all retrievers of a corpus share: what they read besides the sentences they find."""

    def __init__(self, store: DocumentReader) -> None:
        self._store = store

    def neighbors(self, sentence: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        """
        At most `count` sentences before and after, in the same section and the same row.

        All of them are checked: DamagedDocumentError if one differs from what was stored.
        """
        store = self._store
        document_id = store.document_id(sentence.document)
        if document_id is None:
            return "", ""
        around = store.sentences(document_id, sentence.ordinal - count, sentence.ordinal + count)
        if sentence.row is not None:
            row = store.row_at(document_id, sentence.start)
            around = [each for each in around if store.row_at(document_id, each.start) == row]
        before = [each for each in around if each.ordinal < sentence.ordinal]
        after = [each for each in around if each.ordinal > sentence.ordinal]
        return _section(reversed(before), reverse=True), _section(after)

    def passage(self, sentence: RetrievedSentence) -> list[DocumentSentence]:
        """
        The sentences of the passage of a sentence, in order; in csv and jsonl those of its row.

        They are read for ranking and not checked, as in retrieval.
        """
        store = self._store
        document_id = store.document_id(sentence.document)
        if document_id is None or sentence.passage is None:
            return []
        passage = store.unchecked_sentences(document_id, *sentence.passage)
        if sentence.row is not None:
            row = store.row_at(document_id, sentence.start)
            passage = [each for each in passage if store.row_at(document_id, each.start) == row]
        return [to_document_sentence(each) for each in passage]

    def __len__(self) -> int:
        return self._store.counts()[1]


class LexicalRetriever(StoreRetriever):
    """
    BM25 over passages, then over the sentences in them.

    The score of a sentence is that of its passage plus its own, both with the inverse document
    frequencies of the corpus, plus the soft match of its words with those of the question, by their
    vectors. The best by this score, and the best by their own match with title, headings and
    lead-in included, are then scored by all of these and by their sentence vectors. Half of the
    sentences are chosen by this second score, and half by their own match: a long passage can have
    one sentence that answers and many other words.

    Headings and code are indexed with the passages around them and are never returned. Neither are
    sentences that contain nothing but words of the question.
    """

    def __init__(
        self, store: DocumentReader, search: PassageIndex, options: RetrievalOptions | None = None
    ) -> None:
        super().__init__(store)
        self._search = search
        self._options = options or RetrievalOptions()

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences, best first; an empty list if no word of the question is known."""
        check_question(question)
        with self._store.snapshot():
            return self._best_sentences(question, k)

    def corrected(self, question: str) -> str:
        """The question with words corrected that neither the index nor the word vectors have."""
        known = self._similar_words
        if known is None or all(word in known for word in split_words(question)):
            return question
        with self._store.snapshot():
            corrected = self._terms(question).corrected
        return correct_question(question, corrected, self._vocabulary, known)

    @property
    def _vocabulary(self) -> TermIndex:
        return TermIndex(self._search.stem, self._search.term_weights)

    def _terms(self, question: str) -> QuestionTerms:
        return question_terms(question, self._vocabulary, self._similar_words, self._options)

    def _best_sentences(self, question: str, k: int) -> list[RetrievedSentence]:
        options, terms = self._options, self._terms(question)
        first = max(_MIN_PASSAGES, round(k * _PASSAGES_PER_SENTENCE))
        wide = round(k * _WIDE_PASSAGES_PER_SENTENCE) if options.own_match else 0
        hits = self._search.search(terms.factors, max(first, wide), titles=options.titles)
        places = [(hit.document_id, hit.first, hit.last) for hit in hits]
        pairs = [
            (hit, sentence)
            for hit, found in zip(hits, self._store.passage_sentences(places), strict=True)
            for sentence in found
            if sentence.is_candidate
        ]
        texts = [sentence.text[:MAX_SENTENCE_CHARACTERS] for _, sentence in pairs]
        matches = match_texts(texts, terms, self._search.stem, self._soft_words)
        scores = matches.scores(options.soft_match) + [hit.score for hit, _ in pairs]
        usable = np.flatnonzero(~matches.repeats)
        if options.sentence_vectors:
            order, scores = self._best_by_vectors(question, k, pairs, matches, scores)
        else:
            best_hits = set(hits[:first])
            in_best = [at for at in usable.tolist() if pairs[at][0] in best_hits]
            order = sorted(in_best, key=lambda at: -scores[at])
            if len(hits) > first:
                titled = matches.under(*self._contexts(pairs, terms))
                by_match = _best_first(usable, titled.scores(options.soft_match))
                order = _take_in_turn(order, by_match, k, _CHOSEN_BY_OWN_MATCH)
        kept = sorted(order[:k], key=lambda at: -scores[at])
        return self._with_documents([(*pairs[at], float(scores[at])) for at in kept])

    def _best_by_vectors(
        self,
        question: str,
        k: int,
        pairs: Sequence[_Found],
        matches: TextMatches,
        scores: NDArray[np.float64],
    ) -> tuple[list[int], NDArray[np.float64]]:
        """The positions of `k` sentences, and scores of all, minus infinity if not considered."""
        rows, features, by_match = self.features(question, k, pairs, matches, scores)
        learned = np.full(len(pairs), -np.inf)
        learned[rows] = features @ _FACTORS
        order = _best_first(rows, learned)
        return _take_in_turn(order, by_match, k, _WITH_VECTORS_BY_OWN_MATCH), learned

    def features(
        self,
        question: str,
        k: int,
        pairs: Sequence[_Found],
        matches: TextMatches,
        scores: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], list[int]]:
        """
        The positions that are considered, (rows,), and what is known of them, (rows, features).

        The last is the same positions by their own match, best first.
        """
        contexts, positions = self._contexts(pairs, matches.terms)
        titled = matches.under(contexts, positions)
        match = titled.scores(self._options.soft_match)
        usable = np.flatnonzero(~matches.repeats)
        by_match = _best_first(usable, match)
        by_score = _best_first(usable, scores)
        considered = _take_in_turn(by_score, by_match, _CONSIDERED * k, _WITH_VECTORS_BY_OWN_MATCH)
        rows = np.array(considered, np.int64)
        vectors = load_sentence_vectors()
        (question_vector,) = vectors.sums(SplitTexts.of([question]))
        own = vectors.sums(matches.split.take(rows))
        used, place = np.unique(positions[rows], return_inverse=True)
        above = vectors.sums(contexts.split.take(used))[place]
        all_scores = np.sort([-hit.score for hit in {hit for hit, _ in pairs}])
        hit_scores = np.array([pairs[at][0].score for at in considered])
        weight = max(1.0, sum(matches.terms.words.values()))
        features = (
            hit_scores / weight,
            matches.bm25()[rows] / weight,
            matches.soft()[rows] / weight,
            titled.bm25()[rows] / weight,
            titled.soft()[rows] / weight,
            np.log1p(np.searchsorted(all_scores, -hit_scores - _SAME_SCORE)),
            np.log1p(matches.lengths[rows]),
            cosines(own, question_vector),
            cosines(own + above, question_vector),
        )
        return rows, np.stack(features, axis=1), _best_first(rows, match)

    def _contexts(
        self, pairs: Sequence[_Found], terms: QuestionTerms
    ) -> tuple[TextMatches, NDArray[np.int64]]:
        """The titles, headings and lead-ins of sentences, and which of them each sentence has."""
        headers = self._store.documents({hit.document_id for hit, _ in pairs})
        titles = {document_id: header.title for document_id, header in headers.items()}
        above = [
            f"{titles.get(hit.document_id, '')}\n{passage_heading(sentence)}\n{sentence.lead_in}"
            for hit, sentence in pairs
        ]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(above))}
        contexts = match_texts(list(numbers), terms, self._search.stem, self._soft_words)
        return contexts, np.array([numbers[text] for text in above], np.int64)

    @property
    def _soft_words(self) -> SimilarWords | None:
        return self._similar_words if self._options.soft_match else None

    @cached_property
    def _similar_words(self) -> SimilarWords | None:
        options = self._options
        needed = options.derived or options.soft_match
        return load_similar_words() if needed else None

    def __str__(self) -> str:
        return "passages"

    def _with_documents(
        self, scored: Sequence[tuple[PassageHit, SentenceRecord, float]]
    ) -> list[RetrievedSentence]:
        """Add the headers of the documents; leave out documents removed in the meantime."""
        headers = self._store.documents({hit.document_id for hit, _, _ in scored})
        return [
            to_retrieved_sentence(
                self._store, hit.document_id, header, sentence, score, (hit.first, hit.last)
            )
            for hit, sentence, score in scored
            if (header := headers.get(hit.document_id)) is not None
        ]


def _best_first(positions: NDArray[np.int64], scores: NDArray[np.float64]) -> list[int]:
    """Positions by their scores; equal scores keep the order of the positions."""
    order = np.argsort(-scores[positions], kind="stable")
    return list(map(int, positions[order]))


def _take_in_turn(
    by_score: Sequence[int], by_match: Sequence[int], k: int, every: int
) -> list[int]:
    """`k` different positions, one of `every` from the second list, in the order of both."""
    left = {False: iter(by_score), True: iter(by_match)}
    taken: dict[int, None] = {}
    turn = 0
    while len(taken) < k and left:
        turn += 1
        second = True in left and (turn % every == 0 or False not in left)
        position = next((at for at in left[second] if at not in taken), None)
        if position is None:
            del left[second]
        else:
            taken[position] = None
    return list(taken)


def to_retrieved_sentence(
    store: DocumentReader,
    document_id: int,
    header: DocumentHeader,
    sentence: SentenceRecord,
    score: float,
    passage: tuple[int, int],
) -> RetrievedSentence:
    """Combine a sentence of the store with its document and, in csv and jsonl, its row."""
    has_rows = header.kind in ("csv", "jsonl")
    row = store.row_at(document_id, sentence.start) if has_rows else None
    return RetrievedSentence(
        document=header.name,
        ordinal=sentence.ordinal,
        text=sentence.text,
        start=sentence.start,
        end=sentence.end,
        unit=cast(PlaceUnit, header.unit),
        number=sentence.number,
        heading=sentence.heading,
        headings=sentence.headings,
        lead_in=sentence.lead_in,
        title=header.title,
        score=score,
        row=row.row if row else None,
        record=row.id if row else "",
        passage=passage,
    )


def to_document_sentence(sentence: SentenceRecord) -> DocumentSentence:
    """The public form of a sentence of the store."""
    return DocumentSentence(
        sentence.ordinal,
        sentence.text,
        sentence.start,
        sentence.end,
        sentence.number,
        sentence.heading,
        sentence.is_heading,
        SENTENCE_KINDS[sentence.kind],
        sentence.headings,
    )


def _section(sentences: Iterable[SentenceRecord], *, reverse: bool = False) -> str:
    """
    The sentences up to the first heading, joined in the order of the text.

    Code keeps its lines, each indented by four spaces.
    """
    section = list(takewhile(lambda each: not each.is_heading, sentences))
    text = ""
    for each in reversed(section) if reverse else section:
        is_code = SENTENCE_KINDS[each.kind] == "code"
        own = indent(each.text, CODE_INDENT) if is_code else " ".join(each.text.split())
        separator = "\n" if is_code or text.rpartition("\n")[2].startswith(CODE_INDENT) else " "
        text = f"{text}{separator}{own}" if text else own
    return text


def standard_scores(scores: Sequence[float]) -> list[float] | None:
    """Standard deviations from the mean; None for no scores and for infinite ones."""
    if not scores or not all(map(math.isfinite, scores)):
        return None
    mean = math.fsum(scores) / len(scores)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    return [(score - mean) / (deviation or 1.0) for score in scores]
