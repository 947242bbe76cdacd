"""
The connector for a PostgreSQL table of your own: full-text search, and vectors if it has them.

PostgreSQL's `ts_rank` does not weight rare words higher than common ones. Therefore the texts with
each word of the question are counted first, up to a limit, and the ranks per word are added with
inverse document frequencies as weights. Only texts with one of the rarest words are ranked, so that
a question with a word that is in every text stays fast in a large table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import CorpusError, InputError, UnknownNameError, unknown_name_message
from ...rankers.requests import check_question
from ..bm25 import Stemmer, inverse_document_frequency
from ..results import RetrievedSentence
from .postgres_connection import open_postgres, postgres_errors
from .sentence_retrieval import SentenceWithNeighbors, ServerText, best_sentences
from .server_url import ServerUrl, find_text_field, require_field

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composable, Composed

__all__ = [
    "DISTANCES",
    "MAX_MATCHES",
    "OPTIONS",
    "EncodeQuestion",
    "PostgresConnector",
    "TableInfo",
    "TableOptions",
    "TableQueries",
]

OPTIONS = "table text id title search language embedding distance texts timeout".split()
"""The options of askline in a URL; all others are passed on to libpq."""
DISTANCES = {"cosine": "<=>", "l2": "<->", "inner": "<#>"}
"""The operators of pgvector: smaller values are nearer."""
MAX_MATCHES = 20_000
"""The largest number of texts that are counted per word, and ranked per question."""
_MAX_TERMS = 32  # the rarest words of a question; more add nothing
_RANK_FUSION_CONSTANT = 60  # the usual constant of reciprocal rank fusion
_DEFAULT_TEXTS = 50
_DEFAULT_TIMEOUT_SECONDS = 10.0
_COUNTED_ROWS = 100_000  # larger tables: the estimate of the server

EncodeQuestion = Callable[[str], Sequence[float]]
"""Returns the vector of a question."""


class PostgresConnector:
    """
    Opened by `connect`. Several threads may use it; they take turns.

    A connection that is lost is opened again for the next question.
    """

    def __init__(
        self,
        server: ServerUrl,
        table: TableInfo,
        connection: Connection[Any],
        *,
        encode: EncodeQuestion | None = None,
    ) -> None:
        self._server = server
        self._table = table
        self._connection = connection
        self._encode = encode
        self._queries = TableQueries(table)
        self._lock = threading.Lock()
        self._stemmer = Stemmer()

    @classmethod
    def connect(
        cls, server: ServerUrl, *, encode: EncodeQuestion | None = None
    ) -> PostgresConnector:
        """Open a read-only connection, and look up the table and its columns."""
        options = TableOptions.from_url(server)
        if (encode is None) != (options.embedding is None):
            raise InputError(
                "Vectors need both: embedding=COLUMN in the URL, and `encode`, which returns the "
                "vector of a question."
            )
        with _errors(server, options):
            connection = _open_connection(server, options)
            try:
                table = _inspect_table(connection, options)
            except BaseException:
                connection.close()
                raise
        return cls(server, table, connection, encode=encode)

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences out of the texts found by words and by vector, best first."""
        check_question(question)
        vector = None if self._encode is None else _vector_literal(self._encode(question))
        options = self._table.options
        with self._lock, _errors(self._server, options):
            if self._connection.closed:
                self._connection = _open_connection(self._server, options)
            texts = self._search_words(question)
            if vector is not None:
                nearest = self._fetch_texts(self._queries.by_vector(), {"vector": vector})
                texts = _fuse_ranks(texts, nearest)
        return best_sentences(question, texts, k, self._stemmer)

    def neighbors(self, sentence: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        """At most `count` sentences before and after in the same text, joined by spaces."""
        return SentenceWithNeighbors.neighbors_of(sentence, count)

    def __len__(self) -> int:
        return self._table.size

    def __str__(self) -> str:
        return f"postgresql/{self._table.options.table}"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> PostgresConnector:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _search_words(self, question: str) -> list[ServerText]:
        weights = self._term_weights(question)
        if not weights:
            return []
        values: dict[str, Any] = {"query": " | ".join(_rarest_terms(weights))}
        for at, (term, (weight, _)) in enumerate(weights.items()):
            values |= {f"term{at}": term, f"weight{at}": weight}
        return self._fetch_texts(self._queries.by_words(len(weights)), values)

    def _term_weights(self, question: str) -> dict[str, tuple[float, int]]:
        """The terms that occur in the table, rarest first, each with its weight and its count."""
        storable = question.replace("\0", " ").encode("utf-8", "replace").decode()
        row = self._connection.execute(self._queries.terms(), {"question": storable}).fetchone()
        terms = [_quote_lexeme(term) for term in row[0]] if row else []
        counts = self._connection.execute(self._queries.counts(), {"terms": terms}).fetchall()
        known = sorted((row[0], term) for row, term in zip(counts, terms, strict=True) if row[0])
        total = max([self._table.size, *(count for count, _ in known)])
        return {
            term: (inverse_document_frequency(count, total), count)
            for count, term in known[:_MAX_TERMS]
        }

    def _fetch_texts(self, query: Any, values: dict[str, Any]) -> list[ServerText]:
        rows = self._connection.execute(query, values | {"limit": self._table.options.texts})
        return [
            ServerText(name, text, title or "", score) for name, text, title, score in rows if text
        ]


def _rarest_terms(weights: dict[str, tuple[float, int]]) -> list[str]:
    """The rarest terms with at most `MAX_MATCHES` texts together; at least one term."""
    terms: list[str] = []
    total = 0
    for term, (_, count) in weights.items():
        total += count
        if terms and total > MAX_MATCHES:
            break
        terms.append(term)
    return terms


def _quote_lexeme(lexeme: str) -> str:
    """A lexeme in the syntax of a tsquery."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _vector_literal(vector: Sequence[float]) -> str:
    """A vector in the syntax of pgvector."""
    return "[" + ",".join(repr(float(value)) for value in vector) + "]"


def _fuse_ranks(*lists: Sequence[ServerText]) -> list[ServerText]:
    """Reciprocal rank fusion: ranks can be added, scores of different kinds cannot."""
    texts: dict[str, ServerText] = {}
    scores: dict[str, float] = {}
    for ranked in lists:
        for rank, text in enumerate(ranked, start=1):
            texts.setdefault(text.id, text)
            scores[text.id] = scores.get(text.id, 0.0) + 1 / (_RANK_FUSION_CONSTANT + rank)
    fused = [text._replace(score=scores[name]) for name, text in texts.items()]
    return sorted(fused, key=lambda text: -text.score)


# The queries


class TableQueries:
    """
    The SQL statements for one table; values of a question are parameters.

    The language is a constant in them, because otherwise PostgreSQL could not use an index on
    `to_tsvector('english', body)`.
    """

    def __init__(self, table: TableInfo) -> None:
        from psycopg import sql

        options = table.options
        self._names: dict[str, Composable] = {
            "table": sql.Identifier(*options.table.split(".")),
            "id": sql.Identifier(table.id),
            "text": sql.Identifier(table.text),
            "title": sql.Identifier(table.title) if table.title else sql.NULL,
            "language": sql.SQL("{}::regconfig").format(sql.Literal(table.language)),
            "max_matches": sql.Literal(MAX_MATCHES),
        }
        self._names["words"] = (
            sql.Identifier(options.search)
            if options.search
            else self._fill("to_tsvector({language}, {text})")
        )
        if options.embedding is not None:
            self._names |= {
                "embedding": sql.Identifier(options.embedding),
                "distance": sql.SQL(DISTANCES[options.distance]),
                "vector": sql.SQL(table.vector_type),  # from the catalog of the server
            }

    def terms(self) -> Composed:
        """The distinct lexemes of the question in the language of the table."""
        return self._fill("SELECT tsvector_to_array(to_tsvector({language}, %(question)s))")

    def counts(self) -> Composed:
        """The number of texts with each term, up to the limit."""
        return self._fill(
            """
            SELECT (SELECT count(*) FROM (
                SELECT 1 FROM {table} WHERE {words} @@ term::tsquery LIMIT {max_matches}
            ) AS sample)
            FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS asked (term, place) ORDER BY place
            """
        )

    def by_words(self, terms: int) -> Composed:
        """The texts that match `query`, by the weighted sum of the ranks of the terms."""
        from psycopg import sql

        # The 1 divides the rank by the logarithm of the length. The inner LIMIT also makes
        # PostgreSQL compute the words of a text once, not once per term.
        score = sql.SQL(" + ").join(
            sql.SQL("{} * ts_rank(words, {}::tsquery, 1)").format(
                sql.Placeholder(f"weight{at}"), sql.Placeholder(f"term{at}")
            )
            for at in range(terms)
        )
        return self._fill(
            """
            SELECT id, text, title, ({score})::float8 AS score FROM (
                SELECT {id}::text AS id, {text} AS text, {title}::text AS title, {words} AS words
                FROM {table} WHERE {words} @@ %(query)s::tsquery LIMIT {max_matches}
            ) AS matching
            ORDER BY score DESC, id LIMIT %(limit)s
            """,
            score=score,
        )

    def by_vector(self) -> Composed:
        """The texts with the nearest vectors."""
        return self._fill(
            """
            SELECT {id}::text, {text}, {title}::text, -({embedding} {distance} %(vector)s::{vector})
            FROM {table} WHERE {embedding} IS NOT NULL
            ORDER BY {embedding} {distance} %(vector)s::{vector} LIMIT %(limit)s
            """
        )

    def _fill(self, query: str, **more: Composable) -> Composed:
        from psycopg import sql

        return sql.SQL(query).format(**self._names, **more)


# The table


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a URL; None where the server decides."""

    table: str
    text: str | None
    id: str
    title: str | None
    search: str | None
    language: str | None
    embedding: str | None
    distance: str
    texts: int
    timeout: float

    @classmethod
    def from_url(cls, server: ServerUrl) -> TableOptions:
        """Read the options; InputError for one that is invalid."""
        given = server.options
        if not given.get("table"):
            raise InputError(
                f"{server} must name a table: {server}?table=TABLE&text=COLUMN. For a corpus that "
                "askline wrote into the database, use --index URL or Corpus.open(URL)."
            )
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
            int(server.number_option("texts", _DEFAULT_TEXTS, minimum=1)),
            server.number_option("timeout", _DEFAULT_TIMEOUT_SECONDS, minimum=0.1),
        )


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table of the server, with columns that exist and have suitable types."""

    options: TableOptions
    id: str
    text: str
    title: str | None
    language: str
    vector_type: str
    """The type of the column with the vectors; empty if no column was named."""
    size: int


class _Column(NamedTuple):
    type: str
    category: str
    type_name: str


_SELECT_COLUMNS = """
SELECT attname, typname, typcategory, atttypid::regtype::text
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_SELECT_TABLES = """
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN relname ELSE nspname || '.' || relname END
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname !~ '^(pg_|information_schema$)'
LIMIT 1000
"""


