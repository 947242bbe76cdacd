"""The start of the server, and connections that send slowly, too much, or nothing."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from askline.serving.limits import Limits
from askline.serving.server import ConnectionLimiter, _network

from .server_process import Server, eventually


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "Other machines can reach"),
        (["--model", "cosnet"], "Did you mean 'cosinet'?"),
        (["--key", "short"], "at least 16 characters"),
        (["--open", "--host", "256.0.0.1"], "Cannot listen on 256.0.0.1"),
    ],
    ids=["exposure", "model", "key", "host"],
)
def test_errors_at_start_are_reported_without_a_traceback(options: list[str], message: str) -> None:
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


@pytest.mark.slow
def test_a_port_in_use_is_reported_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-c", "from askline.cli import main; main()", "serve"]
        done = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, timeout=60, env=os.environ
        )
    assert done.returncode == 2, done.stderr
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert "Choose another with --port." in done.stderr


@pytest.mark.slow
def test_a_worker_process_does_not_import_the_web_framework() -> None:
    program = (
        "import askline.serving.worker, sys\n"
        "print(*{'fastapi', 'starlette', 'uvicorn'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.split() == []


HALF_A_REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Name: "
REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


class SmallServer:
    """uvicorn in a thread, with an application that answers `/slow` after some time."""

    def __init__(self, limits: Limits) -> None:
        self.events: list[str] = []
        self._lines: list[socket.socket] = []
        config = uvicorn.Config(
            self._app,
            http=ConnectionLimiter(limits).protocol,  # type: ignore[arg-type]
            log_config=None,
            lifespan="off",
            interface="asgi3",
            h11_max_incomplete_event_size=limits.header_bytes,
        )
        self._server = uvicorn.Server(config)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listener]))

    def stop(self) -> None:
        for line in self._lines:
            line.close()
        self._server.should_exit = True
        self._thread.join(10)

    def connect(self, data: bytes = b"") -> socket.socket:
        line = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        self._lines.append(line)
        line.sendall(data)
        return line

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/slow":
            gone = asyncio.ensure_future(receive())
            done, _ = await asyncio.wait({gone}, timeout=1.5)
            gone.cancel()
            self.events.append("client gone" if done else "answered")
        body = b"x" * (10_000_000 if scope["path"] == "/large" else 2)
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@contextmanager
def _running(limits: Limits) -> Iterator[SmallServer]:
    server = SmallServer(limits)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def start() -> Iterator[Callable[[Limits], SmallServer]]:
    with ExitStack() as stack:
        yield lambda limits: stack.enter_context(_running(limits))


def _read(line: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    parts = []
    try:
        while part := line.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def _answer(line: socket.socket) -> bytes:
    """One response with the body `xx`."""
    answer = b""
    while not answer.endswith(b"xx") and (part := line.recv(65_536)):
        answer += part
    return answer


Start = Callable[[Limits], SmallServer]


def test_headers_must_arrive_in_time(start: Start) -> None:
    server = start(Limits(header_seconds=0.5))
    line = server.connect(HALF_A_REQUEST)
    begin = time.monotonic()
    while time.monotonic() - begin < 0.3:
        line.sendall(b"a")
        time.sleep(0.1)
    answer = _read(line)
    assert time.monotonic() - begin < 5
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"The headers must arrive within 0.5 s." in answer


def test_a_connection_without_a_request_is_closed(start: Start) -> None:
    line = start(Limits(header_seconds=0.3)).connect()
    assert _read(line) == b""


def test_the_second_request_of_a_connection_has_a_time_too(start: Start) -> None:
    line = start(Limits(header_seconds=0.5)).connect(REQUEST)
    assert _answer(line).endswith(b"xx")
    line.sendall(HALF_A_REQUEST)
    assert _read(line).startswith(b"HTTP/1.1 408 ")


def test_a_slow_response_is_not_cut_off_by_the_time_for_headers(start: Start) -> None:
    line = start(Limits(header_seconds=0.3)).connect(REQUEST.replace(b"/health", b"/slow"))
    assert _answer(line).endswith(b"xx")


def test_headers_have_a_maximum_size(start: Start) -> None:
    line = start(Limits(header_bytes=10_000)).connect(HALF_A_REQUEST)
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        line.sendall(b"a" * 200_000_000)
    for end in (b"", b"\r\n\r\n"):
        line = start(Limits(header_bytes=10_000)).connect(HALF_A_REQUEST + b"a" * 11_000 + end)
        head, _, body = _read(line).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 431 ")
        assert "at most 10,000 bytes" in json.loads(body)["message"]


def test_a_body_is_no_part_of_the_size_of_the_headers(start: Start) -> None:
    post = b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11000\r\nX-Name: "
    request = post + b"a" * 9_000 + b"\r\n\r\n" + b"a" * 11_000
    line = start(Limits(header_bytes=10_000)).connect(request)
    assert _answer(line).startswith(b"HTTP/1.1 200 ")
    line.sendall(request)
    assert _answer(line).startswith(b"HTTP/1.1 200 ")


def test_what_is_not_http_is_refused(start: Start) -> None:
    head, _, body = _read(start(Limits()).connect(b"\x16\x03\x01 hello\r\n\r\n")).partition(
        b"\r\n\r\n"
    )
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/json" in head
    assert json.loads(body)["message"] == "Invalid HTTP request received."


@pytest.mark.parametrize(
    "limits",
    [Limits(connections_per_address=5), Limits(connections=5)],
    ids=["per address", "in all"],
)
def test_the_oldest_waiting_connection_is_closed_for_a_new_one(
    start: Start, limits: Limits
) -> None:
    server = start(limits)
    slow = server.connect(REQUEST.replace(b"/health", b"/slow"))
    time.sleep(0.2)
    waiting = [server.connect(HALF_A_REQUEST) for _ in range(5)]
    line = server.connect(REQUEST)
    assert _answer(line).endswith(b"xx")
    assert _read(waiting[0]) == b""
    waiting[4].sendall(b"a\r\n\r\n")
    assert _answer(waiting[4]).endswith(b"xx")
    assert _answer(slow).endswith(b"xx")  # a complete request is not counted
    assert server.events == ["answered"]


def test_a_client_that_does_not_read_can_be_closed(start: Start) -> None:
    server = start(Limits(connections_per_address=3))
    lazy = server.connect(REQUEST.replace(b"/health", b"/large"))
    time.sleep(0.3)
    waiting = [server.connect(HALF_A_REQUEST) for _ in range(4)]
    time.sleep(0.3)
    assert len(_read(lazy)) < 10_000_000
    assert waiting[3].fileno() > 0


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_client_that_closes_its_side_gets_its_response(start: Start, version: bytes) -> None:
    server = start(Limits())
    request = REQUEST.replace(b"/health", b"/slow").replace(b"1.1", version)
    line = server.connect(request)
    line.shutdown(socket.SHUT_WR)
    begin = time.monotonic()
    answer = _read(line)
    assert b" 200 OK" in answer
    assert answer.endswith(b"xx")
    assert time.monotonic() - begin < 4  # the server closes the connection at once
    assert server.events == ["answered"]


def test_a_client_that_closes_both_sides_is_noticed(start: Start) -> None:
    server = start(Limits())
    server.connect(REQUEST.replace(b"/health", b"/slow")).close()
    for _ in eventually(5):
        if server.events:
            break
    assert server.events == ["client gone"]


def test_half_a_request_and_the_end_is_not_answered(start: Start) -> None:
    line = start(Limits()).connect(HALF_A_REQUEST)
    line.shutdown(socket.SHUT_WR)
    assert _read(line) == b""


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_an_ipv6_client_is_counted_by_its_network(host: str, expected: str) -> None:
    assert _network(host) == expected


def test_health_answers_beside_1023_half_open_connections(server: Server) -> None:
    where = urlsplit(server.base)
    with ExitStack() as stack:
        for _ in range(1_023):
            line = stack.enter_context(socket.create_connection((where.hostname, where.port or 80)))
            line.sendall(HALF_A_REQUEST)
        for path in ("/health", "/ready", "/info"):
            begin = time.perf_counter()
            assert server.client.get(path).status_code == 200
            assert time.perf_counter() - begin < 1
        body = {"query": "Who wrote Emma?", "documents": ["Jane Austen wrote Emma."]}
        assert server.post("/v1/rerank", body).status_code == 200
