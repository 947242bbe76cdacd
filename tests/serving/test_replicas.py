"""Two replicas over a shared store behind haproxy: one killed, one stopped, nothing lost."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from ..postgres_server import find_programs
from .replicas import DRAIN_SECONDS, HAPROXY, Load, Replicas, run_kills
from .server_process import Server

pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow


@pytest.mark.skipif(HAPROXY is None, reason="no proxy: `make proxy` installs Debian's haproxy")
@pytest.mark.skipif(find_programs() is None, reason="needs a PostgreSQL server")
def test_a_killed_and_a_stopped_replica_lose_no_request() -> None:
    with Replicas() as replicas:
        with Load(replicas.base, clients=4) as load:
            figures = run_kills(replicas, load, pause=1.5)
        assert (load.outcomes["lost"], load.outcomes["wrong"]) == (0, 0), load.problems[:5]
        assert load.outcomes["right"] >= 50
        assert figures["right with one replica"] > 0
        assert figures["seconds to drain"] >= DRAIN_SECONDS
        served = [len(server.access()) for server in replicas.servers]
        assert min(served) > 0


def test_a_service_that_is_stopped_says_so_first_and_finishes_what_runs(plugins: Path) -> None:
    options = ("--model", "slow", "--workers", "1", "--drain-seconds", "1.5")
    with Server(*options, plugins=plugins) as server:
        body = {"query": "Which lamp?", "documents": ["The lamp burns.", "It rains."]}
        statuses: list[int] = []

        def rerank() -> None:
            statuses.append(server.post("/v1/rerank", body).status_code)

        asking = threading.Thread(target=rerank)
        asking.start()
        time.sleep(0.2)
        assert server.client.get("/ready").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        refused = server.client.get("/ready")
        assert refused.status_code == 503
        assert server.client.get("/health").status_code == 200
        assert server.post("/v1/rerank", body).status_code == 200  # it still serves
        asking.join(30)
        assert server.process.wait(30) == 0
        assert statuses == [200]
