"""Who is let in, what is too much, and what malformed requests get. Never a 500."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from .conftest import TEXTS
from .running import Server

KEY = "a-long-and-random-key"
GOOD = {"query": "Who wrote Emma?", "documents": TEXTS}


def _raw(
    server: Server, body: bytes, *, path: str = "/v1/rerank", **headers: str
) -> tuple[int, dict[str, Any]]:
    """A request that no client library would let pass."""
    where = urlsplit(server.base)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)
    try:
        given = {"Content-Type": "application/json", **headers}
        connection.request("POST", path, body, given)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


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


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
@pytest.mark.parametrize(("body", "status"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_bodies(server: Server, path: str, body: bytes, status: int) -> None:
    got, answer = _raw(server, body, path=path)
    assert got in {status, 422} if path == "/rerank" else got == status
    assert answer["message" if "message" in answer else "error"]


def test_nul_bytes_and_odd_characters_are_texts_like_others(server: Server) -> None:
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
def test_half_characters_are_mended(server: Server, path: str, body: bytes) -> None:
    status, _ = _raw(server, body, path=path)
    assert status == 200


def test_a_hundred_megabytes(server: Server) -> None:
    status, answer = _raw(server, b'{"query": "' + b"a" * 100_000_000 + b'"}')
    assert status == 413
    assert answer["message"] == "The body must have at most 4,194,304 bytes, got more."


def test_a_hundred_megabytes_without_saying_so(server: Server) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000_000

    headers = {"Content-Type": "application/json"}
    # The server may hang up while the client still sends.
    with contextlib.suppress(httpx.TransportError):
        response = server.client.post("/v1/rerank", content=pieces(), headers=headers)
        assert response.status_code == 413
    assert server.client.get("/health").status_code == 200


def test_a_hundred_thousand_candidates(server: Server) -> None:
    response = server.post("/v1/rerank", {"query": "a", "documents": ["b"] * 100_000})
    assert response.status_code == 413
    message = "documents must have at most 1,000 entries, got 100,000."
    assert response.json()["message"] == message


def test_too_many_words(server: Server) -> None:
    texts = ["word " * 1_000] * 201
    response = server.post("/v1/rerank", {"query": "a", "documents": texts})
    assert response.status_code == 413
    assert "at most 200,000 words together, got 201,001" in response.json()["message"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
        ("application/json; charset=utf-8", 200),
        ("application/vnd.api+json", 200),
    ],
)
def test_only_json_is_taken(server: Server, kind: str, expected: int) -> None:
    status, answer = _raw(server, json.dumps(GOOD).encode(), **{"Content-Type": kind})
    assert status == expected
    assert expected == 200 or "Content-Type: application/json" in answer["detail"]


def test_a_body_that_is_neither_of_two_kinds_is_told_plainly(server: Server) -> None:
    answer = server.post("/rerank", {"query": "a"}).json()
    assert answer["error"] == answer["detail"] == "documents: Field required."
    answer = server.post("/rerank", {"query": "a", "texts": [1]}).json()
    assert answer["error"] == "texts.0: Input should be a valid string."
    answer = server.post("/rerank", []).json()
    assert answer["error"].startswith("body: Input should be a valid dictionary")


def test_load_balancers_may_ask_for_heads(server: Server) -> None:
    for path in ("/", "/health", "/ready"):
        response = server.client.head(path)
        assert (response.status_code, response.content) == (200, b""), path


@pytest.mark.parametrize("value", ["soon", "0", "-5", "nan", "inf", "1e99"])
def test_a_deadline_must_be_a_number(server: Server, value: str) -> None:
    response = server.post("/v1/rerank", GOOD, headers={"X-Deadline-Ms": value})
    assert response.status_code == 422
    assert "X-Deadline-Ms must be a number from 1" in response.json()["message"]


def test_what_breaks_inside_stays_inside(server: Server) -> None:
    response = server.post("/v1/rerank", {**GOOD, "model": "broken"})
    assert response.status_code == 500
    assert "secret" not in response.text
    server.await_line("ZeroDivisionError: a secret of the house")


def test_unknown_routes_and_methods(server: Server) -> None:
    assert server.client.get("/nowhere").json()["message"] == "Not Found"
    assert server.client.get("/v1/rerank").status_code == 405
    assert server.client.get("/page/../app.py").status_code == 404
    assert server.client.get("/page/%2e%2e%2fapp.py").status_code == 404


def test_a_foreign_name_is_not_answered_to(server: Server) -> None:
    for name in ("evil.example", "127.0.0.1.evil.example:80", ""):
        response = server.client.get("/v1/documents", headers={"Host": name})
        assert response.status_code == 421, name
    for name in ("localhost", "localhost:9999", "127.0.0.1", "[::1]:8080"):
        response = server.client.get("/v1/documents", headers={"Host": name})
        assert response.status_code == 200, name


def test_responses_have_strict_headers(server: Server) -> None:
    for path in ("/", "/health", "/nowhere", "/page/app.js", "/docs"):
        headers = server.client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_keys_are_asked_for_and_texts_stay_out_of_the_log() -> None:
    options = ("--model", "bm25", "--workers", "1", "--host", "127.0.0.1")
    with Server(*options, ASKLINE_KEY=KEY) as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": KEY}):
            refused = server.post("/v1/rerank", GOOD, headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert "detail" in refused.json()
        bearer = {"Authorization": f"Bearer {KEY}"}
        assert server.post("/v1/rerank", GOOD, headers=bearer).status_code == 200
        for path in ("/", "/health", "/ready", "/docs", "/openapi.json", "/page/style.css"):
            assert server.client.get(path).status_code == 200, path
        for path in ("/metrics", "/info", "/v1/documents"):
            assert server.client.get(path).status_code == 401, path
        assert server.client.get("/health", headers={"Host": "any.example"}).status_code == 200
        server.await_line('"candidates": 3')
        log = "\n".join(server.lines)
        assert KEY not in log
        assert "Emma" not in log


def test_questions_are_logged_on_request_alone() -> None:
    with Server("--model", "bm25", "--workers", "1", "--log-text") as server:
        server.post("/v1/rerank", GOOD)
        server.await_line('"question": "Who wrote Emma[?]"')
        record = next(line for line in server.access() if line["route"] == "/v1/rerank")
        assert record["status"] == 200
        assert record["candidates"] == 3
        assert {"time", "client", "method", "ms", "bytes", "queue_ms", "work_ms"} <= set(record)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "can be reached by others"),
        (["--model", "cosnet"], "Did you mean 'cosinet'?"),
        (["--key", "short"], "at least 16 characters"),
        (["--open", "--host", "256.0.0.1"], "Cannot listen on 256.0.0.1"),
    ],
    ids=["exposure", "model", "key", "host"],
)
def test_what_cannot_be_served_is_said_at_once(options: list[str], message: str) -> None:
    command = [sys.executable, "-c", "from askline.cli import main; main()", "serve"]
    done = subprocess.run(
        [*command, "--port", "0", *options],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ,
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
