"""Malformed requests, unknown routes and response headers. No request is answered with a 500."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import RERANK_BODY, TEXTS
from .server_process import Server

MALFORMED = {
    "no JSON": (b"{", 400),
    "nothing": (b"", 422),
    "not UTF-8": (b'{"query": "\xff", "documents": ["a"]}', 400),
    "a list": (b"[]", 422),
    "a number": (b"7", 422),
    "null": (b"null", 422),
    "wrong types": (b'{"query": 1, "documents": "a"}', 422),
    "documents as numbers": (b'{"query": "a", "documents": [1, null, {}]}', 422),
    "deep JSON": (b'{"query": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    "deep objects": (
        b'{"query": "a", "documents": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
        400,
    ),
    "half a key": (b'{"\\ud800": 1, "query": "a", "documents": [1]}', 422),
    "NaN": (b'{"query": "a", "documents": ["a"], "deadline_ms": NaN}', 422),
    "a huge number": (b'{"query": "a", "documents": ["a"], "top_n": 1' + b"0" * 5000 + b"}", 400),
    "a fraction": (b'{"query": "a", "documents": ["a"], "top_n": 1.5}', 422),
}


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
@pytest.mark.parametrize(("body", "status"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_bodies(server: Server, path: str, body: bytes, status: int) -> None:
    got, answer = server.post_bytes(body, path=path)
    assert got in {status, 422} if path == "/rerank" else got == status
    assert answer["message" if "message" in answer else "error"]


EMPTY_QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "cohere v2": ("/v2/rerank", {"query": "", "documents": TEXTS}),
    "cohere v1": ("/v1/rerank", {"query": "", "documents": TEXTS}),
    "jina": ("/rerank", {"query": "", "documents": TEXTS}),
    "tei": ("/rerank", {"query": "", "texts": TEXTS}),
    "vllm score": ("/score", {"text_1": "", "text_2": TEXTS}),
    "vllm v1 score": ("/v1/score", {"queries": ["a", "", "b"], "documents": TEXTS}),
    "ask the index": ("/v1/ask", {"question": ""}),
    "ask documents": ("/v1/ask", {"question": "", "documents": TEXTS}),
}


@pytest.mark.slow
@pytest.mark.parametrize("blank", ["", " \t\n"], ids=["empty", "blank"])
@pytest.mark.parametrize(("path", "body"), EMPTY_QUESTIONS.values(), ids=EMPTY_QUESTIONS.keys())
def test_an_empty_question_is_refused_in_the_format_of_the_client(
    server: Server, path: str, body: dict[str, Any], blank: str
) -> None:
    filled = {
        name: blank if value == "" else [each or blank for each in value]
        for name, value in body.items()
    }
    response = server.post(path, filled)
    assert response.status_code == 422
    error = response.json()
    expected = "Question must not be empty or only whitespace."
    if "score" in path:
        assert error["error"] == {
            "message": f"body: {expected}",
            "type": "BadRequestError",
            "param": None,
            "code": 422,
        }
    elif "texts" in body:
        assert error == {"error": f"query: {expected}", "error_type": "Validation"}
    else:
        field = "question" if path == "/v1/ask" else "query"
        assert error == {"message": f"{field}: {expected}", "detail": f"{field}: {expected}"}


def test_nul_bytes_and_unusual_characters_are_accepted(server: Server) -> None:
    texts = ["\x00", "", "   ", "\ufffe", "🜚" * 50, "a\u0301" * 1000]
    found = server.post("/v1/rerank", {"query": "\x00?", "documents": texts}).json()
    assert sorted(item["index"] for item in found["results"]) == list(range(len(texts)))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/rerank", b'{"query": "a\\ud800", "documents": ["b\\udfff", {"text": "c\\ud800"}]}'),
        ("/v2/rerank", b'{"query": "a\\ud800", "documents": ["b\\udfff"], "model": "\\ud800"}'),
        ("/rerank", b'{"query": "a\\ud800", "texts": ["b\\udfff"], "return_text": true}'),
        ("/score", b'{"text_1": "a\\ud800", "text_2": ["b\\udfff"]}'),
        ("/v1/ask", b'{"question": "a\\ud800", "documents": ["a\\udfff"], "explain": true}'),
        ("/v1/ask", b'{"question": "lamp \\ud800"}'),
    ],
)
def test_lone_surrogates_are_replaced(server: Server, path: str, body: bytes) -> None:
    status, _ = server.post_bytes(body, path=path)
    assert status == 200


def test_errors_on_rerank_name_the_field_of_the_format(server: Server) -> None:
    answer = server.post("/rerank", {"query": "a"}).json()
    assert answer["error"] == answer["detail"] == "documents: Field required."
    answer = server.post("/rerank", {"query": "a", "texts": [1]}).json()
    assert answer["error"] == "texts.0: Input should be a valid string."
    answer = server.post("/rerank", []).json()
    assert answer["error"] == "body: expected an object, got a list."


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (
            "/v1/rerank",
            {"query": "a", "documents": ["a", 5]},
            "documents.1: expected a string or an object with 'text', got an integer.",
        ),
        (
            "/rerank",
            {"query": "a", "documents": [None, {"text": 5}]},
            "documents.0: expected a string or an object with 'text', got null. "
            "documents.1.text: Input should be a valid string.",
        ),
        (
            "/v1/ask",
            {"question": "a", "documents": [True, {"id": "a"}]},
            "documents.0: expected a string or an object with 'id' and 'text', got a boolean. "
            "documents.1.text: Field required.",
        ),
        (
            "/score",
            {"text_1": {}, "text_2": ["a", 1.5]},
            "text_1: expected a string or a list of strings, got an object. "
            "text_2.1: Input should be a valid string.",
        ),
        (
            "/v1/rerank",
            {"query": "a", "documents": [1] * 7},
            "and 2 more problems.",
        ),
        (
            "/v1/documents",
            {"documents": ["a"]},
            "documents.0: expected an object, got a string.",
        ),
    ],
)
def test_errors_name_the_field_and_what_it_expects(
    server: Server, path: str, body: dict[str, Any], message: str
) -> None:
    answer = server.post(path, body).json()
    found = answer["error"]["message"] if "score" in path else answer["message"]
    assert found.endswith(message)
    assert "[" not in found
    assert "Schema" not in found


def test_head_requests_of_load_balancers(server: Server) -> None:
    for path in ("/", "/health", "/ready"):
        response = server.client.head(path)
        assert (response.status_code, response.content) == (200, b""), path


def test_internal_errors_are_logged_and_not_shown(server: Server) -> None:
    response = server.post("/v1/rerank", {**RERANK_BODY, "model": "failing"})
    assert response.status_code == 500
    assert "secret" not in response.text
    server.await_line("ZeroDivisionError: a secret")


def test_unknown_routes_and_methods(server: Server) -> None:
    missing = server.client.get("/nowhere")
    assert missing.status_code == 404
    assert missing.json()["message"] == "There is nothing at this path. /docs lists all routes."
    refused = server.client.get("/v1/rerank")
    assert refused.status_code == 405
    assert refused.json()["message"] == "Expected the method POST, got GET."
    form = {"Content-Type": "text/plain"}
    assert server.client.post("/health", content="a", headers=form).status_code == 405
    assert server.client.post("/nowhere", content="a", headers=form).status_code == 404
    assert server.client.get("/page/../app.py").status_code == 404
    assert server.client.get("/page/%2e%2e%2fapp.py").status_code == 404


def test_responses_have_security_headers(server: Server) -> None:
    for path in ("/", "/health", "/nowhere", "/page/app.js", "/docs"):
        headers = server.client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/documents", "GET, POST"),
        ("/v1/documents/bread", "DELETE, GET"),
        ("/health", "GET, HEAD"),
        ("/v1/rerank", "POST"),
        ("/openapi.json", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_answered_with_all_allowed_methods(
    server: Server, path: str, allowed: str
) -> None:
    response = server.client.patch(path)
    assert response.status_code == 405
    assert response.headers["allow"] == allowed


def test_whole_numbers_may_be_written_as_fractions(server: Server) -> None:
    found = server.post_bytes(b'{"query": "Emma", "documents": ["a", "b", "c"], "top_n": 2.0}')[1]
    assert len(found["results"]) == 2


def test_models_are_listed(server: Server) -> None:
    listed = server.client.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["cosinet", "calibrated", "failing"]
    assert {model["object"] for model in listed["data"]} == {"model"}


DOCUMENTS_WITHOUT_TEXT = {
    "no text": ({"documents": ["a", {"title": "b"}]}, "documents.1: expected a text in the field"),
    "null": ({"documents": [{"text": None}]}, "documents.0: expected a text in the field 'text'"),
    "no rank field": (
        {"documents": [{"title": "a"}, {"body": "b"}], "rank_fields": ["body", "head"]},
        "documents.0: expected a text in the field 'body' or 'head', got none",
    ),
    "a number": (
        {"documents": [{"year": 1815}], "rank_fields": ["year"]},
        "documents.0: the field 'year' must be a string, got int",
    ),
}


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank"])
@pytest.mark.parametrize(
    ("body", "message"), DOCUMENTS_WITHOUT_TEXT.values(), ids=DOCUMENTS_WITHOUT_TEXT.keys()
)
def test_a_document_without_the_field_to_rank_is_refused(
    server: Server, path: str, body: dict[str, Any], message: str
) -> None:
    response = server.post(path, {"query": "Emma", **body})
    assert response.status_code == 422
    assert message in response.json()["message"]


def test_a_document_may_lack_some_of_the_fields_to_rank(server: Server) -> None:
    documents = [{"title": "a"}, {"title": "b", "text": ""}]
    body = {"query": "Emma", "documents": documents, "rank_fields": ["title", "text"]}
    assert server.post("/v1/rerank", body).status_code == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"queries": ["a", "b"], "documents": ["c"] * 3},
            "as many questions as texts, got 2 and 3",
        ),
        ({"queries": "a"}, "data_1 and data_2, got queries"),
        ({}, "got none of them"),
        ({"queries": "a", "documents": "b", "text_1": []}, "got queries, documents, text_1"),
    ],
    ids=["unequal", "half a pair", "nothing", "more than a pair"],
)
def test_questions_and_texts_to_score_must_match(
    server: Server, body: dict[str, Any], message: str
) -> None:
    response = server.post("/v1/score", body)
    assert response.status_code == 422
    assert message in response.json()["message"]
