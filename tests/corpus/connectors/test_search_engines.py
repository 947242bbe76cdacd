"""Both clients, as they are, against a server that answers what the engines document."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from askline.corpus import Connector, HasNeighbors, Retriever, answer, connect
from askline.corpus.connectors import SearchEngineConnector
from askline.corpus.connectors.server_url import ServerUrl
from askline.errors import CorpusError, InputError, MissingExtraError

from .engine import Engine

ROCK = "The rock is far out. Its lighthouse was lit in 1698. A storm took it."
QUESTION = "When was the lighthouse lit?"
VARIABLES = ["OPENSEARCH_USERNAME", "OPENSEARCH_PASSWORD"] + [
    f"ELASTIC_{name}" for name in ("API_KEY", "USERNAME", "PASSWORD")
]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def pages(engine: Engine) -> None:
    engine.indexes["books"] = {
        "17": {"title": "Rocks", "body": ROCK},
        "x/9": {"title": "Bread", "body": "Yeast makes dough rise."},
    }


@pytest.fixture(params=["opensearch", "elasticsearch"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str, engine: Engine) -> str:
    return f"{kind}://localhost:{engine.port}"


def _answers(url: str, **options: Any) -> Iterator[tuple[str, str, int, int]]:
    with closing(connect(url)) as retriever:
        for each in answer(QUESTION, retriever, **options).answers:
            yield each.document, each.text, each.start, each.end


def test_the_answer_keeps_id_and_offsets(server: str) -> None:
    document, text, start, end = next(_answers(f"{server}/books"))
    assert (document, text) == ("17", "Its lighthouse was lit in 1698.")
    assert ROCK[start:end] == text


def test_a_connector_is_a_retriever_that_knows_neighbors(server: str, kind: str) -> None:
    with closing(connect(f"{server}/books")) as retriever:
        assert isinstance(retriever, Connector)
        assert isinstance(retriever, Retriever)
        assert isinstance(retriever, HasNeighbors)
        assert (len(retriever), str(retriever)) == (2, f"{kind}/books")
        found = answer(QUESTION, retriever)
    assert found.stages[0].ranker == f"{kind}/books % 100"
    assert found.best is not None
    assert (found.best.before, found.best.after) == ("The rock is far out.", "A storm took it.")


def test_the_requests_are_the_documented_ones(server: str, engine: Engine) -> None:
    list(_answers(f"{server}/books?texts=7"))
    fields, count, search = engine.asked
    assert fields.path == "/books/_field_caps"
    assert (fields.options or fields.body) in ({"fields": ["*"]}, {"fields": "*"})
    assert (count.path, count.body) == ("/books/_count", {})
    assert search.path == "/books/_search"
    assert search.options == {
        "allow_partial_search_results": ["false"],
        "search_type": ["dfs_query_then_fetch"],
    }
    assert search.body == {
        "query": {
            "multi_match": {"query": QUESTION, "fields": ["body", "title"], "type": "most_fields"}
        },
        "size": 7,
        "_source": ["body", "title"],
        "track_total_hits": False,
    }


def test_fields_are_named_or_found(server: str, engine: Engine) -> None:
    engine.types = {"note.en": "text", "name": "text", "tag": "keyword"}
    engine.indexes["books"] = {"1": {"note": {"en": ROCK}, "name": "Rocks"}, "2": {"name": "Empty"}}
    url = f"{server}/books?text=note.en&title=name"
    assert next(_answers(url))[:2] == ("1", "Its lighthouse was lit in 1698.")
    assert engine.asked[-1].body["_source"] == ["note.en", "name"]


def test_several_indexes_are_told_apart(server: str, engine: Engine) -> None:
    engine.indexes["books-2"] = {"17": {"body": "It was lit again in 1709."}}
    documents = {document for document, *_ in _answers(f"{server}/books*")}
    assert {"books/17", "books-2/17"} <= documents


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_credentials_from_the_url(server: str, engine: Engine) -> None:
    url = server.replace("://", "://ann:p%40ss@") + "/books"
    with closing(connect(url)) as retriever:
        assert "ss" not in str(retriever)
    assert {asked.authorization for asked in engine.asked} == {_basic("ann", "p@ss")}


def test_credentials_from_the_environment(
    server: str, kind: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = "OPENSEARCH" if kind == "opensearch" else "ELASTIC"
    monkeypatch.setenv(f"{prefix}_USERNAME", "bob")
    monkeypatch.setenv(f"{prefix}_PASSWORD", "key")
    connect(f"{server}/books").close()
    assert engine.asked[-1].authorization == _basic("bob", "key")


def test_elasticsearch_takes_a_key(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTIC_API_KEY", "abc")
    connect(f"elasticsearch://localhost:{engine.port}/books").close()
    assert engine.asked[-1].authorization == "ApiKey abc"


FAILURES: dict[str, tuple[tuple[int, dict[str, Any] | str], str]] = {
    "who": (
        (401, {"error": {"root_cause": [], "type": "security_exception"}, "status": 401}),
        r"refuses this user \(401\). Put user and password into the URL, or set .*_USERNAME",
    ),
    "not allowed": ((403, "no permissions for [indices:data/read]"), r"refuses this user \(403\)"),
    "broken": (
        (
            503,
            {
                "error": {
                    "root_cause": [],
                    "type": "search_phase_execution_exception",
                    "reason": "Search rejected due to missing shards",
                },
                "status": 503,
            },
        ),
        "cannot answer: .*search_phase_execution_exception",
    ),
    "older": (
        (400, {"error": {"type": "media_type_header_exception"}, "status": 400}),
        "another major version.*pip install 'elasticsearch<9'",
    ),
}


@pytest.mark.parametrize(("failure", "message"), FAILURES.values(), ids=FAILURES)
def test_errors_of_the_server_are_reported(
    server: str, engine: Engine, failure: tuple[int, dict[str, Any] | str], message: str
) -> None:
    engine.failure = failure
    with pytest.raises(CorpusError, match=message) as raised:
        connect(server.replace("://", "://ann:sesame@") + "/books")
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("boks", "It has no index 'boks'"),
        ("books?text=bodi", "No field 'bodi'. Known: body, title. Did you mean 'body'?"),
        ("books?title=year", "No field 'year'"),
    ],
    ids=["index", "text", "title"],
)
def test_a_wrong_name_is_reported_when_connecting(server: str, path: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        connect(f"{server}/{path}")


def test_an_index_without_a_usual_text_field_asks_for_its_name(server: str, engine: Engine) -> None:
    engine.types = {"story": "text"}
    with pytest.raises(
        CorpusError, match="Name the one that holds the text: text=FIELD. Available: story"
    ):
        connect(f"{server}/books")


def test_texts_that_are_lists_are_refused(server: str, engine: Engine) -> None:
    engine.indexes["books"]["17"]["body"] = ["One.", "Two."]
    with pytest.raises(CorpusError, match="'body' of 17 must be a string, got a list"):
        list(_answers(f"{server}/books"))


def test_a_timeout_is_reported(server: str, engine: Engine) -> None:
    with closing(connect(f"{server}/books?timeout=0.2")) as retriever:
        engine.wait = 0.5
        with pytest.raises(CorpusError, match="No answer within 0.2 seconds"):
            retriever.retrieve(QUESTION, 5)


def test_an_unreachable_server_is_reported(kind: str) -> None:
    with pytest.raises(CorpusError, match="cannot be reached.*Check host and port"):
        connect(f"{kind}://localhost:9/books")


def test_a_server_without_tls_is_reported(server: str) -> None:
    with pytest.raises(CorpusError, match="No secure connection|cannot be reached"):
        connect(f"{server}/books?tls=yes")


def test_opensearch_behind_the_wrong_scheme(engine: Engine) -> None:
    engine.product = None
    with pytest.raises(CorpusError, match="This is not Elasticsearch.*opensearch://"):
        connect(f"elasticsearch://localhost:{engine.port}/books")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", "must name one index"),
        ("/a/b", "must name one index"),
        ("/books?txt=body", "No option 'txt'"),
        ("/books?tls=no&ca=x.pem", "exclude each other"),
    ],
    ids=["no index", "two", "option", "tls"],
)
def test_invalid_options_are_refused(server: str, rest: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        connect(f"{server}{rest}")
    with pytest.raises(InputError, match="only for a PostgreSQL table"):
        connect(f"{server}/books", encode=lambda _: [1.0])


def test_a_client_of_the_caller_is_used(engine: Engine) -> None:
    from opensearchpy import OpenSearch

    client = OpenSearch([f"http://localhost:{engine.port}"])
    address = ServerUrl.parse("opensearch://anywhere/books")
    with SearchEngineConnector.connect(address, client) as retriever:
        assert retriever.retrieve(QUESTION, 1)[0].document == "17"


def test_a_missing_client_names_its_extra(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opensearchpy", None)
    monkeypatch.setitem(sys.modules, "elasticsearch", None)
    with pytest.raises(MissingExtraError, match=rf"pip install .*\[{kind}\]'"):
        connect(f"{kind}://localhost/books")


def test_an_empty_question_is_refused_before_the_request(server: str, engine: Engine) -> None:
    with closing(connect(f"{server}/books")) as retriever:
        requests = len(engine.asked)
        with pytest.raises(InputError, match="The question must not be empty"):
            retriever.retrieve(" ", 5)
    assert len(engine.asked) == requests
