"""
Asking what other servers hold: OpenSearch, Elasticsearch, PostgreSQL.

`connect` takes an address and gives a retriever, which `askline.corpus.answer` asks like any other.
The server finds texts by its own index; here they are cut into sentences. An answer's `document` is
the id under which the server keeps the text, and its `start` and `end` slice that very text.
"""

from __future__ import annotations

from .connector import Connector, connect
from .postgres import PostgresConnector
from .search_engines import SearchEngineConnector

__all__ = ["Connector", "PostgresConnector", "SearchEngineConnector", "connect"]
