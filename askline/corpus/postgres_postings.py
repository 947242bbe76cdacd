"""
The search index of the shared store: passages under their terms, ranked by tantivy's BM25.

A transaction that adds documents writes a segment: a row per term with the term's passages, packed
into numbers. Document frequencies and lengths are sums over the segments, so they belong to the
same transaction as the documents. A removed document stays in the counts until its segment is
merged, as in tantivy. Segments of similar size are merged after a write.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from .bm25 import Stemmer, inverse_document_frequency
from .connectors.postgres_connection import PostgresPool
from .passages import IndexedPassage, PassageHit

__all__ = ["PostgresPostings", "quantized_length"]

_POSTING = np.dtype([("passage", "<u4"), ("count", "<u2"), ("length", "u1"), ("title", "u1")])
"""
A passage of a term: its number in the segment, the occurrences in the text, and the quantized
lengths of its text and of its title; 0 for a title without the term.
"""
_K1, _B = 1.2, 0.75  # the constants of tantivy
_MAX_COUNT = 65_535
_SPARE_HITS = 10  # passages looked up besides those asked for, because some may be removed
_MERGED_SEGMENTS = 8  # segments of one size that become one
_TERMS_PER_STEP = 5_000  # rows read at once while segments are merged


def _length_table() -> np.ndarray[Any, np.dtype[np.float64]]:
    """The 256 lengths that tantivy and Lucene keep: exact up to 40, then three binary digits."""
    lengths = list(range(24))
    for code in range(256 - 24):
        bits, shift = code & 7, (code >> 3) - 1
        lengths.append(24 + (bits if shift < 0 else (bits | 8) << shift))
    return np.array(lengths, dtype=np.float64)


_LENGTHS = _length_table()


def quantized_length(length: int) -> int:
    """The position in the table of the greatest length that is not above the given one."""
    return int(np.searchsorted(_LENGTHS, length, side="right")) - 1


class _Segment(NamedTuple):
    id: int
    passages: int
    tokens: int
    title_tokens: int


class PostgresPostings:
    """Reads and writes the tables `segments`, `passages` and `postings`."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool
        stemmer = Stemmer()
        self._analyze = stemmer.analyzer.analyze
        self._stem = stemmer.stem

    # Reading

    @property
    def stem(self) -> Callable[[str], str]:
        """The index term of a word; empty if the index leaves the word out."""
        return self._stem

    def term_weights(self, terms: Iterable[str]) -> dict[str, float]:
        """The inverse document frequency of each term over passages; unknown terms are left out."""
        wanted = [term for term in dict.fromkeys(terms) if "\0" not in term]
        if not wanted:
            return {}
        rows = self._pool.execute(
            "SELECT term, sum(texts), (SELECT coalesce(sum(passages), 0) FROM segments) "
            "FROM postings WHERE term = ANY(%s) GROUP BY term",
            [wanted],
        )
        counts = {term: (int(count), int(total) + 1) for term, count, total in rows}
        return {
            term: inverse_document_frequency(*counts[term])
            for term in wanted
            if term in counts and counts[term][0]
        }

    def search(
        self, terms: Mapping[str, float], limit: int, *, titles: float = 0.0
    ) -> list[PassageHit]:
        """
        At most `limit` passages with the highest BM25 scores, best first.

        Each term counts by its factor, and `titles` times as much again in titles and headings.
        Passages with equal scores are in the order in which they were added.
        """
        if not terms:
            return []
        with self._pool.reading():
            segments = self._segments()
            rows = self._pool.execute(
                "SELECT term, segment, data FROM postings WHERE term = ANY(%s)",
                [list(terms)],
                binary=True,
            )
            scores = _scores(rows, segments, terms, titles)
            return self._best_passages(scores, segments, limit)

    def _segments(self) -> list[_Segment]:
        rows = self._pool.execute(
            "SELECT id, passages, tokens, title_tokens FROM segments ORDER BY id"
        )
        return [_Segment(*map(int, row)) for row in rows]

    def _best_passages(
        self, scores: np.ndarray[Any, Any], segments: Sequence[_Segment], limit: int
    ) -> list[PassageHit]:
        """The best passages whose documents have not been removed."""
        starts = np.cumsum([0, *(segment.passages for segment in segments)])
        ids = np.array([segment.id for segment in segments], dtype=np.int64)
        matching = np.flatnonzero(scores > 0.0)
        order = matching[np.argsort(-scores[matching], kind="stable")]
        hits: list[PassageHit] = []
        at, step = 0, limit + _SPARE_HITS
        while at < len(order) and len(hits) < limit:
            part = order[at : at + step]
            of = np.searchsorted(starts, part, side="right") - 1
            keys = list(zip(ids[of].tolist(), (part - starts[of]).tolist(), strict=True))
            rows = self._pool.execute(
                "SELECT segment, number, document, first, last FROM passages "
                "JOIN unnest(%s::bigint[], %s::int[]) AS found (segment, number) "
                "USING (segment, number)",
                [[key[0] for key in keys], [key[1] for key in keys]],
            )
            stored: dict[tuple[int, int], tuple[int, int, int]]
            stored = {(row[0], row[1]): (row[2], row[3], row[4]) for row in rows}
            hits += [
                PassageHit(*stored[key], float(score))
                for key, score in zip(keys, scores[part], strict=True)
                if key in stored
            ]
            at, step = at + step, 4 * step
        return hits[:limit]

    # Writing

    def add(self, documents: Iterable[tuple[int, Iterable[IndexedPassage]]]) -> None:
        """Index documents by their ids as one segment, in the running transaction."""
        places: list[tuple[Any, ...]] = []
        postings: defaultdict[str, list[tuple[int, int, int, int]]] = defaultdict(list)
        for document_id, passages in documents:
            for passage in passages:
                number = len(places)
                tokens = self._analyze(passage.words)
                titles = self._analyze(passage.title_words)
                places.append(
                    (number, document_id, passage.first, passage.last, len(tokens), len(titles))
                )
                length, title = quantized_length(len(tokens)), quantized_length(len(titles))
                counts = dict.fromkeys(titles, 0)
                for token in tokens:
                    counts[token] = counts.get(token, 0) + 1
                in_title = set(titles)
                for term, count in counts.items():
                    own = title if term in in_title else 0
                    postings[term].append((number, min(count, _MAX_COUNT), length, own))
        if places:
            rows = (
                (term, np.array(found, dtype=_POSTING)) for term, found in sorted(postings.items())
            )
            segment = self._insert_segment(places)
            self._insert_passages(segment, places)
            self._insert_postings(segment, rows)

    def merge(self) -> None:
        """Merge segments of one size if there are many, unless another process merges."""
        with self._pool.writing():
            if not self._needs_merge():
                return
            # The number is that of the tables, so that schemas of one database do not wait.
            (row,) = self._pool.execute(
                "SELECT pg_try_advisory_xact_lock('segments'::regclass::oid::bigint)"
            )
            while row[0] and (chosen := self._needs_merge()):
                self._merge(chosen)

    def clear(self) -> None:
        """Delete the index, in the running transaction."""
        self._pool.execute("DELETE FROM postings")
        self._pool.execute("DELETE FROM passages")
        self._pool.execute("DELETE FROM segments")

    def _needs_merge(self) -> list[_Segment]:
        """Segments of about the same size; empty if there are few of each size."""
        by_size = defaultdict[int, list[_Segment]](list)
        for segment in self._segments():
            by_size[int(math.log(max(1, segment.passages), _MERGED_SEGMENTS))].append(segment)
        full = [size for size, found in by_size.items() if len(found) >= _MERGED_SEGMENTS]
        return by_size[min(full)] if full else []

    def _merge(self, segments: Sequence[_Segment]) -> None:
        """Write the passages of segments that are still stored as one segment, in a transaction."""
        old = [segment.id for segment in segments]
        # Locked, so that a document that is removed meanwhile is removed from the new segment.
        rows = self._pool.execute(
            "SELECT segment, number, document, first, last, tokens, title_tokens FROM passages "
            "WHERE segment = ANY(%s) ORDER BY segment, number FOR UPDATE",
            [old],
        )
        numbers = {
            segment.id: np.full(segment.passages, -1, dtype=np.int64) for segment in segments
        }
        for new, (segment_id, number, *_) in enumerate(rows):
            numbers[segment_id][number] = new
        merged = self._insert_segment([(new, *row[2:]) for new, row in enumerate(rows)])
        for term_rows in self._rows_by_term(old):
            self._insert_postings(
                merged,
                (
                    (term, data)
                    for term, found in term_rows
                    if len(data := _renumbered(found, numbers))
                ),
            )
        self._pool.execute(
            "UPDATE passages p SET segment = %s, number = moved.new "
            "FROM unnest(%s::bigint[], %s::int[], %s::int[]) AS moved (segment, number, new) "
            "WHERE p.segment = moved.segment AND p.number = moved.number",
            [merged, [row[0] for row in rows], [row[1] for row in rows], list(range(len(rows)))],
        )
        self._pool.execute("DELETE FROM postings WHERE segment = ANY(%s)", [old])
        self._pool.execute("DELETE FROM segments WHERE id = ANY(%s)", [old])

    def _rows_by_term(
        self, segments: Sequence[int]
    ) -> Iterator[list[tuple[str, list[tuple[int, bytes]]]]]:
        """The postings of segments, a few thousand terms at a time, in the order of the terms."""
        query = "SELECT term, segment, data FROM postings WHERE segment = ANY(%s) ORDER BY 1, 2"
        waiting: list[Any] = []
        # A cursor with a name is on the server: what it finds need not fit into memory.
        with self._pool.connection.cursor("merged_postings", binary=True) as cursor:
            cursor.execute(query, [list(segments)])
            while part := cursor.fetchmany(_TERMS_PER_STEP):
                waiting += part
                last = part[-1][0]
                ready = [row for row in waiting if row[0] != last]
                waiting = [row for row in waiting if row[0] == last]
                yield _by_term(ready)
        yield _by_term(waiting)

    def _insert_segment(self, places: Sequence[tuple[Any, ...]]) -> int:
        tokens, title_tokens = (sum(place[at] for place in places) for at in (-2, -1))
        (row,) = self._pool.execute(
            "INSERT INTO segments (passages, tokens, title_tokens) VALUES (%s, %s, %s) "
            "RETURNING id",
            [len(places), tokens, title_tokens],
        )
        return int(row[0])

    def _insert_passages(self, segment: int, places: Sequence[tuple[Any, ...]]) -> None:
        columns = "segment, number, document, first, last, tokens, title_tokens"
        with (
            self._pool.connection.cursor() as cursor,
            cursor.copy(f"COPY passages ({columns}) FROM STDIN") as copy,
        ):
            for place in places:
                copy.write_row((segment, *place))

    def _insert_postings(
        self, segment: int, rows: Iterable[tuple[str, np.ndarray[Any, Any]]]
    ) -> None:
        with (
            self._pool.connection.cursor() as cursor,
            cursor.copy("COPY postings (segment, term, texts, data) FROM STDIN") as copy,
        ):
            for term, data in rows:
                texts = int(np.count_nonzero(data["count"]))
                copy.write_row((segment, term, texts, data.tobytes()))


