"""A real server on loopback, started as users start it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import httpx

from .misbehaving_rankers import ENTRY_POINTS

ROOT = Path(__file__).parent.parent.parent


class Server:
    """`askline serve` as a process. Use it as a context manager, which stops it at the end."""

    def __init__(
        self,
        *options: str,
        plugins: Path | None = None,
        before: str = "pass",
        **settings: str,
    ) -> None:
        """`before` is a Python statement that the process executes first."""
        paths = [str(ROOT), *([str(plugins)] if plugins else [])]
        environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONWARNINGS": "error",
            **settings,
        }
        program = f"{before}; from askline.cli import main; main()"
        command = [sys.executable, "-c", program, "serve"]
        self.process = subprocess.Popen(
            [*command, "--port", "0", *options],
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.lines: list[str] = []
        self._seen = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.base = self.await_line(r"Listening on (\S+)")[1]
        self.client = httpx.Client(base_url=self.base, timeout=30)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._seen:
                self.lines.append(line.rstrip("\n"))
                self._seen.notify_all()
        with self._seen:
            self.lines.append("<end>")
            self._seen.notify_all()

    def await_line(self, pattern: str, *, seconds: float = 60) -> re.Match[str]:
        """Return the first line of the log that matches; wait for it if there is none yet."""
        found: list[re.Match[str]] = []

        def look() -> bool:
            found.extend(filter(None, (re.search(pattern, line) for line in self.lines)))
            return bool(found) or "<end>" in self.lines

        with self._seen:
            assert self._seen.wait_for(look, seconds), self.lines
        assert found, self.lines
        return found[0]

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        """Post JSON to a route."""
        return self.client.post(path, json=body, **options)

    def post_bytes(
        self, body: bytes, *, path: str = "/v1/rerank", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Post bytes that no client library would send; return the status and the JSON."""
        url = urlsplit(self.base)
        connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=30)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """Return the value of a metric without labels."""
        match = re.search(rf"^{name} (\S+)$", self.client.get("/metrics").text, re.MULTILINE)
        assert match, name
        return float(match[1])

    def access(self) -> list[dict[str, Any]]:
        """Return the lines of the access log so far."""
        return [json.loads(line) for line in list(self.lines) if line.startswith("{")]

    def workers(self) -> list[int]:
        """Return the process ids of the workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()
        self.process.wait(10)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.stop()
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()


def make_plugins(folder: Path) -> Path:
    """Make the misbehaving rankers loadable by name from a folder."""
    home = folder / "misbehaving_rankers-1.0.dist-info"
    home.mkdir(parents=True)
    (home / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: misbehaving-rankers\nVersion: 1.0\n"
    )
    (home / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def eventually(seconds: float = 10.0) -> Iterator[None]:
    """Repeat until a condition holds: `for _ in eventually(): if …: break`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.02)
    raise AssertionError("The condition did not hold in time.")
