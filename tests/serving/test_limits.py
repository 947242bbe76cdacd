"""The limits of one request: body, entries, tokens, deadline, time."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import Iterator

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message

from askline.errors import InputError
from askline.serving.limits import Limits, _LimitedBody

from .conftest import RERANK_BODY
from .server_process import Server


def test_limits_are_above_0() -> None:
    with pytest.raises(InputError, match="The limit queue must be above 0, got 0"):
        Limits(queue=0)


def test_a_hundred_megabytes(server: Server) -> None:
    status, answer = server.post_bytes(b'{"query": "' + b"a" * 100_000_000 + b'"}')
    assert status == 413
    assert answer["message"] == "The body must have at most 4,194,304 bytes, got more."


def test_a_hundred_megabytes_without_content_length(server: Server) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000_000

    headers = {"Content-Type": "application/json"}
    # The server may close the connection while the client still sends.
    with contextlib.suppress(httpx.TransportError):
        response = server.client.post("/v1/rerank", content=pieces(), headers=headers)
        assert response.status_code == 413
    assert server.client.get("/health").status_code == 200


def test_a_hundred_thousand_candidates(server: Server) -> None:
    response = server.post("/v1/rerank", {"query": "a", "documents": ["b"] * 100_000})
    assert response.status_code == 413
    message = "documents must have at most 1,000 entries, got 100,000."
    assert response.json()["message"] == message


def test_too_many_tokens(server: Server) -> None:
    texts = ["word " * 1_000] * 201
    response = server.post("/v1/rerank", {"query": "a", "documents": texts})
    assert response.status_code == 413
    assert "at most 200,000 tokens together, got more" in response.json()["message"]


def test_punctuation_counts_as_tokens(server: Server) -> None:
    response = server.post("/v1/rerank", {"query": "a", "documents": ["." * 200_000]})
    assert response.status_code == 413
    found = server.post("/v1/rerank", {"query": "a", "documents": ["." * 20_000]}).json()
    assert found["usage"]["total_tokens"] == 20_001


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
        ("application/json; charset=utf-8", 200),
        ("application/vnd.api+json", 200),
    ],
)
def test_only_json_is_accepted(server: Server, content_type: str, expected: int) -> None:
    status, answer = server.post_bytes(
        json.dumps(RERANK_BODY).encode(), **{"Content-Type": content_type}
    )
    assert status == expected
    assert expected == 200 or "Content-Type: application/json" in answer["detail"]


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate"])
def test_a_compressed_body_is_refused(server: Server, encoding: str) -> None:
    body = gzip.compress(json.dumps(RERANK_BODY).encode())
    status, answer = server.post_bytes(body, **{"Content-Encoding": encoding})
    assert status == 415
    assert f"must not be compressed, got Content-Encoding: {encoding}" in answer["message"]


@pytest.mark.parametrize("value", ["soon", "0", "-5", "nan", "inf", "1e99"])
def test_a_deadline_must_be_a_number(server: Server, value: str) -> None:
    response = server.post("/v1/rerank", RERANK_BODY, headers={"X-Deadline-Ms": value})
    assert response.status_code == 422
    assert "X-Deadline-Ms must be a number from 1" in response.json()["message"]


def test_a_slow_body_is_refused() -> None:
    async def never() -> Message:
        await asyncio.sleep(60)
        return {}

    async def read() -> None:
        await _LimitedBody(never, Limits(body_seconds=0.05))()

    with pytest.raises(HTTPException, match="408"):
        asyncio.run(read())
