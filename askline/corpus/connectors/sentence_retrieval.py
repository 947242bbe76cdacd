"""From the texts that a server found to the sentences in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..bm25 import Stemmer, bm25, inverse_document_frequency, standard, stem_texts
from ..ingest import text_record
from ..results import RetrievedSentence
from ..retrieval import MAX_SENTENCE_CHARACTERS
from ..schema import SentenceRecord
from ..search_index import passages

__all__ = [
    "SentenceWithNeighbors",
    "ServerText",
    "best_sentences",
]


class ServerText(NamedTuple):
    """A text as a server keeps it, and how well the server says it fits."""

    id: str
    text: str
    title: str
    score: float


@dataclass(frozen=True, slots=True)
class SentenceWithNeighbors(RetrievedSentence):
    """A sentence with those around it, so that the server need not be asked again."""

    before: str = ""
    after: str = ""


class _Sentence(NamedTuple):
    text: ServerText
    row: SentenceRecord
    before: str
    after: str
    passage: int


def best_sentences(
    question: str, texts: Sequence[ServerText], k: int, stems: Stemmer
) -> list[RetrievedSentence]:
    """
    At most `k` sentences, best first.

    The server has judged whole texts with what it knows of all of them; here sentences are judged,
    and the passages they stand in, as the corpus does it, with inverse document frequencies over
    the passages at hand. Both judgements are added as standard scores (docs/connectors.md has the
    figures).
    """
    sentences, spoken = _cut(texts, stems)
    if not sentences:
        return []
    weights = _weights(stems.terms(question), spoken)
    said = stem_texts((each.row.text[:MAX_SENTENCE_CHARACTERS] for each in sentences), stems.stem)
    passage = bm25(spoken, weights)
    own = [
        score + passage[each.passage]
        for each, score in zip(sentences, bm25(said, weights), strict=True)
    ]
    servers = standard([each.text.score for each in sentences]) or [0.0] * len(own)
    scores = [a + b for a, b in zip(standard(own) or own, servers, strict=True)]
    answering = [
        (score, each)
        for score, each, terms in zip(scores, sentences, said, strict=True)
        if not weights.keys() >= set(terms)  # it says nothing but words of the question
    ]
    answering.sort(key=lambda pair: -pair[0])
    return [_found(each, score) for score, each in answering[:k]]


def _cut(texts: Sequence[ServerText], stems: Stemmer) -> tuple[list[_Sentence], list[list[str]]]:
    """Every sentence with its passage's number, and the terms of each passage."""
    sentences: list[_Sentence] = []
    spoken: list[str] = []
    for text in texts:
        rows = list(text_record(text.id, text.text).rows)
        for first, last, said in passages(rows):
            for at in range(first, last + 1):
                before = rows[at - 1].text if at else ""
                after = rows[at + 1].text if at + 1 < len(rows) else ""
                sentences.append(_Sentence(text, rows[at], before, after, len(spoken)))
            spoken.append(f"{text.title} {said}")
    return sentences, stem_texts(spoken, stems.stem)


def _weights(terms: Sequence[str], spoken: Sequence[Sequence[str]]) -> Mapping[str, float]:
    asked = set(terms)
    counts = Counter(term for said in spoken for term in asked.intersection(said))
    return {
        term: inverse_document_frequency(counts[term], len(spoken))
        for term in terms
        if counts[term]
    }


def _found(each: _Sentence, score: float) -> SentenceWithNeighbors:
    row, text = each.row, each.text
    return SentenceWithNeighbors(
        document=text.id,
        ordinal=row.ordinal,
        text=row.text,
        start=row.first,
        end=row.last,
        unit="line",
        number=row.place,
        heading=row.heading,
        title=text.title,
        score=score,
        before=each.before,
        after=each.after,
    )
