"""API keys and the Host check: `ApiKeys` alone, and a server that uses them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from askline.errors import DataError, InputError
from askline.serving.auth import ApiKeys, is_loopback

from .conftest import RERANK_BODY
from .server_process import Server

KEY = "a-long-and-random-key"


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (f"Bearer {KEY}", True),
        (f"bearer {KEY}", True),
        (f"Bearer {KEY}x", False),
        (f"Basic {KEY}", False),
        (KEY, False),
        ("", False),
        (None, False),
    ],
)
def test_accepts_requests_with_a_known_key(header: str | None, accepted: bool) -> None:
    assert ApiKeys.from_keys([KEY, "another-long-and-random-key"]).accepts(header) is accepted


def test_without_keys_every_request_is_accepted() -> None:
    assert ApiKeys().accepts(None)
    assert not ApiKeys()


def test_only_hashes_of_keys_are_stored() -> None:
    assert KEY not in repr(ApiKeys.from_keys([KEY]))


def test_short_keys_are_refused() -> None:
    with pytest.raises(InputError, match="at least 16 characters"):
        ApiKeys.from_keys(["short"])


def test_reads_hashes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    path.write_text(f"# of the search team\n\nsha256:{digest}  # since May\n")
    assert ApiKeys.from_file(path).accepts(f"Bearer {KEY}")


def test_a_key_in_the_file_is_refused_and_not_repeated_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"{KEY}\n")
    with pytest.raises(DataError, match=r"keys:1: expected a SHA-256") as caught:
        ApiKeys.from_file(path)
    assert KEY not in str(caught.value)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# none yet\n")
    with pytest.raises(InputError, match="at least one"):
        ApiKeys.from_file(tmp_path / "keys")


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
