"""
Sentences that do not answer a question and come from elsewhere than its own paragraph.

A ranker that stands behind retrieval meets such sentences; one trained on paragraphs alone lost
seven points of MAP on lists padded to 400 candidates (research/notes/transformers.md). Found
once, on the CPU, by BM25 over all sentences and by article, and kept in a file that training reads.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...text.atomic_write import replacing
from ...text.words import words
from ...types import Question, Ranker

__all__ = ["Negatives", "mine", "pool_of"]

_SHORTEST = 4  # words; shorter ones are headings and remains of a split
_DEPTH = 40  # how far down the ranking negatives are looked for
_COMMON = 0.1  # words in more than this share of the sentences find nothing
_ARTICLE = re.compile(r"(.+)#\d+")  # a paragraph's id is its article, # and its place in it


def pool_of(questions: Sequence[Question]) -> list[str]:
    """The different sentences of the questions' candidates, sorted, without the shortest."""
    texts = {text for question in questions for text in question.texts}
    return sorted(text for text in texts if len(text.split()) >= _SHORTEST)


@dataclass(frozen=True, slots=True, eq=False)
class Negatives:
    """Places in the pool of the questions they were mined for; -1 where there are fewer."""

    hard: NDArray[np.int32]  # (questions, n) those that share most with the question, best first
    near: NDArray[np.int32]  # (questions, m) of the same article, at random
    fingerprint: str
    """Of the questions and the pool: negatives of other questions are refused."""

    def save(self, path: Path) -> None:
        """Write the file whole or leave the old one."""
        with replacing(path) as stream:
            np.savez_compressed(
                stream, hard=self.hard, near=self.near, fingerprint=np.array(self.fingerprint)
            )

    @classmethod
    def at(cls, path: Path, questions: Sequence[Question]) -> Negatives:
        """Those in the file, which is made where it is not there yet: half a minute for 50,000."""
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            mine(questions).save(path)
        return cls.load(path, questions)

    @classmethod
    def load(cls, path: Path, questions: Sequence[Question]) -> Negatives:
        """Read negatives that were mined for these questions."""
        remedy = "Remove the file, so that they are mined again."
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                found = cls(file["hard"], file["near"], str(file["fingerprint"]))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise InputError(f"{path} is no file of negatives. {remedy}") from error
        if found.fingerprint != _fingerprint(questions):
            raise InputError(f"{path} has the negatives of other questions. {remedy}")
        return found


def mine(
    questions: Sequence[Question],
    *,
    hard: int = 12,
    near: int = 8,
    seed: int = 0,
    ranker: Ranker | None = None,
) -> Negatives:
    """
    Negatives of every question out of the pool of all.

    Left out is what the question has as a candidate and what holds one of its gold phrases: that
    may be an answer, whatever paragraph it stands in. With a `ranker` the hard ones are those that
    it puts first among the forty that BM25 finds.
    """
    pool = pool_of(questions)
    plain = [_plain(text) for text in pool]
    articles = _by_article(questions, {text: place for place, text in enumerate(pool)})
    draw = random.Random(seed)
    rows: list[list[list[int]]] = [[], []]
    for question, found in zip(questions, _hard(pool, questions, ranker), strict=True):
        bad = _Barred(question)
        same = articles.get(_article(question), [])
        sample = draw.sample(same, min(len(same), 5 * near))
        for row, places, size in ((rows[0], found, hard), (rows[1], sample, near)):
            kept = [place for place in places if not bad.has(plain[place])][:size]
            row.append(kept + [-1] * (size - len(kept)))
    return Negatives(
        np.array(rows[0], np.int32).reshape(-1, hard),
        np.array(rows[1], np.int32).reshape(-1, near),
        _fingerprint(questions),
    )


class _Barred:
    """What must not be a negative of a question."""

    def __init__(self, question: Question) -> None:
        self.own = {_plain(text) for text in question.texts}
        self.phrases = [plain for phrase in question.answers if len(plain := _plain(phrase)) > 3]

    def has(self, plain: str) -> bool:
        return plain in self.own or any(phrase in plain for phrase in self.phrases)


def _plain(text: str) -> str:
    """Words alone, with a space around each, so that `in` finds whole words."""
    return f" {' '.join(words(text))} "


def _hard(
    pool: Sequence[str], questions: Sequence[Question], ranker: Ranker | None
) -> Iterator[list[int]]:
    """For each question places in the pool, those most like an answer first."""
    for question, places in zip(questions, _search(pool, questions), strict=True):
        if ranker is not None:
            hits = ranker.rank(question.text, [pool[place] for place in places])
            places = [places[hit.index] for hit in hits]
        yield places


def _search(pool: Sequence[str], questions: Sequence[Question]) -> Iterator[list[int]]:
    """For each question the places of the sentences that BM25 puts first."""
    import tantivy  # here, for reading a file of negatives needs no search

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    builder.add_integer_field("place", fast=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(64_000_000, 1)
    for place, text in enumerate(pool):
        writer.add_document(tantivy.Document(text=" ".join(words(text)), place=place))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    common = _COMMON * len(pool)
    for question in questions:
        terms = dict.fromkeys(words(question.text))
        rare = [term for term in terms if 0 < searcher.doc_freq("text", term) <= common]
        parts = [
            (tantivy.Occur.Should, tantivy.Query.term_query(index.schema, "text", term, "freq"))
            for term in rare
        ]
        query = tantivy.Query.boolean_query(parts)
        hits = searcher.search(query, limit=_DEPTH, count=False).hits if parts else []
        places = searcher.fast_field_values("place", [address for _, address in hits])
        yield [int(cast(int, place)) for place in places]


def _article(question: Question) -> str:
    source = question.candidates[0].source if question.candidates else None
    match = _ARTICLE.fullmatch(source.document) if source else None
    return match[1] if match else ""


def _by_article(questions: Sequence[Question], places: dict[str, int]) -> dict[str, list[int]]:
    """The places of each article's sentences, in order."""
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
