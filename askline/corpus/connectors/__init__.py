"""
Connectors: ask questions about texts in OpenSearch, Elasticsearch or PostgreSQL.

`connect` takes a URL and returns a retriever for `askline.corpus.answer`. The server finds texts
with its own index; here they are split into sentences. The `document` of an answer is the id of the
text on the server, and its `start` and `end` slice that text.
"""

from __future__ import annotations

from .connector import Connector, connect
from .postgres import PostgresConnector
from .search_engines import SearchEngineConnector
from .server_url import ServerUrl

__all__ = ["Connector", "PostgresConnector", "SearchEngineConnector", "ServerUrl", "connect"]
