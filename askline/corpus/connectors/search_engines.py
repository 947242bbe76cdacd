"""
OpenSearch and Elasticsearch, each through its own Python client: the connector and the loader.

`SearchEngineConnector` searches an index of any origin. `load_passages` writes the passages of a
corpus into an index, so that the engine has the same passages as askline's own index. An
interrupted load can be repeated: ids follow from the documents, and what an earlier load left is
deleted at the end.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from ...errors import CorpusError, InputError, require_extra
from ...rankers.requests import check_question
from ..bm25 import Stemmer
from ..document_store import CorpusReader
from ..passages import passage_heading, split_passages
from ..results import RetrievedSentence
from .sentence_retrieval import SentenceWithNeighbors, ServerText, best_sentences
from .server_url import ServerUrl, find_text_field, require_field

__all__ = [
    "IndexFields",
    "SearchEngineConnector",
    "load_passages",
    "open_engine",
    "search_engine_errors",
]

_OPTIONS = {"text", "title", "texts", "timeout", "tls", "ca"}
_DEFAULT_PORT = 9200
_LOCAL_HOSTS = ("", "localhost", "127.0.0.1", "::1")
_DEFAULT_TIMEOUT_SECONDS = 10.0
_DEFAULT_TEXTS = 50
"""Texts fetched per question: as many as the corpus searches passages for 100 sentences."""
_CLIENT_PACKAGES = ("opensearchpy", "elasticsearch", "elastic_transport")


@dataclass(frozen=True, slots=True)
class IndexFields:
    """An index, and the fields of its text and title."""

    index: str
    text: str
    title: str | None = None
    several: bool = False
    """Whether the name stands for several indexes; the same id may then occur twice."""


class SearchEngineConnector:
    """
    Opened by `connect`, or with a client of your own (for AWS signatures, a proxy, tracing).

    The server searches with its own analyzers: a `multi_match` over text and title.
    """

    def __init__(
        self,
        client: Any,
        fields: IndexFields,
        *,
        server: ServerUrl,
        size: int,
        texts: int = _DEFAULT_TEXTS,
        timeout: float = _DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self._client = client
        self._fields = fields
        self._server = server
        self._size = size
        self._texts = texts
        self._timeout = timeout
        self._stemmer = Stemmer()

    @classmethod
    def connect(cls, server: ServerUrl, client: Any = None) -> SearchEngineConnector:
        """Look up the index and its fields; a client is created unless one is given."""
        server.check_options(_OPTIONS)
        if not server.path or "/" in server.path:
            raise InputError(f"{server} must name one index: {server.scheme}://HOST:9200/INDEX.")
        timeout = server.number_option("timeout", _DEFAULT_TIMEOUT_SECONDS, minimum=0.1)
        texts = int(server.number_option("texts", _DEFAULT_TEXTS, minimum=1))
        own_client = open_engine(server, timeout) if client is None else None
        client = client or own_client
        try:
            with search_engine_errors(server, timeout):
                fields = _find_fields(client, server)
                size = int(client.count(index=fields.index)["count"])
        except BaseException:
            if own_client is not None:
                own_client.close()
            raise
        return cls(client, fields, server=server, size=size, texts=texts, timeout=timeout)

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences out of the texts that the server finds, best first."""
        check_question(question)
        index = self._fields
        fields = [index.text, *([index.title] if index.title else [])]
        with search_engine_errors(self._server, self._timeout):
            response = self._client.search(
                index=index.index,
                body={
                    "query": {
                        "multi_match": {"query": question, "fields": fields, "type": "most_fields"}
                    },
                    "size": self._texts,
                    "_source": fields,
                    "track_total_hits": False,
                },
                # If a part of the index is unavailable, fail rather than answer differently.
                allow_partial_search_results=False,
                # Document frequencies of all shards, so that their scores can be compared.
                search_type="dfs_query_then_fetch",
            )
        texts = [text for hit in response["hits"]["hits"] if (text := self._read_text(hit))]
        return best_sentences(question, texts, k, self._stemmer)

    def neighbors(self, sentence: RetrievedSentence, count: int = 1) -> tuple[str, str]:
        """At most `count` sentences before and after in the same text, joined by spaces."""
        return SentenceWithNeighbors.neighbors_of(sentence, count)

    def __len__(self) -> int:
        return self._size

    def __str__(self) -> str:
        return f"{self._server.scheme}/{self._fields.index}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> SearchEngineConnector:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_text(self, hit: Mapping[str, Any]) -> ServerText | None:
        """The text of a hit; None if it matched by its title and has no text."""
        fields = self._fields
        name = f"{hit['_index']}/{hit['_id']}" if fields.several else str(hit["_id"])
        source = hit.get("_source")
        if source is None:
            raise CorpusError(
                f"{self._server} does not store _source, so its texts are not available."
            )
        text = _nested_value(source, fields.text)
        if text is None:
            return None
        if not isinstance(text, str):
            raise CorpusError(
                f"{self._server}: {fields.text!r} of {name} must be a string, got a "
                f"{type(text).__name__}. Choose another field: text=FIELD."
            )
        title = _nested_value(source, fields.title) if fields.title else None
        return ServerText(name, text, title if isinstance(title, str) else "", float(hit["_score"]))


