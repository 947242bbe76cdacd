"""
Connectors: ask questions about texts in OpenSearch, Elasticsearch or PostgreSQL.

`connect` takes a URL and returns a retriever for `askline.corpus.answer`. The server finds texts
with its own index; here they are split into sentences. The `document` of an answer is the id of the
text on the server, and its `start` and `end` slice that text.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ...errors import InputError
from ..results import RetrievedSentence
from .postgres import EncodeQuestion, PostgresConnector
from .search_engines import SearchEngineConnector
from .server_url import ServerUrl

__all__ = [
    "Connector",
    "PostgresConnector",
    "SearchEngineConnector",
    "ServerUrl",
    "connect",
]


@runtime_checkable
class Connector(Protocol):
    """A retriever that holds connections to a server. Several threads may use it."""

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """
        At most `k` sentences out of the texts that the server finds, best first.

        InputError for an empty or blank question.
        """
        ...

    def neighbors(self, sentence: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        """At most `count` sentences before and after in the same text, joined by spaces."""
        ...

    def __len__(self) -> int:
        """The number of texts when the connection was opened; an estimate for a large table."""
        ...

    def __str__(self) -> str:
        """The kind of server and the index or table, without user or password."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def connect(url: str, *, encode: EncodeQuestion | None = None) -> Connector:
    """
    Open the connector for a URL.

        opensearch://host:9200/INDEX?text=FIELD&title=FIELD
        elasticsearch://host:9200/INDEX?text=FIELD&title=FIELD
        postgresql://host/DATABASE?table=TABLE&text=COLUMN&id=COLUMN&title=COLUMN

    The index, the table and the fields are checked at once; CorpusError if one is missing. `encode`
    returns the vector of a question, for a PostgreSQL table with `embedding=COLUMN`.
    docs/guides/search-servers.md lists every option.
    """
    server = ServerUrl.parse(url)
    if server.scheme in ("postgresql", "postgres"):
        return PostgresConnector.connect(server, encode=encode)
    if encode is not None:
        raise InputError("`encode` is only for a PostgreSQL table with embedding=COLUMN.")
    return SearchEngineConnector.connect(server)
