"""A connection that reads and does nothing else, and what goes wrong with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...errors import CorpusError, InputError, require_extra, unknown_name_message
from .address import Address
from .postgres_table import OPTIONS, Settings

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["open_link", "postgres_faults"]


def open_link(address: Address, settings: Settings) -> Connection[Any]:
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
def postgres_faults(address: Address, settings: Settings) -> Iterator[None]:
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


def _said(error: Any, address: Address) -> str:
    """The first line: below it stand the statement and hints of libpq's."""
    lines = (error.diag.message_primary or str(error)).splitlines()
    return address.without_secrets(next(iter(lines), type(error).__name__)).rstrip(".")