def _find_fields(client: Any, server: ServerUrl) -> IndexFields:
    """The searchable fields. Their capabilities are readable with the right to search."""
    response = client.field_caps(index=server.path, fields="*")
    searchable = {
        name
        for name, types in response["fields"].items()
        if any("text" in kind or kind == "search_as_you_type" for kind in types)
    }
    options, place = server.options, str(server)
    text = find_text_field(options.get("text"), searchable, "field", place)
    title = options.get("title") or ("title" if "title" in searchable else None)
    if title is not None:
        require_field(title, searchable, "field", place)
    return IndexFields(server.path, text, title, several=len(response["indices"]) > 1)


def _nested_value(source: Mapping[str, Any], path: str) -> Any:
    """The value of `a.b`: under that key, or under `b` inside `a`."""
    if path in source:
        return source[path]
    first, _, rest = path.partition(".")
    inner = source.get(first)
    return _nested_value(inner, rest) if rest and isinstance(inner, Mapping) else None


def open_engine(server: ServerUrl, timeout: float = _DEFAULT_TIMEOUT_SECONDS) -> Any:
    """A client that uses HTTPS, unless the server is local or the URL says otherwise."""
    ca = server.options.get("ca")
    tls = server.flag_option("tls", bool(ca) or server.host not in _LOCAL_HOSTS)
    if ca and not tls:
        raise InputError("ca=FILE and tls=no exclude each other. Leave one out.")
    host = server.host or "localhost"
    if ":" in host:
        host = f"[{host}]"
    url = f"{'https' if tls else 'http'}://{host}:{server.port or _DEFAULT_PORT}"
    shared: dict[str, Any] = {"max_retries": 0, "retry_on_timeout": False}
    if ca:
        shared["ca_certs"] = os.path.expanduser(ca)
    if server.scheme == "opensearch":
        package = require_extra("opensearchpy", purpose="OpenSearch", extra="opensearch")
        user = _credentials(server, "OPENSEARCH")
        return package.OpenSearch([url], http_auth=user, timeout=timeout, **shared)
    package = require_extra("elasticsearch", purpose="Elasticsearch", extra="elasticsearch")
    user, key = _credentials(server, "ELASTIC"), os.environ.get("ELASTIC_API_KEY")
    auth: dict[str, Any] = {"basic_auth": user} if user else {"api_key": key} if key else {}
    return package.Elasticsearch([url], request_timeout=timeout, **auth, **shared)


def _credentials(server: ServerUrl, prefix: str) -> tuple[str, str] | None:
    """User and password from the URL, or else from the environment."""
    user = server.user or os.environ.get(f"{prefix}_USERNAME")
    if not user:
        return None
    return user, server.password or os.environ.get(f"{prefix}_PASSWORD", "")


@contextmanager
def search_engine_errors(
    server: ServerUrl, timeout: float = _DEFAULT_TIMEOUT_SECONDS
) -> Iterator[None]:
    """
    Raise errors of the clients as CorpusError.

    They are recognized by class name: both clients use the same names, and only one client may be
    installed.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _CLIENT_PACKAGES:
            raise
        raise CorpusError(f"{server}: {_advice(error, server, timeout)}") from error


def _advice(error: Exception, server: ServerUrl, timeout: float) -> str:
    names = {kind.__name__ for kind in type(error).__mro__}
    message = server.without_password(error)
    if "ConnectionTimeout" in names:
        return f"No answer within {timeout:g} seconds. Try again, or allow more: timeout=SECONDS."
    if "SSLError" in names:
        return (
            f"No secure connection: {message}. Name the authority that signed its certificate, "
            "ca=FILE, or write tls=no if the server uses plain HTTP."
        )
    if "ConnectionError" in names:
        return f"It cannot be reached{_cause(message)}. Check host and port, and tls=yes or tls=no."
    if "UnsupportedProductError" in names:
        return "This is not Elasticsearch. If it is OpenSearch, write opensearch://."
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return (
            f"It refuses this user ({status}). Put user and password into the URL, or set "
            f"{_credential_variables(server.scheme)}."
        )
    if status == 404:
        return f"It has no index {server.path!r}. The path of the URL names the index."
    if "media_type_header" in message or "compatible-with" in message:
        return (
            f"The client is of another major version than the server: {message}. Install the one "
            "that fits, for instance: pip install 'elasticsearch<9'."
        )
    return f"It cannot answer: {message}."


def _cause(message: str) -> str:
    """The operating system's part of a long message."""
    found = re.search(r"\[Errno -?\d+\] ([^)\]]+)", message)
    return f": {found[1].strip()}" if found else ""


def _credential_variables(scheme: str) -> str:
    if scheme == "opensearch":
        return "OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD"
    return "ELASTIC_API_KEY, or ELASTIC_USERNAME and ELASTIC_PASSWORD"


_BATCH_CHARACTERS = 5_000_000  # of one request: engines accept ten megabytes or more
_BATCH_PASSAGES = 1_000
_LOAD_TIMEOUT_SECONDS = 60.0
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


def load_passages(store: CorpusReader, url: str) -> int:
    """
    Write all passages of a store to the index that the URL names; returns their number.

    The index is created if it is missing. Each passage is a document with the fields `text` (a
    sentence per line), `title`, `document`, `first` and `last`; its id is `DOCUMENT#FIRST`. When
    all are written, passages of earlier loads that are gone are deleted.
    """
    server = ServerUrl.parse(url)
    timeout = server.number_option("timeout", _LOAD_TIMEOUT_SECONDS, minimum=0.1)
    if server.scheme not in ("opensearch", "elasticsearch") or not server.path:
        raise InputError(f"Passages are loaded into opensearch://HOST/INDEX, got {server}.")
    engine = open_engine(server, timeout)
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