def _inspect_table(connection: Connection[Any], options: TableOptions) -> TableInfo:
    """Look up the table and its columns; CorpusError if one is missing or of a wrong type."""
    from psycopg import sql

    name = sql.Identifier(*options.table.split("."))
    row = connection.execute("SELECT to_regclass(%s)::oid", [name.as_string(connection)]).fetchone()
    table_oid = (row or [None])[0]
    if table_oid is None:
        tables = [row[0] for row in connection.execute(_SELECT_TABLES)]
        raise CorpusError(unknown_name_message("table", options.table, tables))
    rows = connection.execute(_SELECT_COLUMNS, [table_oid])
    columns = {row[0]: _Column(*row[1:]) for row in rows}
    count = connection.execute(
        sql.SQL(
            "SELECT greatest(reltuples::bigint, (SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {}) "
            "AS sample)) FROM pg_class WHERE oid = %s"
        ).format(name, sql.Literal(_COUNTED_ROWS)),
        [table_oid],
    ).fetchone()
    place = f"The table {options.table}"
    text_columns = [name for name, column in columns.items() if column.category == "S"]
    title = options.title or ("title" if "title" in text_columns else None)
    return TableInfo(
        options,
        id=require_field(options.id, columns, "id column", place),
        text=find_text_field(options.text, text_columns, "column", place),
        title=require_field(title, columns, "column", place) if title else None,
        language=_find_language(connection, options, columns, place),
        vector_type=_column_type(
            options.embedding, columns, ("vector", "halfvec", "sparsevec"), place
        ),
        size=int(count[0]) if count else 0,
    )


