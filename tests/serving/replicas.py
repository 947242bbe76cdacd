"""
A shared store, two replicas of the service and a proxy on loopback, and load on them.

`Replicas` starts PostgreSQL, fills it, and starts `askline serve` twice behind haproxy. The tests
use it for some seconds; `python -m research.benchmarks.replicas` for a minute.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import httpx

from askline.corpus import Corpus

from ..postgres_server import PostgresServer
from .server_process import Server, eventually

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
HARBORS = [
    f"{first}{second}" for first in ("Ald", "Brin", "Cor", "Dun") for second in ("by", "ham")
]
DRAIN_SECONDS = 1.0

# A request that only reads may be sent to another replica if the first one did not respond. A
# request that writes is sent once: the client is told, and decides.
_CONFIG = """
global
    maxconn 1000
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 60s
    retries 5
    option redispatch 1
    option http-server-close
    option http-buffer-request
    retry-on conn-failure empty-response junk-response response-timeout 503
frontend service
    bind 127.0.0.1:{port}
    http-request disable-l7-retry if {{ path_beg /v1/documents }} !METH_GET
    default_backend replicas
backend replicas
    balance roundrobin
    option httpchk GET /ready
    http-check expect status 200
    default-server check inter 200ms fall 1 rise 1
{servers}
"""


class Replicas:
    """Use it as a context manager."""

    def __init__(self, model: str = "bm25") -> None:
        self._model = model
        self._resources = ExitStack()

    def __enter__(self) -> Replicas:
        try:
            self._start()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def _start(self) -> None:
        assert HAPROXY is not None
        postgres = self._resources.enter_context(PostgresServer())
        self.index = postgres.url()
        with Corpus.open(self.index, ranker=None) as corpus:
            corpus.add_texts(
                {
                    harbor: f"The lamp of {harbor} was first lit in {1700 + at}. It burned oil.\n\n"
                    f"A storm broke the tower of {harbor} in {1800 + at}."
                    for at, harbor in enumerate(HARBORS)
                }
            )
        self.servers = [self.start_replica(_free_port()) for _ in range(2)]
        folder = Path(self._resources.enter_context(tempfile.TemporaryDirectory()))
        port = _free_port()
        servers = "\n".join(
            f"    server replica{at} {server.base.removeprefix('http://')}"
            for at, server in enumerate(self.servers)
        )
        (folder / "haproxy.cfg").write_text(_CONFIG.format(port=port, servers=servers))
        proxy = subprocess.Popen([HAPROXY, "-db", "-q", "-f", str(folder / "haproxy.cfg")])
        self._resources.callback(proxy.wait, 10)
        self._resources.callback(proxy.kill)
        self.base = f"http://127.0.0.1:{port}"
        for _ in eventually(20):
            try:
                if httpx.get(f"{self.base}/ready").status_code == 200:
                    break
            except httpx.TransportError:
                continue

    def start_replica(self, port: int) -> Server:
        """Start a replica on a port, and wait until it listens."""
        server = Server(
            *("--index", self.index, "--model", self._model, "--workers", "1"),
            *("--port", str(port), "--drain-seconds", str(DRAIN_SECONDS)),
        )
        return self._resources.enter_context(server)

    def restart(self, number: int) -> None:
        """Start a replica again on its port."""
        port = int(self.servers[number].base.rpartition(":")[2])
        self.servers[number] = self.start_replica(port)


class Load:
    """Clients that ask the proxy until the block ends; every response is judged."""

    def __init__(self, base: str, clients: int) -> None:
        self._base = base
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(at,)) for at in range(clients)]
        self._lock = threading.Lock()
        self.outcomes: Counter[str] = Counter()
        self.problems: list[str] = []

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _ask(self, client: int) -> None:
        number = client
        with httpx.Client(base_url=self._base, timeout=60) as http:
            while not self._stop.is_set():
                at = number % len(HARBORS)
                number += 1
                question = f"When was the lamp of {HARBORS[at]} first lit?"
                outcome, problem = "lost", ""
                try:
                    response = http.post("/v1/ask", json={"question": question})
                    if response.status_code == 200:
                        best = response.json()["answers"][0]
                        right = best["source"]["document"] == HARBORS[at]
                        outcome = "right" if right and str(1700 + at) in best["text"] else "wrong"
                    problem = f"{response.status_code} {response.text[:300]}"
                except httpx.TransportError as error:
                    problem = repr(error)
                with self._lock:
                    self.outcomes[outcome] += 1
                    if outcome != "right":
                        self.problems.append(problem)


def run_kills(replicas: Replicas, load: Load, *, pause: float) -> dict[str, float]:
    """Kill one replica, start it again, and stop the other in order; returns the drain time."""
    time.sleep(pause)
    replicas.servers[0].kill()
    time.sleep(pause)
    before = load.outcomes["right"]
    replicas.restart(0)
    time.sleep(pause)
    other = replicas.servers[1]
    start = time.monotonic()
    other.process.send_signal(signal.SIGTERM)
    draining = other.client.get("/ready").status_code
    exit_code = other.process.wait(60)
    seconds = time.monotonic() - start
    time.sleep(pause)
    assert draining == 503, draining
    assert exit_code == 0, exit_code
    return {
        "right with one replica": load.outcomes["right"] - before,
        "seconds to drain": round(seconds, 2),
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
