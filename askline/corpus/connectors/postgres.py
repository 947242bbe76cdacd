"""
PostgreSQL: full text, and vectors where the table has them and somebody can make one.

PostgreSQL's own `ts_rank` does not know that rare words say more than common ones, so each word of
the question is counted first (up to a limit), and ranks are added with those weights. Only texts
with one of the rarest words are ranked, so that a question with a word that every text has stays
fast in a large table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ..answers import Found
from ..scoring import rarity
from ..stems import Stems
from .address import Address
from .postgres_link import open_link, postgres_faults
from .postgres_queries import MOST, Queries
from .postgres_table import Settings, Table, look_up
from .texts import Near, Text, best_sentences

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresRetriever"]

Encode = Callable[[str], Sequence[float]]

_TERMS = 32  # of a question, the rarest; more say nothing new
_FUSED = 60  # of reciprocal rank fusion, as everywhere


class PostgresRetriever:
    """
    Made by `connect`. Several threads may ask, one after the other.

    A connection that broke is made anew for the next question.
    """

    def __init__(
        self,
        address: Address,
        table: Table,
        connection: Connection[Any],
        *,
        encode: Encode | None = None,
    ) -> None:
        self._address = address
        self._table = table
        self._connection = connection
        self._encode = encode
        self._queries = Queries(table)
        self._turn = threading.Lock()
        self._stems = Stems()

    @classmethod
    def connect(cls, address: Address, *, encode: Encode | None = None) -> PostgresRetriever:
        """Look up the table and its columns. Only reading is allowed to this connection."""
        settings = Settings.of(address)
        if (encode is None) != (settings.embedding is None):
            raise InputError(
                "Vectors need both: embedding=COLUMN in the address, and encode, which gives the "
                "vector of a question."
            )
        with postgres_faults(address, settings):
            connection = open_link(address, settings)
            try:
                table = look_up(connection, settings)
            except BaseException:
                connection.close()
                raise
        return cls(address, table, connection, encode=encode)

    def retrieve(self, question: str, k: int) -> list[Found]:
        """At most `k` sentences out of the texts found by words and by vector, best first."""
        vector = None if self._encode is None else _written(self._encode(question))
        settings = self._table.settings
        with self._turn, postgres_faults(self._address, settings):
            if self._connection.closed:
                self._connection = open_link(self._address, settings)
            texts = self._by_words(question)
            if vector is not None:
                near = self._rows(self._queries.by_vector(), {"vector": vector})
                texts = _fused(texts, near)
        return best_sentences(question, texts, k, self._stems)

    def neighbours(self, found: Found) -> tuple[str, str]:
        """The sentence before and the sentence after in the same text."""
        return (found.before, found.after) if isinstance(found, Near) else ("", "")

    def __len__(self) -> int:
        return self._table.size

    def __str__(self) -> str:
        return f"postgresql/{self._table.settings.table}"

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def __enter__(self) -> PostgresRetriever:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _by_words(self, question: str) -> list[Text]:
        weights = self._weights(question)
        if not weights:
            return []
        values: dict[str, Any] = {"asked": " | ".join(_rarest(weights))}
        for at, (term, (weight, _)) in enumerate(weights.items()):
            values |= {f"term{at}": term, f"weight{at}": weight}
        return self._rows(self._queries.by_words(len(weights)), values)

    def _weights(self, question: str) -> dict[str, tuple[float, int]]:
        """The terms that are in the table, rarest first, each with its weight and its count."""
        sendable = question.replace("\0", " ").encode("utf-8", "replace").decode()
        asked = self._connection.execute(self._queries.terms(), {"question": sendable}).fetchone()
        terms = [_quoted(term) for term in asked[0]] if asked else []
        counts = self._connection.execute(self._queries.counts(), {"terms": terms}).fetchall()
        known = sorted((row[0], term) for row, term in zip(counts, terms, strict=True) if row[0])
        total = max([self._table.size, *(count for count, _ in known)])
        return {term: (rarity(count, total), count) for count, term in known[:_TERMS]}

    def _rows(self, query: Any, values: dict[str, Any]) -> list[Text]:
        rows = self._connection.execute(query, values | {"limit": self._table.settings.texts})
        return [Text(name, text, title or "", score) for name, text, title, score in rows if text]


def _rarest(weights: dict[str, tuple[float, int]]) -> list[str]:
    """As many terms, rarest first, as have `MOST` texts together; one in any case."""
    terms: list[str] = []
    seen = 0
    for term, (_, count) in weights.items():
        seen += count
        if terms and seen > MOST:
            break
        terms.append(term)
    return terms


def _quoted(lexeme: str) -> str:
    """A lexeme as the text of a tsquery."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _written(vector: Sequence[float]) -> str:
    """As pgvector reads it."""
    return "[" + ",".join(repr(float(value)) for value in vector) + "]"


def _fused(*lists: Sequence[Text]) -> list[Text]:
    """Reciprocal rank fusion: ranks can be added, scores of different kinds cannot."""
    texts: dict[str, Text] = {}
    scores: dict[str, float] = {}
    for found in lists:
        for rank, text in enumerate(found, start=1):
            texts.setdefault(text.id, text)
            scores[text.id] = scores.get(text.id, 0.0) + 1 / (_FUSED + rank)
    fused = [text._replace(score=scores[name]) for name, text in texts.items()]
    return sorted(fused, key=lambda text: -text.score)