def _find_language(
    connection: Connection[Any], options: TableOptions, columns: Mapping[str, _Column], place: str
) -> str:
    """The given text search configuration, or else the default of the server."""
    _column_type(options.search, columns, ("tsvector",), place)
    if options.language is None:
        default = connection.execute("SHOW default_text_search_config").fetchone()
        return str(default[0]) if default else "simple"
    available = {row[0] for row in connection.execute("SELECT cfgname FROM pg_ts_config")}
    return require_field(options.language, available, "text search language", place)


def _column_type(
    name: str | None, columns: Mapping[str, _Column], types: tuple[str, ...], place: str
) -> str:
    """The SQL name of the type of a column, which must be one of `types`; empty for None."""
    if name is None:
        return ""
    column = columns[require_field(name, columns, "column", place)]
    if column.type not in types:
        raise CorpusError(
            f"{place}: the column {name!r} must be a {' or '.join(types)}, got a "
            f"{column.type_name}."
        )
    return column.type_name


# The connection


def _open_connection(server: ServerUrl, options: TableOptions) -> Connection[Any]:
    """A read-only connection."""
    connection = open_postgres(server, OPTIONS, options.timeout)
    connection.execute(
        "SELECT set_config('default_transaction_read_only', 'on', false), "
        "set_config('hnsw.ef_search', %s, false)",  # by default, HNSW returns 40 texts at most
        [str(min(1000, max(40, options.texts)))],
    )
    return connection


def _errors(server: ServerUrl, options: TableOptions) -> AbstractContextManager[None]:
    slow = ", or create an index on the words (docs/guides/search-servers.md)"
    return postgres_errors(server, options.timeout, slow=slow)
