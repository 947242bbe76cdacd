"""API keys and the Host check: `ApiKeys` alone, and a server that uses them."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from askline.errors import DataError, InputError
from askline.serving.auth import Access, ApiKeys, is_loopback

from .conftest import RERANK_BODY
from .server_process import Server

KEY = "a-long-and-random-key"
READ_KEY = "a-long-key-that-may-only-read"


def _sha256(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _keys_file(path: Path, text: str, *, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"authorization": f"Bearer {KEY}"}, Access.WRITE),
        ({"authorization": f"bearer {KEY}"}, Access.WRITE),
        ({"authorization": f"Bearer {READ_KEY}"}, Access.READ),
        ({"authorization": f"Bearer {KEY}x"}, Access.NONE),
        ({"authorization": f"Basic {KEY}"}, Access.NONE),
        ({"authorization": KEY}, Access.NONE),
        ({"authorization": ""}, Access.NONE),
        ({}, Access.NONE),
        ({"x-api-key": KEY}, Access.WRITE),
        ({"api-key": READ_KEY}, Access.READ),
        ({"api-key": "wrong"}, Access.NONE),
        ({"authorization": f"Bearer {READ_KEY}", "x-api-key": KEY}, Access.WRITE),
    ],
)
def test_access_by_key(headers: dict[str, str], expected: Access) -> None:
    keys = ApiKeys.from_keys([KEY, "another-long-and-random-key"])
    assert (keys + ApiKeys(read=(_sha256(READ_KEY),))).access_of(headers) is expected


def test_without_keys_every_request_is_accepted() -> None:
    assert ApiKeys().access_of({}) is Access.WRITE
    assert not ApiKeys()


def test_only_hashes_of_keys_are_stored() -> None:
    assert KEY not in repr(ApiKeys.from_keys([KEY]))


def test_short_keys_are_refused() -> None:
    with pytest.raises(InputError, match="at least 16 characters"):
        ApiKeys.from_keys(["short"])


def test_reads_hashes_from_a_file(tmp_path: Path) -> None:
    reads, writes, plain = (_sha256(key).hex() for key in (READ_KEY, KEY, "a-third-long-key"))
    text = f"# of the search team\n\nread:{reads}  # since May\nwrite:sha256:{writes}\n{plain}\n"
    keys = ApiKeys.from_file(_keys_file(tmp_path / "keys", text))
    assert keys.access_of({"x-api-key": READ_KEY}) is Access.READ
    assert keys.access_of({"x-api-key": KEY}) is Access.WRITE
    assert keys.access_of({"x-api-key": "a-third-long-key"}) is Access.READ


@pytest.mark.parametrize(
    ("mode", "accepted"),
    [(0o600, True), (0o440, True), (0o644, False), (0o602, False), (0o660, False)],
)
def test_a_file_that_other_users_can_read_or_change_is_refused(
    tmp_path: Path, mode: int, accepted: bool
) -> None:
    path = _keys_file(tmp_path / "keys", _sha256(KEY).hex(), mode=mode)
    if accepted:
        assert ApiKeys.from_file(path)
    else:
        with pytest.raises(InputError, match=rf"its mode is {mode:04o}. .* chmod 600"):
            ApiKeys.from_file(path)


def test_a_key_in_the_file_is_refused_and_not_repeated_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"keys:1: expected read: or write: and") as caught:
        ApiKeys.from_file(_keys_file(tmp_path / "keys", f"{KEY}\n"))
    assert KEY not in str(caught.value)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one"):
        ApiKeys.from_file(_keys_file(tmp_path / "keys", "# none yet\n"))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LocalHost.", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.4", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_requests_to_other_host_names_are_refused(server: Server) -> None:
    for name in ("evil.example", "127.0.0.1.evil.example:80", ""):
        response = server.client.get("/v1/documents", headers={"Host": name})
        assert response.status_code == 421, name
    for name in ("localhost", "localhost:9999", "127.0.0.1", "[::1]:8080"):
        response = server.client.get("/v1/documents", headers={"Host": name})
        assert response.status_code == 200, name


@pytest.mark.slow
def test_a_key_is_required_and_neither_keys_nor_texts_are_logged() -> None:
    options = ("--model", "bm25", "--workers", "1", "--host", "127.0.0.1")
    with Server(*options, ASKLINE_KEY=KEY) as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": KEY}):
            refused = server.post("/v1/rerank", RERANK_BODY, headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
            assert "detail" in refused.json()
        bearer = {"Authorization": f"Bearer {KEY}"}
        assert server.post("/v1/rerank", RERANK_BODY, headers=bearer).status_code == 200
        for path in ("/", "/health", "/ready", "/docs", "/openapi.json", "/page/style.css"):
            assert server.client.get(path).status_code == 200, path
        for path in ("/metrics", "/info", "/v1/documents"):
            assert server.client.get(path).status_code == 401, path
        assert server.client.get("/health", headers={"Host": "any.example"}).status_code == 200
        server.await_line('"candidates": 3')
        log = "\n".join(server.lines)
        assert KEY not in log
        assert "Emma" not in log


def test_a_read_key_may_not_change_documents(tmp_path: Path) -> None:
    lines = f"read:{_sha256(READ_KEY).hex()}\nwrite:{_sha256(KEY).hex()}\n"
    keys = _keys_file(tmp_path / "keys", lines)
    options = ("--model", "bm25", "--workers", "1", "--index", str(tmp_path / "index"))
    with Server(*options, "--keys", str(keys)) as server:
        reads, writes = {"X-API-Key": READ_KEY}, {"api-key": KEY}
        added = {"documents": [{"id": "emma", "text": "Jane Austen wrote Emma."}]}
        refused = server.post("/v1/documents", added, headers=reads)
        assert refused.status_code == 403
        assert "needs a write key" in refused.json()["message"]
        assert server.post("/v1/documents", added, headers=writes).status_code == 200
        assert server.client.delete("/v1/documents/emma", headers=reads).status_code == 403
        assert server.client.get("/v1/documents/emma", headers=reads).status_code == 200
        assert server.post("/v1/rerank", RERANK_BODY, headers=reads).status_code == 200
        assert server.post("/v1/ask", {"question": "Emma?"}, headers=reads).status_code == 200
        assert server.client.delete("/v1/documents/emma", headers=writes).status_code == 200
        assert server.client.delete("/v1/documents/emma").status_code == 401


def test_http_1_0_without_a_host_is_accepted(server: Server) -> None:
    where = urlsplit(server.base)
    with socket.create_connection((where.hostname, where.port or 80), timeout=10) as line:
        line.sendall(b"GET /v1/documents HTTP/1.0\r\n\r\n")
        answer = b""
        while part := line.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
