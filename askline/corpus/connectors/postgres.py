"""
The table that is asked: what the address says of it, and what the server knows of it.

A connection that reads and does nothing else, and what goes wrong with it.

The statements, put together once for a table; what a question brings comes as parameters.

PostgreSQL: full text, and vectors where the table has them and somebody can make one.

PostgreSQL's own `ts_rank` does not know that rare words say more than common ones, so each word of
the question is counted first (up to a limit), and ranks are added with those weights. Only texts
with one of the rarest words are ranked, so that a question with a word that every text has stays
fast in a large table.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import CorpusError, InputError, UnknownNameError, require_extra, unknown_name_message
from ..bm25 import Stemmer, inverse_document_frequency
from ..results import RetrievedSentence
from .sentence_retrieval import SentenceWithNeighbors, ServerText, best_sentences
from .server_url import ServerUrl, find_text_field, named

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composable, Composed

__all__ = [
    "DISTANCES",
    "MAX_MATCHES",
    "OPTIONS",
    "PostgresConnector",
    "Table",
    "TableOptions",
    "TableQueries",
    "inspect_table",
    "open_connection",
    "postgres_errors",
]

OPTIONS = "table text id title search language embedding distance texts timeout".split()
"""Ours in an address; all others are libpq's."""
DISTANCES = {"cosine": "<=>", "l2": "<->", "inner": "<#>"}
"""pgvector's operators: the smaller, the nearer."""
_TEXTS, _SECONDS = 50, 10.0
_SAMPLED = 100_000  # rows that are counted; for more, the server's own estimate

_COLUMNS = """
SELECT attname, typname, typcategory, atttypid::regtype::text
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_TABLES = """
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN relname ELSE nspname || '.' || relname END
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname !~ '^(pg_|information_schema$)'
LIMIT 1000
"""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What an address says; None where the server is to be asked."""

    table: str
    text: str | None
    id: str
    title: str | None
    search: str | None
    language: str | None
    embedding: str | None
    distance: str
    texts: int
    seconds: float

    @classmethod
    def of(cls, address: ServerUrl) -> TableOptions:
        """Refuses with an InputError what cannot be meant."""
        given = address.options
        if not given.get("table"):
            raise InputError(f"{address} must name a table: {address}?table=TABLE&text=COLUMN.")
        distance = given.get("distance", "cosine")
        if distance not in DISTANCES:
            raise UnknownNameError("distance", distance, DISTANCES)
        return cls(
            given["table"],
            given.get("text"),
            given.get("id", "id"),
            given.get("title"),
            given.get("search"),
            given.get("language"),
            given.get("embedding"),
            distance,
            int(address.number("texts", _TEXTS, least=1)),
            address.number("timeout", _SECONDS, least=0.1),
        )


@dataclass(frozen=True, slots=True)
class Table:
    """What the server has: columns that are there, of types that will do."""

    settings: TableOptions
    id: str
    text: str
    title: str | None
    language: str
    vector: str
    """The type of the column with the vectors; empty where there is none."""
    size: int


class _Column(NamedTuple):
    type: str
    category: str
    type_name: str


def inspect_table(connection: Connection[Any], settings: TableOptions) -> Table:
    """Everything that has to be known before the first question; a CorpusError where it fails."""
    from psycopg import sql

    name = sql.Identifier(*settings.table.split("."))
    found = connection.execute("SELECT to_regclass(%s)::oid", [name.as_string(connection)])
    number = (found.fetchone() or [None])[0]
    if number is None:
        there = [row[0] for row in connection.execute(_TABLES)]
        raise CorpusError(unknown_name_message("table", settings.table, there))
    columns = {row[0]: _Column(*row[1:]) for row in connection.execute(_COLUMNS, [number])}
    counted = connection.execute(
        sql.SQL(
            "SELECT greatest(reltuples::bigint, (SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {}) "
            "AS sample)) FROM pg_class WHERE oid = %s"
        ).format(name, sql.Literal(_SAMPLED)),
        [number],
    ).fetchone()
    place = f"The table {settings.table}"
    readable = [name for name, column in columns.items() if column.category == "S"]
    title = settings.title or ("title" if "title" in readable else None)
    return Table(
        settings,
        id=named(settings.id, columns, "id column", place),
        text=find_text_field(settings.text, readable, "column", place),
        title=named(title, columns, "column", place) if title else None,
        language=_language(connection, settings, columns, place),
        vector=_typed(settings.embedding, columns, ("vector", "halfvec", "sparsevec"), place),
        size=int(counted[0]) if counted else 0,
    )


def _language(
    connection: Connection[Any], settings: TableOptions, columns: Mapping[str, _Column], place: str
) -> str:
    """The one asked for, or the server's default."""
    _typed(settings.search, columns, ("tsvector",), place)
    if settings.language is None:
        default = connection.execute("SHOW default_text_search_config").fetchone()
        return str(default[0]) if default else "simple"
    there = {row[0] for row in connection.execute("SELECT cfgname FROM pg_ts_config")}
    return named(settings.language, there, "text search language", place)


