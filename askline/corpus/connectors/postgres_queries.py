"""The statements, put together once for a table; what a question brings comes as parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .postgres_table import DISTANCES, Table

if TYPE_CHECKING:
    from psycopg.sql import Composable, Composed

__all__ = ["MOST", "Queries"]

MOST = 20_000
"""Texts in which a word is counted, and texts that are ranked for a question, at most."""


class Queries:
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
            "most": sql.Literal(MOST),
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
