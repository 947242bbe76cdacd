"""
What the clients of the search engines raise, as errors that say what to do.

OpenSearch and Elasticsearch, each through its own Python client.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...errors import CorpusError, InputError, require_extra
from ..bm25 import Stemmer
from ..results import RetrievedSentence
from .sentence_retrieval import SentenceWithNeighbors, ServerText, best_sentences
from .server_url import ServerUrl, find_text_field, named

__all__ = [
    "IndexFields",
    "SearchEngineConnector",
    "search_engine_errors",
]

_CLIENTS = ("opensearchpy", "elasticsearch", "elastic_transport")


@contextmanager
def search_engine_errors(address: ServerUrl, seconds: float) -> Iterator[None]:
    """
    Raise what a client raises as a CorpusError.

    By the names of the classes: both clients have the same ones, and only one may be installed.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _CLIENTS:
            raise
        raise CorpusError(f"{address}: {_advice(error, address, seconds)}") from error


def _advice(error: Exception, address: ServerUrl, seconds: float) -> str:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    said = address.without_secrets(error)
    if "ConnectionTimeout" in kinds:
        return f"No answer within {seconds:g} seconds. Try again, or allow more: timeout=SECONDS."
    if "SSLError" in kinds:
        return (
            f"No secure connection: {said}. Name the authority that signed its certificate, "
            "ca=FILE, or write tls=no if it speaks plain HTTP."
        )
    if "ConnectionError" in kinds:
        return f"It cannot be reached{_cause(said)}. Check host and port, and tls=yes or tls=no."
    if "UnsupportedProductError" in kinds:
        return "This is no Elasticsearch. If it is OpenSearch, write opensearch://."
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return (
            f"It refuses this user ({status}). Put user and password into the address, or set "
            f"{_variables(address.scheme)}."
        )
    if status == 404:
        return f"No index {address.path!r} there. The path of the address names it."
    if "media_type_header" in said or "compatible-with" in said:
        return (
            f"The client is of another major version than the server: {said}. Install the one "
            "that fits, for instance: pip install 'elasticsearch<9'."
        )
    return f"It cannot answer: {said}."


def _cause(said: str) -> str:
    """The system's own words, out of the long message around them."""
    found = re.search(r"\[Errno -?\d+\] ([^)\]]+)", said)
    return f": {found[1].strip()}" if found else ""


def _variables(scheme: str) -> str:
    if scheme == "opensearch":
        return "OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD"
    return "ELASTIC_API_KEY, or ELASTIC_USERNAME and ELASTIC_PASSWORD"


_OPTIONS = {"text", "title", "texts", "timeout", "tls", "ca"}
_PORT = 9200
_HERE = ("", "localhost", "127.0.0.1", "::1")
_SECONDS = 10.0
_TEXTS = 50
"""Texts fetched for a question, as many as the corpus takes passages for its hundred sentences."""


@dataclass(frozen=True, slots=True)
class IndexFields:
    """What an index holds where."""

    index: str
    text: str
    title: str | None = None
    several: bool = False
    """Whether the name stands for more than one index: an id may then be there twice."""


