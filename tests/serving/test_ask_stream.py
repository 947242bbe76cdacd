"""`/v1/ask/stream`: lines arrive one by one, and a client that leaves cancels the rest."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from askline.corpus import Corpus

from .conftest import PAGES
from .server_process import Server, eventually

pytestmark = pytest.mark.slow

ROUTE = "/v1/ask/stream"


@pytest.fixture(scope="module")
def slow_index(tmp_path_factory: pytest.TempPathFactory, plugins: Path) -> Iterator[Server]:
    """Two workers with the ranker `slow`: a question ends with its milliseconds."""
    folder = tmp_path_factory.mktemp("streamed") / "index"
    with Corpus.open(folder, ranker=None) as corpus:
        corpus.add_texts(PAGES)
    options = ("--index", str(folder), "--model", "slow", "--workers", "2")
    with Server(*options, plugins=plugins) as running:
        for _ in eventually(60):
            if running.metric("askline_workers") == 2:
                break
        yield running


def _lines(server: Server, body: dict[str, Any]) -> list[dict[str, Any]]:
    response = server.post(ROUTE, body)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def test_a_line_is_the_response_of_ask(server: Server) -> None:
    questions = [
        "When was the first lighthouse lit?",
        "Who built the lens?",
        "Why does dough rise?",
    ]
    options = {"top_k": 2, "ranker": "calibrated", "threshold": 0.3}
    lines = _lines(server, {"questions": questions, **options})
    assert sorted(line["index"] for line in lines) == [0, 1, 2]
    for line in lines:
        alone = server.post("/v1/ask", {"question": questions[line["index"]], **options}).json()
        assert line["error"] is None
        assert _comparable(line["response"]) == _comparable(alone)
    assert len(lines[0]["response"]["answers"]) == 2


def _comparable(response: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from call to call."""
    stages = [{**stage, "ms": 0} for stage in response["stages"]]
    return {**response, "id": "", "ms": 0, "stages": stages}


def test_lines_arrive_when_their_questions_are_done(slow_index: Server) -> None:
    questions = ["lighthouse 3000", "lens 1", "yeast 1"]
    arrived = []
    start = time.perf_counter()
    with slow_index.client.stream("POST", ROUTE, json={"questions": questions}) as response:
        assert response.headers["content-type"] == "application/x-ndjson"
        for line in response.iter_lines():
            arrived.append((json.loads(line)["index"], time.perf_counter() - start))
    assert [index for index, _ in arrived] == [1, 2, 0]
    assert arrived[1][1] < 2.5 < 3 < arrived[2][1]


def test_a_client_that_disconnects_cancels_the_rest(slow_index: Server) -> None:
    cancelled = slow_index.metric("askline_cancelled_jobs_total")
    questions = ["lens 1", *(f"lighthouse {20_000 + number}" for number in range(98)), "lens 2"]
    start = time.perf_counter()
    with (
        httpx.Client(base_url=slow_index.base, timeout=30) as client,
        client.stream("POST", ROUTE, json={"questions": questions}) as response,
    ):
        assert json.loads(next(response.iter_lines()))["index"] == 0
    for _ in eventually():
        if slow_index.metric("askline_cancelled_jobs_total") == cancelled + 2:
            break
    for _ in eventually():
        if not slow_index.metric("askline_running_jobs"):
            break
    assert slow_index.post("/v1/ask", {"question": "lens 1"}).status_code == 200
    assert time.perf_counter() - start < 15
    slow_index.await_line(r'"route": "/v1/ask/stream".*"questions": 100, "done": 1,')
    assert not [line for line in slow_index.lines if "Traceback" in line or "Exception" in line]


def test_a_client_that_has_closed_only_its_own_side_gets_all_lines(slow_index: Server) -> None:
    where = urlsplit(slow_index.base)
    body = json.dumps({"questions": ["lens 300", "yeast 600", "lens 300"]})
    head = (
        f"POST {ROUTE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection((where.hostname, where.port or 80), timeout=20) as line:
        line.sendall((head + body).encode())
        line.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: line.recv(65536), b""))
    assert received.count(b'"index":') == 3
    assert received.endswith(b"0\r\n\r\n")


def test_other_clients_do_not_wait_for_the_whole_stream(slow_index: Server) -> None:
    body = {"questions": [f"lighthouse {500 + number}" for number in range(20)]}
    with slow_index.client.stream("POST", ROUTE, json=body) as response:
        next(response.iter_lines())
        start = time.perf_counter()
        with httpx.Client(base_url=slow_index.base, timeout=30) as other:
            assert other.post("/v1/ask", json={"question": "lens 1"}).status_code == 200
        assert time.perf_counter() - start < 3  # all questions together take five seconds


def test_the_deadline_is_that_of_each_question(slow_index: Server) -> None:
    body = {"questions": ["lens 1", "lighthouse 20000", "yeast 1"], "deadline_ms": 300}
    errors = {line["index"]: line["error"] for line in _lines(slow_index, body)}
    assert errors[0] is None
    assert errors[2] is None
    assert errors[1]["status"] == 504
    assert "deadline passed" in errors[1]["message"]


def test_a_question_that_fails_has_a_line_with_an_error(server: Server) -> None:
    questions = ["Which lamp burns?", "Who built the lens?", "Which lamp burns?"]
    lines = _lines(server, {"questions": questions, "ranker": "failing"})
    assert [line["index"] for line in lines] == [0, 1, 2]
    assert [line["error"] and line["error"]["status"] for line in lines] == [None, 500, None]
    assert "secret" not in json.dumps(lines)
    assert lines[1]["response"] is None


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"questions": ["Who?"], "ranker": "nothing"}, 404, "nothing"),
        ({"questions": ["Who built the lens?"], "ranker": "failing"}, 500, "internal error"),
        ({"questions": ["Who?"] * 1_001}, 413, "at most 1,000 entries, got 1,001"),
        ({"questions": [""]}, 422, "questions.0"),
        ({"questions": []}, 400, "at least one entry, got none"),
        ({"question": "Who?"}, 422, "questions: Field required"),
    ],
    ids=["ranker", "failing", "many", "empty question", "none", "field"],
)
def test_a_stream_that_cannot_begin_is_an_error(
    server: Server, body: dict[str, Any], status: int, message: str
) -> None:
    response = server.post(ROUTE, body)
    assert (response.status_code, response.headers["content-type"]) == (status, "application/json")
    assert message in response.json()["message"]


def test_without_an_index_the_status_is_404(slow_server: Server) -> None:
    response = slow_server.post(ROUTE, {"questions": ["Who?"]})
    assert response.status_code == 404
    assert "has no index" in response.json()["message"]


def test_shutdown_ends_a_stream_that_it_has_no_time_for(tmp_path: Path, plugins: Path) -> None:
    with Corpus.open(tmp_path / "index", ranker=None) as corpus:
        corpus.add_texts(PAGES)
    options = ("--index", str(tmp_path / "index"), "--model", "slow", "--workers", "1")
    short = "import askline.serving.server as server; server._SHUTDOWN_SECONDS = 1"
    with Server(*options, plugins=plugins, before=short) as server:
        body = {"questions": ["lens 1", *["lighthouse 3000"] * 10]}
        with server.client.stream("POST", ROUTE, json=body) as response:
            lines = response.iter_lines()
            assert json.loads(next(lines))["index"] == 0
            assert server.stop() == 0
            with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
                list(lines)
        assert not [line for line in server.lines if "Traceback" in line]
