"""
The PostgreSQL tables of the shared store, and the migrations between versions.

The tables of documents are those of the embedded store (`schema.py`). The search index is in the
database too: a segment is what one transaction added, with a row per term that has the term's
passages as packed numbers (`postgres_postings.py`). Phrases are in the database if they are asked
for (`postgres_phrases.py`).
"""

from __future__ import annotations

import secrets
from typing import Any

from ..errors import CorpusError
from .connectors.postgres_connection import PostgresPool

__all__ = ["MIGRATIONS", "prepare_schema", "schema_version"]

# Names and paths are compared by bytes, as SQLite compares them, whatever the locale is.
_CREATE_TABLES = """
CREATE TABLE settings (name text PRIMARY KEY, value text NOT NULL);
CREATE SEQUENCE generations;
CREATE TABLE documents (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    is_file boolean NOT NULL,
    size bigint,
    modified bigint,
    sha256 text NOT NULL,
    reading text NOT NULL,
    kind text NOT NULL,
    encoding text,
    title text NOT NULL,
    unit text NOT NULL,
    sentences integer NOT NULL,
    characters bigint NOT NULL,
    problem text,
    problem_line integer,
    problem_reason text,
    left_out text,
    path text COLLATE "C",
    table_rows integer,
    checksum bigint,
    generation bigint NOT NULL
);
CREATE INDEX documents_by_path ON documents (path) WHERE path IS NOT NULL;
CREATE TABLE headings (
    document bigint NOT NULL REFERENCES documents ON DELETE CASCADE,
    number integer NOT NULL,
    text text NOT NULL,
    path text NOT NULL,
    lead_in text NOT NULL,
    PRIMARY KEY (document, number)
);
CREATE TABLE sentences (
    document bigint NOT NULL REFERENCES documents ON DELETE CASCADE,
    ordinal integer NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    place integer NOT NULL,
    kind smallint NOT NULL,
    heading integer,
    text text NOT NULL,
    checksum bigint NOT NULL,
    PRIMARY KEY (document, ordinal)
);
CREATE TABLE records (
    document bigint NOT NULL REFERENCES documents ON DELETE CASCADE,
    first bigint NOT NULL,
    row bigint NOT NULL,
    id text NOT NULL,
    checksum bigint NOT NULL,
    PRIMARY KEY (document, first)
);
CREATE TABLE roots (
    number bigint GENERATED ALWAYS AS IDENTITY,
    path text NOT NULL UNIQUE,
    own_names integer NOT NULL
);
CREATE TABLE skipped (
    root text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    files integer NOT NULL,
    example text NOT NULL,
    PRIMARY KEY (root, reason, kind)
);
CREATE TABLE segments (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    passages integer NOT NULL,
    tokens bigint NOT NULL,
    title_tokens bigint NOT NULL
);
CREATE TABLE passages (
    segment bigint NOT NULL,
    number integer NOT NULL,
    document bigint NOT NULL REFERENCES documents ON DELETE CASCADE,
    first integer NOT NULL,
    last integer NOT NULL,
    tokens integer NOT NULL,
    title_tokens integer NOT NULL,
    PRIMARY KEY (segment, number)
);
CREATE INDEX passages_by_document ON passages (document);
CREATE TABLE postings (
    segment bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    texts integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (segment, term)
);
CREATE INDEX postings_by_term ON postings (term) INCLUDE (texts);
"""

# The column of vectors is added when phrases are first encoded, because it needs pgvector and the
# size of the model's vectors. Roles that may read sentences may read the new tables too.
_ADD_PHRASES = """
CREATE TABLE phrases (
    document bigint NOT NULL REFERENCES documents ON DELETE CASCADE,
    first integer NOT NULL,
    last integer NOT NULL,
    start integer NOT NULL,
    stop integer NOT NULL,
    words bytea NOT NULL
);
CREATE INDEX phrases_by_document ON phrases (document);
CREATE TABLE encoded_documents (
    document bigint PRIMARY KEY REFERENCES documents ON DELETE CASCADE
);
DO $$
DECLARE role record;
BEGIN
    FOR role IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS name
        FROM pg_class, aclexplode(relacl)
        WHERE oid = 'sentences'::regclass AND privilege_type = 'SELECT' AND grantee <> relowner
    LOOP
        EXECUTE 'GRANT SELECT ON phrases, encoded_documents TO ' || role.name;
    END LOOP;
END
$$;
"""

MIGRATIONS: tuple[str, ...] = (_CREATE_TABLES, _ADD_PHRASES)
"""The version of a store is the number of migrations that it has been through."""

_LOCK = 0x41534B4C  # "ASKL": one process creates or migrates tables at a time


def schema_version(pool: PostgresPool, schema: str) -> int:
    """The version of the tables in a schema; 0 if there are none. CorpusError for other tables."""
    (found,) = pool.execute(
        "SELECT (SELECT count(*) FROM pg_tables WHERE schemaname = %(schema)s), "
        "(SELECT count(*) FROM pg_tables WHERE schemaname = %(schema)s AND tablename = 'settings')",
        {"schema": schema},
    )
    tables, has_settings = found
    if not tables:
        return 0
    rows = _settings(pool) if has_settings else {}
    if not rows.get("version", "").isdecimal() or "identity" not in rows:
        raise CorpusError(
            f"The schema {schema!r} holds tables of another program. Choose another: schema=NAME."
        )
    version = int(rows["version"])
    if version > len(MIGRATIONS):
        raise CorpusError(
            f"It was written by a newer askline: version {version}, and this one reads up to "
            f"{len(MIGRATIONS)}. Update askline, or use another schema: schema=NAME."
        )
    return version


def prepare_schema(
    pool: PostgresPool, schema: str, *, index_format: int, migrations: tuple[str, ...] = MIGRATIONS
) -> None:
    """Create the tables, or run the migrations they have not been through; all or nothing."""
    from psycopg import sql

    with pool.writing():
        pool.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        version = schema_version(pool, schema)
        # The right to create schemas is needed only if there is none, also with IF NOT EXISTS.
        if not pool.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]):
            pool.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        for number, script in enumerate(migrations[version:], start=version + 1):
            pool.execute(script)
            if number == 1:
                values = {"identity": secrets.token_hex(8), "format": str(index_format)}
                for name, value in values.items():
                    pool.execute("INSERT INTO settings VALUES (%s, %s)", [name, value])
            pool.execute(
                "INSERT INTO settings VALUES ('version', %s) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                [str(number)],
            )


def _settings(pool: PostgresPool) -> dict[str, str]:
    rows: list[Any] = pool.execute("SELECT name::text, value::text FROM settings")
    return dict(rows)