class SearchEngineConnector:
    """
    Made by `connect`, or with a client of your own (for Amazon's signatures, a proxy, tracing).

    The index does the finding, with its own analysers: a `match` over text and title.
    """

    def __init__(
        self,
        client: Any,
        layout: IndexFields,
        *,
        address: ServerUrl,
        size: int,
        texts: int = _TEXTS,
        seconds: float = _SECONDS,
    ) -> None:
        self._client = client
        self._layout = layout
        self._address = address
        self._size = size
        self._texts = texts
        self._seconds = seconds
        self._stems = Stemmer()

    @classmethod
    def connect(cls, address: ServerUrl, client: Any = None) -> SearchEngineConnector:
        """Look up the index and its fields; the client is made unless one is given."""
        address.only(_OPTIONS)
        if not address.path or "/" in address.path:
            raise InputError(f"{address} must name one index: {address.scheme}://HOST:9200/INDEX.")
        seconds = address.number("timeout", _SECONDS, least=0.1)
        texts = int(address.number("texts", _TEXTS, least=1))
        own = _client(address, seconds) if client is None else None
        client = client or own
        try:
            with search_engine_errors(address, seconds):
                layout = _layout(client, address)
                size = int(client.count(index=layout.index)["count"])
        except BaseException:
            if own is not None:
                own.close()
            raise
        return cls(client, layout, address=address, size=size, texts=texts, seconds=seconds)

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        """At most `k` sentences out of the texts that the engine finds, best first."""
        layout = self._layout
        fields = [layout.text, *([layout.title] if layout.title else [])]
        with search_engine_errors(self._address, self._seconds):
            answer = self._client.search(
                index=layout.index,
                body={
                    "query": {
                        "multi_match": {"query": question, "fields": fields, "type": "most_fields"}
                    },
                    "size": self._texts,
                    "_source": fields,
                    "track_total_hits": False,
                },
                # Without a part of the index the answer would be another one.
                allow_partial_search_results=False,
            )
        texts = [text for hit in answer["hits"]["hits"] if (text := self._text(hit))]
        return best_sentences(question, texts, k, self._stems)

    def neighbors(self, found: RetrievedSentence) -> tuple[str, str]:
        """The sentence before and the sentence after in the same text."""
        return (found.before, found.after) if isinstance(found, SentenceWithNeighbors) else ("", "")

    def __len__(self) -> int:
        return self._size

    def __str__(self) -> str:
        return f"{self._address.scheme}/{self._layout.index}"

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def __enter__(self) -> SearchEngineConnector:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _text(self, hit: Mapping[str, Any]) -> ServerText | None:
        """None for one that was found by its title and has no text."""
        name = f"{hit['_index']}/{hit['_id']}" if self._layout.several else str(hit["_id"])
        source = hit.get("_source")
        if source is None:
            raise CorpusError(
                f"{self._address} keeps no _source, so the texts themselves are not there."
            )
        text = _inside(source, self._layout.text)
        if text is None:
            return None
        if not isinstance(text, str):
            raise CorpusError(
                f"{self._address}: {self._layout.text!r} of {name} must hold one text, and holds "
                f"a {type(text).__name__}. Name a field with one: text=FIELD."
            )
        title = _inside(source, self._layout.title) if self._layout.title else None
        return ServerText(name, text, title if isinstance(title, str) else "", float(hit["_score"]))


def _layout(client: Any, address: ServerUrl) -> IndexFields:
    """By the capabilities of the fields, which whoever may search may ask for."""
    found = client.field_caps(index=address.path, fields="*")
    searchable = {
        name
        for name, kinds in found["fields"].items()
        if any("text" in kind or kind == "search_as_you_type" for kind in kinds)
    }
    options, place = address.options, str(address)
    title = options.get("title")
    return IndexFields(
        address.path,
        find_text_field(options.get("text"), searchable, "field", place),
        named(title, searchable, "field", place) if title else _usual_title(searchable),
        several=len(found["indices"]) > 1,
    )


def _usual_title(there: set[str]) -> str | None:
    return "title" if "title" in there else None


def _inside(source: Mapping[str, Any], path: str) -> Any:
    """`a.b` may stand in the source as it is, or as `b` inside `a`."""
    if path in source:
        return source[path]
    first, _, rest = path.partition(".")
    inner = source.get(first)
    return _inside(inner, rest) if rest and isinstance(inner, Mapping) else None


def _client(address: ServerUrl, seconds: float) -> Any:
    """HTTPS, unless the server is on this machine or the address says otherwise."""
    ca = address.options.get("ca")
    tls = address.flag("tls", bool(ca) or address.host not in _HERE)
    if ca and not tls:
        raise InputError("ca=FILE and tls=no do not go together.")
    host = address.host or "localhost"
    if ":" in host:
        host = f"[{host}]"
    url = f"{'https' if tls else 'http'}://{host}:{address.port or _PORT}"
    shared: dict[str, Any] = {"max_retries": 0, "retry_on_timeout": False}
    if ca:
        shared["ca_certs"] = os.path.expanduser(ca)
    if address.scheme == "opensearch":
        package = require_extra("opensearchpy", purpose="OpenSearch", extra="opensearch")
        user = _user(address, "OPENSEARCH")
        return package.OpenSearch([url], http_auth=user, timeout=seconds, **shared)
    package = require_extra("elasticsearch", purpose="Elasticsearch", extra="elasticsearch")
    user, key = _user(address, "ELASTIC"), os.environ.get("ELASTIC_API_KEY")
    who: dict[str, Any] = {"basic_auth": user} if user else {"api_key": key} if key else {}
    return package.Elasticsearch([url], request_timeout=seconds, **who, **shared)


def _user(address: ServerUrl, prefix: str) -> tuple[str, str] | None:
    """Name and password, out of the address first and the environment then."""
    user = address.user or os.environ.get(f"{prefix}_USERNAME")
    if not user:
        return None
    return user, address.password or os.environ.get(f"{prefix}_PASSWORD", "")
