"""The configurations of docs/guides/proxy.md, run by the real proxies over two instances."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from .server_process import ROOT, Server

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "guides" / "proxy.md").read_text("utf-8")
KEY = "a key of more than sixteen letters"
BODY = {"query": "Who wrote Emma?", "documents": ["It sold well.", "Jane Austen wrote Emma."]}


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None or shutil.which("openssl") is None:
        pytest.skip(f"{name} or openssl is not installed")
    return found


def _block(language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def _replaced(text: str, *pairs: tuple[str, str]) -> str:
    """The block with the addresses and files of the test; each must be in it."""
    for shown, real in pairs:
        assert shown in text, shown
        text = text.replace(shown, real)
    return text


def _certificate(folder: Path) -> tuple[Path, Path]:
    key, certificate = folder / "search.key", folder / "search.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=search.example.org"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return certificate, key


def _nginx(folder: Path, port: int, upstreams: list[str]) -> list[str]:
    certificate, key = _certificate(folder)
    block = _replaced(
        _block("nginx"),
        ("127.0.0.1:8080", upstreams[0]),
        ("127.0.0.1:8081", upstreams[1]),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("/etc/ssl/search.pem", str(certificate)),
        ("/etc/ssl/search.key", str(key)),
    )
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{block}}}\n"
    )
    return [_program("nginx"), "-p", str(folder), "-c", str(config)]


def _haproxy(folder: Path, port: int, upstreams: list[str]) -> list[str]:
    certificate, key = _certificate(folder)
    certificate.write_text(certificate.read_text() + key.read_text())  # it wants both in one file
    block = _replaced(
        _block("haproxy"),
        ("127.0.0.1:8080", upstreams[0]),
        ("127.0.0.1:8081", upstreams[1]),
        ("bind :443", f"bind 127.0.0.1:{port}"),
        ("/etc/ssl/search.pem", str(certificate)),
    )
    config = folder / "haproxy.cfg"
    config.write_text(block)
    return [_program("haproxy"), "-f", str(config)]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def _running(command: list[str], client: httpx.Client) -> Iterator[None]:
    """The proxy, once it passes requests on."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            assert process.poll() is None, process.stderr and process.stderr.read()
            try:
                if client.get("/ready").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.communicate(timeout=10)


@pytest.mark.parametrize("configure", [_nginx, _haproxy], ids=["nginx", "haproxy"])
def test_requests_survive_a_killed_instance(
    configure: Callable[[Path, int, list[str]], list[str]], tmp_path: Path
) -> None:
    options = ("--key", KEY, "--model", "bm25", "--workers", "1")
    port = _free_port()
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(*options)) for _ in range(2)]
        command = configure(tmp_path, port, [urlsplit(server.base).netloc for server in servers])
        client = stack.enter_context(
            httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=False, timeout=40)
        )
        stack.enter_context(_running(command, client))

        def rerank(key: str = KEY) -> httpx.Response:
            return client.post("/v1/rerank", json=BODY, headers={"X-API-Key": key})

        assert rerank("another key of sixteen letters").status_code == 401
        for _ in range(6):
            assert rerank().json()["results"][0]["index"] == 1
        assert all(server.access() for server in servers), "one instance got no request"
        servers[0].kill()
        for _ in range(12):
            response = rerank()
            assert response.status_code == 200, response.text
            assert response.json()["results"][0]["index"] == 1
