"""From an address to the connector that knows its server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from ...errors import InputError
from ..results import RetrievedSentence
from .postgres import PostgresConnector
from .search_engines import SearchEngineConnector
from .server_url import ServerUrl

__all__ = [
    "Connector",
    "connect",
]

Encode = Callable[[str], Sequence[float]]


@runtime_checkable
class Connector(Protocol):
    """A retriever that holds connections to a server. Several threads may ask at once."""

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences out of the texts that the server finds, best first."""
        ...

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        """The sentence before and the sentence after in the same text."""
        ...

    def __len__(self) -> int:
        """How many texts there were when it was connected; for a large table, about as many."""
        ...

    def __str__(self) -> str:
        """The server's kind and what is asked of it, never who asks."""
        ...

    def close(self) -> None:
        """Let go of the connections."""
        ...


def connect(url: str, *, encode: Encode | None = None) -> Connector:
    """
    The connector for an address.

        opensearch://host:9200/INDEX?text=FIELD&title=FIELD
        elasticsearch://host:9200/INDEX?text=FIELD&title=FIELD
        postgresql://host/DATABASE?table=TABLE&text=COLUMN&id=COLUMN&title=COLUMN

    The index, the table and the fields are looked up at once, and what is wrong is a CorpusError.
    `encode` gives the vector of a question, for a PostgreSQL table with `embedding=COLUMN`.
    docs/connectors.md has every option.
    """
    address = ServerUrl.parse(url)
    if address.scheme in ("postgresql", "postgres"):
        return PostgresConnector.connect(address, encode=encode)
    if encode is not None:
        raise InputError("Only a PostgreSQL table with embedding=COLUMN takes encode.")
    return SearchEngineConnector.connect(address)
