"""The table that is asked: what the address says of it, and what the server knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import CorpusError, InputError, UnknownNameError, unknown_name_message
from .address import Address
from .fields import named, text_field

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["DISTANCES", "OPTIONS", "Settings", "Table", "look_up"]

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
class Settings:
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
    def of(cls, address: Address) -> Settings:
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

    settings: Settings
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


def look_up(connection: Connection[Any], settings: Settings) -> Table:
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
        text=text_field(settings.text, readable, "column", place),
        title=named(title, columns, "column", place) if title else None,
        language=_language(connection, settings, columns, place),
        vector=_typed(settings.embedding, columns, ("vector", "halfvec", "sparsevec"), place),
        size=int(counted[0]) if counted else 0,
    )


def _language(
    connection: Connection[Any], settings: Settings, columns: Mapping[str, _Column], place: str
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