def _typed(
    name: str | None, columns: Mapping[str, _Column], types: tuple[str, ...], place: str
) -> str:
    """The type of a column, as SQL names it, which must be one of these."""
    if name is None:
        return ""
    column = columns[named(name, columns, "column", place)]
    if column.type not in types:
        raise CorpusError(
            f"{place}: the column {name!r} must be a {' or '.join(types)}, and is a "
            f"{column.type_name}."
        )
    return column.type_name


def open_connection(address: ServerUrl, settings: TableOptions) -> Connection[Any]:
    """Name and password come from the address, or from wherever libpq looks for them."""
    psycopg = require_extra("psycopg", purpose="PostgreSQL", extra="postgres")
    others = {name: value for name, value in address.options.items() if name not in OPTIONS}
    given: dict[str, Any] = {
        "host": address.host or None,
        "port": address.port,
        "dbname": address.path or None,
        "user": address.user,
        "password": address.password,
        "connect_timeout": max(2, math.ceil(settings.seconds)),  # libpq's least
        "tcp_user_timeout": round(1000 * settings.seconds),
        "application_name": "askline",
        **others,
    }
    try:
        psycopg.conninfo.make_conninfo(**given)
    except psycopg.ProgrammingError as error:
        unknown = next(iter(others), "")
        message = unknown_name_message("option", unknown, OPTIONS)
        raise InputError(f"{message} Nor does libpq know it.") from error
    connection: Connection[Any] = psycopg.connect(**given, autocommit=True, prepare_threshold=None)
    connection.execute(
        "SELECT set_config('statement_timeout', %s, false), "
        "set_config('default_transaction_read_only', 'on', false), "
        "set_config('hnsw.ef_search', %s, false)",  # or its index gives 40 texts at most
        [str(round(1000 * settings.seconds)), str(min(1000, max(40, settings.texts)))],
    )
    return connection


