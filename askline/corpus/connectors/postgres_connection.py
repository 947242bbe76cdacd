"""
Connections to PostgreSQL: their parameters from a URL, their errors, and a pool of them.

The connector to a table (`postgres.py`) and the shared store (`corpus/postgres_store.py`) use it.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...errors import CorpusError, InputError, require_extra, unknown_name_message
from .server_url import ServerUrl

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresPool", "open_postgres", "postgres_errors"]

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# What was reported as stored must be on disk, also where the server's default is faster.
_WRITE = """
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL statement_timeout = 0;
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') = 'off';
"""


def open_postgres(
    server: ServerUrl, own_options: Collection[str], timeout: float
) -> Connection[Any]:
    """
    A connection that commits each statement; libpq looks for user and password if there are none.

    `own_options` are the options of the URL that are not for libpq. A statement that takes longer
    than `timeout` seconds is cancelled.
    """
    psycopg = require_extra("psycopg", purpose="PostgreSQL", extra="postgres")
    others = {name: value for name, value in server.options.items() if name not in own_options}
    parameters: dict[str, Any] = {
        "host": server.host or None,
        "port": server.port,
        "dbname": server.path or None,
        "user": server.user,
        "password": server.password,
        "connect_timeout": max(2, math.ceil(timeout)),  # libpq allows no less than 2
        "tcp_user_timeout": round(1000 * timeout),
        "application_name": "askline",
        **others,
    }
    try:
        psycopg.conninfo.make_conninfo(**parameters)
    except psycopg.ProgrammingError as error:
        unknown = next(iter(others), "")
        message = unknown_name_message("option", unknown, own_options)
        raise InputError(f"{message} It is not an option of libpq either.") from error
    connection: Connection[Any] = psycopg.connect(
        **parameters, autocommit=True, prepare_threshold=None
    )
    connection.execute(
        "SELECT set_config('statement_timeout', %s, false)", [str(round(1000 * timeout))]
    )
    return connection


@contextmanager
def postgres_errors(
    server: ServerUrl, timeout: float, *, slow: str = "", rights: str = "Grant SELECT on it."
) -> Iterator[None]:
    """
    Raise errors of psycopg as CorpusError.

    `slow` says what else to do if a statement takes too long, `rights` which right is missing.
    """
    psycopg = require_extra("psycopg", purpose="PostgreSQL", extra="postgres")
    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise CorpusError(
            f"{server}: No answer within {timeout:g} seconds. Allow more, timeout=SECONDS{slow}."
        ) from error
    except psycopg.errors.ConnectionTimeout as error:
        raise CorpusError(
            f"{server}: No connection within {timeout:g} seconds. Check host and port."
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise CorpusError(f"{server}: {_message(error, server)}. {rights}") from error
    except psycopg.OperationalError as error:
        raise CorpusError(
            f"{server} cannot be reached: {_message(error, server)}. Check host, port, database "
            "and user; the password may come from PGPASSWORD or ~/.pgpass."
        ) from error
    except psycopg.Error as error:
        raise CorpusError(f"{server} cannot answer: {_message(error, server)}.") from error


@dataclass(eq=False)
class _Transaction:
    """A transaction of one thread. It ends with the block that began it, whatever ends that."""

    connection: Connection[Any]
    is_reading: bool
    cache: dict[Any, Any] = field(default_factory=dict)


class PostgresPool:
    """
    Connections of this process. A thread keeps one for the length of a transaction.

    A connection that was lost while it was idle is replaced without an error. One that is lost
    inside a transaction is an error, and the next transaction opens another.
    """

    def __init__(
        self, server: ServerUrl, own_options: Collection[str], timeout: float, search_path: str
    ) -> None:
        self._server, self._own_options, self._timeout = server, own_options, timeout
        self._search_path = search_path
        self._idle: list[Connection[Any]] = []
        self._lock = threading.Lock()
        self._local = threading.local()
        self._process = os.getpid()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A transaction of this thread that sees one state; inside another one, no new one."""
        with self._transaction(_READ):
            yield

    @property
    def cache(self) -> dict[Any, Any] | None:
        """For what the block of `reading` has read; None outside and while writing."""
        current = self._current
        return current.cache if current is not None and current.is_reading else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction of this thread that writes; inside another one, no new one."""
        with self._transaction(_WRITE):
            yield

    def execute(self, query: Any, values: Any = None, *, binary: bool = False) -> list[Any]:
        """The rows of one statement, in the transaction of this thread or alone."""
        if self._current is None:
            with self.reading():
                return self.execute(query, values, binary=binary)
        cursor = self.connection.execute(query, values, binary=binary)
        return cursor.fetchall() if cursor.description is not None else []

    @property
    def connection(self) -> Connection[Any]:
        """The connection of the transaction of this thread."""
        current = self._current
        assert current is not None
        return current.connection

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        if self._process == os.getpid():
            for connection in idle:
                connection.close()

    @property
    def _current(self) -> _Transaction | None:
        # Only the block refers to its transaction: if a job is cancelled at any point, no later
        # job continues in what it left.
        found: weakref.ref[_Transaction] | None = getattr(self._local, "transaction", None)
        return None if found is None else found()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        if self._current is not None:
            yield
            return
        connection = self._begin(begin)
        transaction = _Transaction(connection, is_reading=begin == _READ)
        self._local.transaction = weakref.ref(transaction)
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            self._roll_back(connection)
            raise
        finally:
            self._local.transaction = None
            self._give_back(connection)

    def _begin(self, begin: str) -> Connection[Any]:
        psycopg = require_extra("psycopg", purpose="PostgreSQL", extra="postgres")
        while True:
            with self._lock:
                if self._process != os.getpid():  # a fork shares the sockets of its parent
                    self._idle, self._process = [], os.getpid()
                connection = self._idle.pop() if self._idle else None
            is_new = connection is None
            connection = connection or self._open()
            try:
                connection.execute(begin)
                return connection
            except psycopg.OperationalError:
                connection.close()
                if is_new:
                    raise
            except BaseException:
                connection.close()
                raise

    def _open(self) -> Connection[Any]:
        connection = open_postgres(self._server, self._own_options, self._timeout)
        connection.execute("SELECT set_config('search_path', %s, false)", [self._search_path])
        return connection

    def _roll_back(self, connection: Connection[Any]) -> None:
        """End a failed transaction; close a connection that still waits for a response."""
        from psycopg import Error
        from psycopg.pq import TransactionStatus

        if connection.info.transaction_status == TransactionStatus.ACTIVE:
            connection.close()
            return
        try:
            connection.execute("ROLLBACK")
        except Error:
            connection.close()

    def _give_back(self, connection: Connection[Any]) -> None:
        from psycopg.pq import TransactionStatus

        if connection.closed:
            return
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)


def _message(error: Any, server: ServerUrl) -> str:
    """The first line of the message; the statement and the hints of libpq follow it."""
    lines = (error.diag.message_primary or str(error)).splitlines()
    return server.without_password(next(iter(lines), type(error).__name__)).rstrip(".")