def _by_term(rows: Sequence[Any]) -> list[tuple[str, list[tuple[int, bytes]]]]:
    return [
        (term, [(segment, data) for _, segment, data in own])
        for term, own in groupby(rows, key=lambda row: row[0])
    ]


def _renumbered(
    found: Sequence[tuple[int, bytes]], numbers: Mapping[int, np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """The postings of a term with the numbers of the merged segment, without removed passages."""
    parts = []
    for segment, data in found:
        postings = np.frombuffer(data, dtype=_POSTING)
        new = numbers[segment][postings["passage"]]
        kept = postings[new >= 0].copy()
        kept["passage"] = new[new >= 0]
        parts.append(kept)
    return np.concatenate(parts)


def _scores(
    rows: Sequence[tuple[str, int, bytes]],
    segments: Sequence[_Segment],
    terms: Mapping[str, float],
    titles: float,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The score of each passage, in the order of the segments; 0 for those without a term."""
    starts = dict(
        zip(
            (segment.id for segment in segments),
            np.cumsum([0, *(segment.passages for segment in segments)]).tolist(),
            strict=False,
        )
    )
    # Tantivy counts the stamp of the embedded index as one more passage.
    total = sum(segment.passages for segment in segments) + 1
    norms = _norms(sum(segment.tokens for segment in segments) / total)
    title_norms = _norms(sum(segment.title_tokens for segment in segments) / total)
    by_term: defaultdict[str, list[tuple[int, np.ndarray[Any, Any]]]] = defaultdict(list)
    for term, segment_id, data in rows:
        by_term[term].append((starts[segment_id], np.frombuffer(data, dtype=_POSTING)))
    scores = np.zeros(total - 1)
    for term, factor in terms.items():
        parts = by_term.get(term, [])
        count = sum(int(np.count_nonzero(part["count"])) for _, part in parts)
        in_title = sum(int(np.count_nonzero(part["title"])) for _, part in parts)
        weight = factor * (_K1 + 1) * inverse_document_frequency(count, total)
        title_weight = titles * factor * (_K1 + 1) * inverse_document_frequency(in_title, total)
        for start, part in parts:
            places = start + part["passage"].astype(np.int64)
            counts = part["count"].astype(np.float64)
            scores[places] += weight * counts / (counts + norms[part["length"]])
            if titles and in_title:
                named = part["title"] > 0
                scores[places[named]] += title_weight / (1 + title_norms[part["title"][named]])
    return scores


def _norms(average: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """For each quantized length, what is added to the number of occurrences."""
    return _K1 * (1 - _B + _B * _LENGTHS / (average or 1.0))