@contextmanager
def postgres_errors(address: ServerUrl, settings: TableOptions) -> Iterator[None]:
    """Raise what psycopg raises as a CorpusError."""
    psycopg = require_extra("psycopg", purpose="PostgreSQL", extra="postgres")
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise CorpusError(
            f"{address}: No answer within {settings.seconds:g} seconds. Allow more, "
            "timeout=SECONDS, or make an index on the words (docs/connectors.md)."
        ) from error
    except psycopg.errors.ConnectionTimeout as error:
        raise CorpusError(
            f"{address}: No connection within {settings.seconds:g} seconds. Check host and port."
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise CorpusError(f"{address}: {_said(error, address)}. Grant SELECT on it.") from error
    except psycopg.OperationalError as error:
        raise CorpusError(
            f"{address} cannot be reached: {_said(error, address)}. Check host, port, database "
            "and user; the password may come from PGPASSWORD or ~/.pgpass."
        ) from error
    except psycopg.Error as error:
        raise CorpusError(f"{address} cannot answer: {_said(error, address)}.") from error


def _said(error: Any, address: ServerUrl) -> str:
    """The first line: below it stand the statement and hints of libpq's."""
    lines = (error.diag.message_primary or str(error)).splitlines()
    return address.without_secrets(next(iter(lines), type(error).__name__)).rstrip(".")


MAX_MATCHES = 20_000
"""TextInput in which a word is counted, and texts that are ranked for a question, at most."""


class TableQueries:
    """
    Statements with the names of one table.

    The language stands in them as a constant, or PostgreSQL could not use an index on
    `to_tsvector('english', body)`.
    """

    def __init__(self, table: Table) -> None:
        from psycopg import sql

        settings = table.settings
        self._names: dict[str, Composable] = {
            "table": sql.Identifier(*settings.table.split(".")),
            "id": sql.Identifier(table.id),
            "text": sql.Identifier(table.text),
            "title": sql.Identifier(table.title) if table.title else sql.NULL,
            "language": sql.SQL("{}::regconfig").format(sql.Literal(table.language)),
            "most": sql.Literal(MAX_MATCHES),
        }
        self._names["words"] = (
            sql.Identifier(settings.search)
            if settings.search
            else self._filled("to_tsvector({language}, {text})")
        )
        if settings.embedding is not None:
            self._names |= {
                "embedding": sql.Identifier(settings.embedding),
                "distance": sql.SQL(DISTANCES[settings.distance]),
                "vector": sql.SQL(table.vector),  # out of the catalogue
            }

    def terms(self) -> Composed:
        """The different words of the question, as this language knows them."""
        return self._filled("SELECT tsvector_to_array(to_tsvector({language}, %(question)s))")

    def counts(self) -> Composed:
        """How many texts have each of the terms, as far as they are counted."""
        return self._filled(
            """
            SELECT (SELECT count(*) FROM (
                SELECT 1 FROM {table} WHERE {words} @@ term::tsquery LIMIT {most}
            ) AS sample)
            FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS asked (term, place) ORDER BY place
            """
        )

    def by_words(self, terms: int) -> Composed:
        """The texts that match `asked`, by the weighted sum of the terms' ranks."""
        from psycopg import sql

        # 1: divided by the logarithm of the length. LIMIT inside also sees to it that the words of
        # a text are made once, and not for every term.
        score = sql.SQL(" + ").join(
            sql.SQL("{} * ts_rank(words, {}::tsquery, 1)").format(
                sql.Placeholder(f"weight{at}"), sql.Placeholder(f"term{at}")
            )
            for at in range(terms)
        )
        return self._filled(
            """
            SELECT id, text, title, ({score})::float8 AS score FROM (
                SELECT {id}::text AS id, {text} AS text, {title}::text AS title, {words} AS words
                FROM {table} WHERE {words} @@ %(asked)s::tsquery LIMIT {most}
            ) AS matching
            ORDER BY score DESC, id LIMIT %(limit)s
            """,
            score=score,
        )

    def by_vector(self) -> Composed:
        """The texts whose vectors lie nearest."""
        return self._filled(
            """
            SELECT {id}::text, {text}, {title}::text, -({embedding} {distance} %(vector)s::{vector})
            FROM {table} WHERE {embedding} IS NOT NULL
            ORDER BY {embedding} {distance} %(vector)s::{vector} LIMIT %(limit)s
            """
        )

    def _filled(self, query: str, **more: Composable) -> Composed:
        from psycopg import sql

        return sql.SQL(query).format(**self._names, **more)


Encode = Callable[[str], Sequence[float]]

_TERMS = 32  # of a question, the rarest; more say nothing new
_FUSED = 60  # of reciprocal rank fusion, as everywhere


class PostgresConnector:
    """
    Made by `connect`. Several threads may ask, one after the other.

    A connection that broke is made anew for the next question.
    """

    def __init__(
        self,
        address: ServerUrl,
        table: Table,
        connection: Connection[Any],
        *,
        encode: Encode | None = None,
    ) -> None:
        self._address = address
        self._table = table
        self._connection = connection
        self._encode = encode
        self._queries = TableQueries(table)
        self._turn = threading.Lock()
        self._stems = Stemmer()

    @classmethod
    def connect(cls, address: ServerUrl, *, encode: Encode | None = None) -> PostgresConnector:
        """Look up the table and its columns. Only reading is allowed to this connection."""
        settings = TableOptions.of(address)
        if (encode is None) != (settings.embedding is None):
            raise InputError(
                "Vectors need both: embedding=COLUMN in the address, and encode, which gives the "
                "vector of a question."
            )
        with postgres_errors(address, settings):
            connection = open_connection(address, settings)
            try:
                table = inspect_table(connection, settings)
            except BaseException:
                connection.close()
                raise
        return cls(address, table, connection, encode=encode)

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences out of the texts found by words and by vector, best first."""
        vector = None if self._encode is None else _written(self._encode(question))
        settings = self._table.settings
        with self._turn, postgres_errors(self._address, settings):
            if self._connection.closed:
                self._connection = open_connection(self._address, settings)
            texts = self._by_words(question)
            if vector is not None:
                near = self._rows(self._queries.by_vector(), {"vector": vector})
                texts = _fused(texts, near)
        return best_sentences(question, texts, k, self._stems)

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        """The sentence before and the sentence after in the same text."""
        return (found.before, found.after) if isinstance(found, SentenceWithNeighbors) else ("", "")

    def __len__(self) -> int:
        return self._table.size

    def __str__(self) -> str:
        return f"postgresql/{self._table.settings.table}"

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def __enter__(self) -> PostgresConnector:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _by_words(self, question: str) -> list[ServerText]:
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
        return {
            term: (inverse_document_frequency(count, total), count)
            for count, term in known[:_TERMS]
        }

    def _rows(self, query: Any, values: dict[str, Any]) -> list[ServerText]:
        rows = self._connection.execute(query, values | {"limit": self._table.settings.texts})
        return [
            ServerText(name, text, title or "", score) for name, text, title, score in rows if text
        ]


def _rarest(weights: dict[str, tuple[float, int]]) -> list[str]:
    """As many terms, rarest first, as have `MAX_MATCHES` texts together; one in any case."""
    terms: list[str] = []
    seen = 0
    for term, (_, count) in weights.items():
        seen += count
        if terms and seen > MAX_MATCHES:
            break
        terms.append(term)
    return terms


def _quoted(lexeme: str) -> str:
    """A lexeme as the text of a tsquery."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _written(vector: Sequence[float]) -> str:
    """As pgvector reads it."""
    return "[" + ",".join(repr(float(value)) for value in vector) + "]"


def _fused(*lists: Sequence[ServerText]) -> list[ServerText]:
    """Reciprocal rank fusion: ranks can be added, scores of different kinds cannot."""
    texts: dict[str, ServerText] = {}
    scores: dict[str, float] = {}
    for found in lists:
        for rank, text in enumerate(found, start=1):
            texts.setdefault(text.id, text)
            scores[text.id] = scores.get(text.id, 0.0) + 1 / (_FUSED + rank)
    fused = [text._replace(score=scores[name]) for name, text in texts.items()]
    return sorted(fused, key=lambda text: -text.score)
