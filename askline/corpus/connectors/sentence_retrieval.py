"""From the texts that a server found to the best sentences in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..bm25 import Stemmer, bm25_scores, inverse_document_frequency, stem_texts
from ..document_records import text_record
from ..passages import MAX_SENTENCE_CHARACTERS, split_passages
from ..results import RetrievedSentence
from ..retrieval import standard_scores
from ..schema import SentenceRecord

__all__ = [
    "SentenceWithNeighbors",
    "ServerText",
    "best_sentences",
]


class ServerText(NamedTuple):
    """A text of a server, with the score that the server gave it for the question."""

    id: str
    text: str
    title: str
    score: float


@dataclass(frozen=True, slots=True)
class SentenceWithNeighbors(RetrievedSentence):
    """A sentence with those of its text, so that they need no second request to the server."""

    text_sentences: tuple[str, ...] = ()
    """All sentences of the text, by ordinal."""

    @staticmethod
    def neighbors_of(sentence: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        """At most `count` sentences before and after; empty if they are not known."""
        if not isinstance(sentence, SentenceWithNeighbors):
            return "", ""
        at, texts = sentence.ordinal, sentence.text_sentences
        before, after = texts[max(0, at - count) : at], texts[at + 1 : at + 1 + count]
        return " ".join(" ".join(before).split()), " ".join(" ".join(after).split())


class _Candidate(NamedTuple):
    text: ServerText
    sentence: SentenceRecord
    text_sentences: tuple[str, ...]
    passage: int
    """The position of its passage in the list of all passages."""


def best_sentences(
    question: str, texts: Sequence[ServerText], k: int, stemmer: Stemmer
) -> list[RetrievedSentence]:
    """
    At most `k` sentences, best first.

    The server has scored whole texts with its statistics of all texts. Here sentences and the
    passages around them are scored as in the corpus, with inverse document frequencies over these
    passages. The two scores are added as standard scores (figures: research/notes/corpus.md).
    """
    candidates, passage_terms = _split_texts(texts, stemmer)
    if not candidates:
        return []
    weights = _term_weights(stemmer.terms(question), passage_terms)
    sentence_texts = (each.sentence.text[:MAX_SENTENCE_CHARACTERS] for each in candidates)
    sentence_terms = stem_texts(sentence_texts, stemmer.stem)
    passage_scores = bm25_scores(passage_terms, weights)
    own_scores = [
        score + passage_scores[each.passage]
        for each, score in zip(candidates, bm25_scores(sentence_terms, weights), strict=True)
    ]
    server_scores = standard_scores([each.text.score for each in candidates])
    if server_scores is None:
        server_scores = [0.0] * len(candidates)
    own_standard = standard_scores(own_scores) or own_scores
    scored = [
        (own + server, each)
        for own, server, each, terms in zip(
            own_standard, server_scores, candidates, sentence_terms, strict=True
        )
        if not weights.keys() >= set(terms)  # it contains nothing but words of the question
    ]
    scored.sort(key=lambda pair: -pair[0])
    return [_to_retrieved(each, score) for score, each in scored[:k]]


def _split_texts(
    texts: Sequence[ServerText], stemmer: Stemmer
) -> tuple[list[_Candidate], list[list[str]]]:
    """Every sentence with the position of its passage, and the terms of each passage."""
    candidates: list[_Candidate] = []
    passages: list[str] = []
    for text in texts:
        sentences = list(text_record(text.id, text.text).sentences)
        sentence_texts = tuple(sentence.text for sentence in sentences)
        for first, last, passage in split_passages(sentences):
            candidates += [
                _Candidate(text, sentence, sentence_texts, len(passages))
                for sentence in sentences[first : last + 1]
            ]
            passages.append(f"{text.title} {passage}")
    return candidates, stem_texts(passages, stemmer.stem)


def _term_weights(terms: Sequence[str], passages: Sequence[Sequence[str]]) -> Mapping[str, float]:
    question_terms = set(terms)
    counts = Counter(term for passage in passages for term in question_terms.intersection(passage))
    return {
        term: inverse_document_frequency(counts[term], len(passages))
        for term in terms
        if counts[term]
    }


def _to_retrieved(candidate: _Candidate, score: float) -> SentenceWithNeighbors:
    sentence, text = candidate.sentence, candidate.text
    return SentenceWithNeighbors(
        document=text.id,
        ordinal=sentence.ordinal,
        text=sentence.text,
        start=sentence.start,
        end=sentence.end,
        unit="line",
        number=sentence.number,
        heading=sentence.heading,
        headings=sentence.headings,
        lead_in=sentence.lead_in,
        title=text.title,
        score=score,
        text_sentences=candidate.text_sentences,
    )
