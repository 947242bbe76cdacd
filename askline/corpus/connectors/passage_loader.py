"""
Write the passages of a corpus into an index of OpenSearch or Elasticsearch.

The engine then has the same passages as askline's own index, and `connect` searches them. An
interrupted load can be repeated: ids follow from the documents, and what an earlier load left is
deleted at the end.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

from ...errors import CorpusError, InputError
from ..document_store import CorpusReader
from ..passages import passage_heading, split_passages
from .search_engines import open_engine, search_engine_errors
from .server_url import ServerUrl

__all__ = ["load_passages"]

_BATCH_CHARACTERS = 5_000_000  # of one request: engines accept ten megabytes or more
_BATCH_PASSAGES = 1_000
_DEFAULT_TIMEOUT_SECONDS = 60.0
_DOCUMENTS_PER_QUERY = 1_000
_SETTINGS = {
    "settings": {"similarity": {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}}},
    "mappings": {
        "properties": {
            "text": {"type": "text", "analyzer": "english"},
            "title": {"type": "text", "analyzer": "english"},
            "document": {"type": "keyword"},
            "first": {"type": "integer"},
            "last": {"type": "integer"},
            "load": {"type": "keyword"},
        }
    },
}


def load_passages(store: CorpusReader, url: str, *, client: Any = None) -> int:
    """
    Write all passages of a store to the index that the URL names; returns their number.

    The index is created if it is missing. Each passage is a document with the fields `text` (a
    sentence per line), `title`, `document`, `first` and `last`; its id is `DOCUMENT#FIRST`. When
    all are written, passages of earlier loads that are gone are deleted.
    """
    server = ServerUrl.parse(url)
    timeout = server.number_option("timeout", _DEFAULT_TIMEOUT_SECONDS, minimum=0.1)
    if server.scheme not in ("opensearch", "elasticsearch") or not server.path:
        raise InputError(f"Passages are loaded into opensearch://HOST/INDEX, got {server}.")
    engine = client or open_engine(server, timeout)
    load = secrets.token_hex(8)
    count = 0
    with search_engine_errors(server, timeout), closing(engine):
        if not engine.indices.exists(index=server.path):
            engine.indices.create(index=server.path, body=_SETTINGS)
        for batch in _batches(_passages(store, load)):
            lines: list[Any] = []
            for name, passage in batch:
                lines += [{"index": {"_id": name}}, passage]
            _check(engine.bulk(index=server.path, body=lines), server)
            count += len(batch)
        engine.indices.refresh(index=server.path)
        engine.delete_by_query(
            index=server.path,
            body={"query": {"bool": {"must_not": {"term": {"load": load}}}}},
            conflicts="proceed",
            refresh=True,
        )
    return count


def _passages(store: CorpusReader, load: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in _names(store):
        document_id = store.document_id(name)
        header = None if document_id is None else store.document(document_id)
        if document_id is None or header is None:
            continue  # removed in the meantime
        sentences = store.sentences(document_id, 0, 2**31 - 1)
        for first, last, _ in split_passages(sentences):
            own = sentences[first : last + 1]
            above = passage_heading(own[0])
            yield (
                f"{name}#{first}",
                {
                    "text": "\n".join(each.text for each in own if not each.is_heading),
                    "title": " > ".join(filter(None, (header.title, above))),
                    "document": name,
                    "first": first,
                    "last": last,
                    "load": load,
                },
            )


def _names(store: CorpusReader) -> Iterator[str]:
    after = ""
    while page := store.list_documents(after=after, limit=_DOCUMENTS_PER_QUERY):
        yield from (row[0] for row in page)
        after = page[-1][0]


def _batches(
    passages: Iterable[tuple[str, dict[str, Any]]],
) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    batch: list[tuple[str, dict[str, Any]]] = []
    size = 0
    for name, passage in passages:
        batch.append((name, passage))
        size += len(passage["text"])
        if size > _BATCH_CHARACTERS or len(batch) >= _BATCH_PASSAGES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _check(response: Any, server: ServerUrl) -> None:
    """Raise CorpusError if one passage was refused; the others of the batch are written."""
    if not response["errors"]:
        return
    refused = [item["index"] for item in response["items"] if "error" in item["index"]]
    first = refused[0]
    reason = server.without_password(first["error"].get("reason", first["error"]))
    raise CorpusError(
        f"{server} refused {len(refused)} passages, the first of them {first['_id']!r}: "
        f"{reason.rstrip('.')}. Repair the index and load again."
    )
