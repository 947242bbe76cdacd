from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from askline.corpus.schema import MIGRATIONS, is_current, migrate
from askline.errors import CorpusError

SECOND = "ALTER TABLE documents ADD COLUMN language TEXT"


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def test_migrate_makes_a_store_out_of_nothing(connection: sqlite3.Connection) -> None:
    assert not is_current(connection)
    migrate(connection)
    assert is_current(connection)
    assert "sha256" in _columns(connection, "documents")


def test_migrate_brings_an_older_store_forward_and_keeps_its_rows(
    connection: sqlite3.Connection,
) -> None:
    migrate(connection)
    identity = connection.execute("SELECT value FROM settings WHERE name = 'identity'").fetchone()
    later = (*MIGRATIONS, SECOND)
    assert not is_current(connection, later)
    migrate(connection, later)
    assert is_current(connection, later)
    assert "language" in _columns(connection, "documents")
    after = connection.execute("SELECT value FROM settings WHERE name = 'identity'").fetchone()
    assert after == identity


def test_migrate_stays_at_the_old_version_when_a_step_fails(connection: sqlite3.Connection) -> None:
    migrate(connection)
    broken = "CREATE TABLE extra (a); ALTER TABLE nowhere ADD COLUMN b"
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, (*MIGRATIONS, broken))
    assert is_current(connection)
    assert _columns(connection, "extra") == []


def test_a_newer_store_is_refused(connection: sqlite3.Connection) -> None:
    migrate(connection, (*MIGRATIONS, SECOND))
    have = len(MIGRATIONS)
    message = rf"newer askline: version {have + 1}, and this one reads up to {have}\."
    with pytest.raises(CorpusError, match=message):
        is_current(connection)


def test_a_file_of_another_program_is_refused(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA user_version = 1")
    with pytest.raises(CorpusError, match="another program"):
        is_current(connection)


@pytest.mark.parametrize("have", range(len(MIGRATIONS)))
def test_every_older_store_becomes_the_newest(connection: sqlite3.Connection, have: int) -> None:
    migrate(connection, MIGRATIONS[:have])
    migrate(connection)
    assert is_current(connection)
    assert _columns(connection, "records") == ["document", "first", "row", "id", "checksum"]
