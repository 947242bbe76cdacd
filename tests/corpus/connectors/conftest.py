"""A server that answers as the search engines do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .engine import Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A local HTTP server that answers as OpenSearch and Elasticsearch do."""
    with Engine() as engine:
        yield engine
