"""Concurrent requests, deadlines, disconnecting clients, crashing workers, and shutdown."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from askline.serving.messages import MAX_SHARED_CANDIDATES

from .conftest import TEXTS
from .server_process import Server, eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(32) as pool:
        yield pool


def _post(server: Server, milliseconds: int, **options: Any) -> httpx.Response:
    """Post a question that takes the slow ranker the given time."""
    body = {"query": f"Who wrote Emma {milliseconds}", "documents": TEXTS, **options}
    return httpx.post(f"{server.base}/v1/rerank", json=body, timeout=30)


def _wait_until_idle(server: Server) -> None:
    """Wait until the jobs of earlier tests have ended."""
    for _ in eventually():
        if _post(server, 0).status_code == 200 and server.metric("askline_queued_jobs") == 0:
            return


def _wait_for_jobs(server: Server, *, running: int, queued: int = 0) -> None:
    """Wait until the given numbers of jobs are with a worker and in the queue."""
    for _ in eventually():
        if (server.metric("askline_running_jobs"), server.metric("askline_queued_jobs")) == (
            running,
            queued,
        ):
            return


def test_a_full_queue_gives_429_and_nothing_else_fails(
    slow_server: Server, threads: ThreadPoolExecutor
) -> None:
    _wait_until_idle(slow_server)
    answers = [
        each.result() for each in [threads.submit(_post, slow_server, 150) for _ in range(16)]
    ]
    codes = [answer.status_code for answer in answers]
    assert set(codes) == {200, 429}
    assert codes.count(200) >= 3  # one running, two in the queue
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["message"].startswith("The queue is full: 2 requests are waiting.")
    assert slow_server.metric("askline_rejected_requests_total") >= codes.count(429)


def test_tei_clients_get_overloaded(slow_server: Server, threads: ThreadPoolExecutor) -> None:
    _wait_until_idle(slow_server)
    busy = [threads.submit(_post, slow_server, 1_000) for _ in range(3)]
    _wait_for_jobs(slow_server, running=1, queued=2)
    body = {"query": "a", "texts": TEXTS}
    refused = httpx.post(f"{slow_server.base}/rerank", json=body, timeout=30)
    assert refused.status_code == 429
    assert refused.json()["error_type"] == "Overloaded"
    for each in busy:
        each.result()


def test_health_answers_at_once_under_load(
    slow_server: Server, threads: ThreadPoolExecutor
) -> None:
    _wait_until_idle(slow_server)
    busy = [threads.submit(_post, slow_server, 1_000) for _ in range(3)]
    _wait_for_jobs(slow_server, running=1, queued=2)
    waits = []
    while not any(each.done() for each in busy):
        start = time.perf_counter()
        assert slow_server.client.get("/health").status_code == 200
        waits.append(time.perf_counter() - start)
    assert sorted(waits)[len(waits) // 2] < 0.2
    assert len(waits) >= 3
    for each in busy:
        each.result()


def test_a_ranker_that_ignores_its_deadline_is_cancelled(slow_server: Server) -> None:
    _wait_until_idle(slow_server)
    start = time.perf_counter()
    late = _post(slow_server, 5_000, deadline_ms=200)
    assert late.status_code == 504
    assert "deadline passed" in late.json()["detail"]
    assert time.perf_counter() - start < 4
    start = time.perf_counter()
    assert _post(slow_server, 0).status_code == 200  # the worker is free again
    assert time.perf_counter() - start < 4


def test_the_shorter_of_header_and_body_deadline_counts(slow_server: Server) -> None:
    _wait_until_idle(slow_server)
    body = {"query": "Emma 5000", "documents": TEXTS, "deadline_ms": 60_000}
    start = time.perf_counter()
    late = slow_server.post("/v1/rerank", body, headers={"X-Deadline-Ms": "100"})
    assert late.status_code == 504
    assert time.perf_counter() - start < 4


def test_a_deadline_can_pass_in_the_queue(slow_server: Server, threads: ThreadPoolExecutor) -> None:
    _wait_until_idle(slow_server)
    busy = threads.submit(_post, slow_server, 1_500)
    _wait_for_jobs(slow_server, running=1)
    start = time.perf_counter()
    assert _post(slow_server, 0, deadline_ms=50).status_code == 504
    assert time.perf_counter() - start < 0.6  # without waiting for the worker
    assert busy.result().status_code == 200


def test_a_long_deadline_skips_nothing(server: Server) -> None:
    body = {"question": "lamp", "documents": TEXTS, "split": False, "ranker": "rr % 2 >> bm25"}
    found = server.post("/v1/ask", {**body, "deadline_ms": 3_600_000}).json()
    assert found["skipped"] == 0


def _send(server: Server, query: str, document: str = "a") -> socket.socket:
    """Send a request on a connection of its own, without waiting for the response."""
    where = urlsplit(server.base)
    body = json.dumps({"query": query, "documents": [document]}).encode()
    head = (
        f"POST /v1/rerank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    line = socket.create_connection((where.hostname, where.port or 80))
    line.sendall(head.encode() + body)
    return line


def test_a_job_is_cancelled_when_the_client_disconnects(slow_server: Server) -> None:
    _wait_until_idle(slow_server)
    before = slow_server.metric("askline_cancelled_jobs_total")
    start = time.perf_counter()
    lines = [_send(slow_server, "Emma 20000") for _ in range(3)]
    _wait_for_jobs(slow_server, running=1, queued=2)
    for line in lines:
        line.close()
    for _ in eventually():
        if slow_server.metric("askline_cancelled_jobs_total") == before + 3:
            break
    assert _post(slow_server, 0).status_code == 200
    assert time.perf_counter() - start < 15
    slow_server.await_line('"status": 499')


def test_a_worker_is_free_within_a_second_of_a_disconnect() -> None:
    """60,000 dots are 60,000 tokens in one candidate."""
    with Server("--model", "cascade", "--workers", "1") as server:
        body = {"query": "Who?", "documents": TEXTS}
        assert server.post("/v1/rerank", body).status_code == 200
        for _ in range(3):
            line = _send(server, "Who?", "." * 60_000)
            _wait_for_jobs(server, running=1)
            time.sleep(0.05)
            assert server.metric("askline_running_jobs") == 1
            start = time.perf_counter()
            line.close()
            assert server.post("/v1/rerank", body).status_code == 200
            assert time.perf_counter() - start < 1 + 1  # the request itself, on a busy machine
        assert server.metric("askline_worker_restarts_total") == 0


@pytest.mark.parametrize("question", ["sleep", "hold"])
def test_a_worker_that_cannot_be_interrupted_is_replaced(plugins: Path, question: str) -> None:
    options = ("--model", "wedged", "--workers", "1", "--max-seconds", "1")
    with Server(*options, plugins=plugins) as server:
        start = time.perf_counter()
        late = server.post("/v1/rerank", {"query": question, "documents": TEXTS})
        assert late.status_code == 504
        assert "longer than 1 s, which is the limit of this service" in late.json()["message"]
        assert time.perf_counter() - start < 5
        for _ in eventually(15):
            if server.post("/v1/rerank", {"query": "a", "documents": TEXTS}).status_code == 200:
                break
        assert server.metric("askline_worker_restarts_total") == 1


def test_a_stopped_worker_is_replaced_within_ten_seconds(
    plugins: Path, threads: ThreadPoolExecutor
) -> None:
    with Server("--model", "slow", "--workers", "1", plugins=plugins) as server:
        assert server.client.get("/ready").status_code == 200
        (worker,) = server.workers()
        running = threads.submit(_post, server, 1_000)
        _wait_for_jobs(server, running=1)
        os.kill(worker, signal.SIGSTOP)
        start = time.perf_counter()
        for _ in eventually():
            if server.client.get("/ready").status_code == 503:
                break
        assert running.result().status_code == 200  # tried again by the new worker
        assert server.client.get("/ready").status_code == 200
        assert time.perf_counter() - start < 10
        assert server.workers() != [worker]


def test_a_worker_that_answers_again_is_kept_and_its_replacement_ended(plugins: Path) -> None:
    with Server("--model", "slow", "--workers", "1", plugins=plugins) as server:
        (worker,) = server.workers()
        os.kill(worker, signal.SIGSTOP)
        for _ in eventually():
            if len(server.workers()) == 2:  # before the stopped one is ended
                break
        assert worker in server.workers()
        os.kill(worker, signal.SIGCONT)
        for _ in eventually():
            if server.workers() == [worker]:
                break
        assert _post(server, 0).status_code == 200
        assert server.workers() == [worker]
        assert server.metric("askline_worker_restarts_total") == 0


def test_a_request_has_a_time_limit(plugins: Path, threads: ThreadPoolExecutor) -> None:
    options = ("--model", "slow", "--workers", "1", "--max-seconds", "0.5")
    with Server(*options, plugins=plugins) as server:
        assert server.client.get("/info").json()["limits"]["seconds"] == 0.5
        start = time.perf_counter()
        running = threads.submit(_post, server, 10_000)
        _wait_for_jobs(server, running=1)
        waiting = _post(server, 10_000)
        assert running.result().status_code == 504
        assert waiting.status_code in {503, 504}
        assert time.perf_counter() - start < 5
        late = _post(server, 10_000, deadline_ms=60_000)
        assert late.status_code == 504
        assert _post(server, 0).status_code == 200
        assert server.metric("askline_worker_restarts_total") == 0


def test_a_killed_worker_is_replaced_and_its_job_tried_again(
    slow_server: Server, threads: ThreadPoolExecutor
) -> None:
    _wait_until_idle(slow_server)
    (worker,) = slow_server.workers()
    running = threads.submit(_post, slow_server, 1_000)
    _wait_for_jobs(slow_server, running=1)
    os.kill(worker, signal.SIGKILL)
    assert running.result().status_code == 200
    assert slow_server.workers() != [worker]
    assert slow_server.metric("askline_worker_restarts_total") >= 1


def test_a_job_that_kills_workers_is_given_up(plugins: Path, tmp_path: Path) -> None:
    with Server("--model", "crashing", "--workers", "1", plugins=plugins) as server:
        once = {"query": f"die once {tmp_path / 'mark'}", "documents": TEXTS}
        assert server.post("/v1/rerank", once).status_code == 200
        lost = server.post("/v1/rerank", {"query": "die", "documents": TEXTS})
        assert lost.status_code == 503
        assert lost.headers["retry-after"] == "1"
        assert server.post("/v1/rerank", {"query": "live", "documents": TEXTS}).status_code == 200
        assert server.metric("askline_worker_restarts_total") == 3


@pytest.mark.parametrize("options", [{}, {"deadline_ms": 4_000}], ids=["no time", "time"])
def test_short_requests_do_not_wait_for_a_slow_one_while_a_worker_is_idle(
    plugins: Path, threads: ThreadPoolExecutor, options: dict[str, Any]
) -> None:
    with Server("--model", "batching", "--workers", "2", plugins=plugins) as server:
        for _ in eventually():
            if server.metric("askline_workers") == 2:
                break
        pairs = {"text_1": "Emma 5000", "text_2": TEXTS}
        slow = threads.submit(server.post, "/score", pairs)
        _wait_for_jobs(server, running=1)
        short = [threads.submit(_post, server, 0, **options) for _ in range(10)]
        assert [each.result().status_code for each in short] == [200] * 10
        assert not slow.done()
        assert slow.result().status_code == 200


def test_all_requests_that_wait_for_a_slow_one_count_as_waiting(
    plugins: Path, threads: ThreadPoolExecutor
) -> None:
    options = ("--model", "batching", "--workers", "1", "--queue", "4")
    with Server(*options, plugins=plugins) as server:
        url = f"{server.base}/score"
        pairs = {"text_1": "Emma 1000", "text_2": TEXTS}
        busy = [threads.submit(httpx.post, url, json=pairs, timeout=30) for _ in range(5)]
        _wait_for_jobs(server, running=1, queued=4)
        assert server.post("/score", pairs).status_code == 429
        assert [each.result().status_code for each in busy] == [200] * 5


def test_concurrent_requests_share_a_batch(plugins: Path, threads: ThreadPoolExecutor) -> None:
    with Server("--model", "batching", "--workers", "1", plugins=plugins) as server:
        body = {"query": "Who wrote Emma?", "documents": TEXTS}

        def post(number: int) -> list[int]:
            texts = [*TEXTS, f"Emma {number}"]
            found = httpx.post(f"{server.base}/v1/rerank", json={**body, "documents": texts})
            return [item["index"] for item in found.json()["results"]]

        alone = post(0)
        together = list(threads.map(post, range(16)))
        assert together == [alone] * 16
        batches = server.metric("askline_batch_size_count")
        assert server.metric("askline_batch_size_sum") > batches  # observed once per request
        wrong = {**body, "documents": [1]}
        assert server.post("/v1/rerank", wrong).status_code == 422
        bodies = [{**body, "query": "break"} if at % 2 else body for at in range(12)]
        url = f"{server.base}/v1/rerank"
        codes = threads.map(lambda each: httpx.post(url, json=each).status_code, bodies)
        assert list(codes) == [200] * 12  # each is ranked alone after the batch has failed
        server.await_line("A batch of [0-9]+ requests failed")
        server.await_line("ZeroDivisionError")
        assert server.metric("askline_worker_restarts_total") == 0


def test_the_shipped_pipeline_shares_batches_with_equal_results(
    threads: ThreadPoolExecutor,
) -> None:
    texts = [*TEXTS, "Emma was read in every house.", "Austen began it in 1814."]

    def post(server: Server, number: int) -> dict[int, float]:
        body = {
            "model": "rerank-v3.5",
            "query": "Who wrote Emma?",
            "documents": texts[number % 3 :],
        }
        found = httpx.post(f"{server.base}/v1/rerank", json=body, timeout=60).json()
        return {item["index"]: item["relevance_score"] for item in found["results"]}

    with Server("--model", "cosinet % 4 >> cascade", "--workers", "1") as server:
        alone = [post(server, number) for number in range(3)]
        together = list(threads.map(lambda number: post(server, number), range(18)))
        for number, found in enumerate(together):
            assert found == pytest.approx(alone[number % 3], abs=1e-4)
        batches = server.metric("askline_batch_size_count")
        assert server.metric("askline_batch_size_sum") > batches


@pytest.mark.parametrize(
    "alone",
    [{"deadline_ms": 60_000}, {"documents": ["Emma."] * (MAX_SHARED_CANDIDATES + 1)}],
    ids=["time", "many"],
)
def test_requests_with_a_deadline_or_many_candidates_do_not_share(
    plugins: Path, threads: ThreadPoolExecutor, alone: dict[str, Any]
) -> None:
    with Server("--model", "batching", "--workers", "1", plugins=plugins) as server:
        body = {"query": "Who wrote Emma?", "documents": TEXTS, **alone}
        url = f"{server.base}/v1/rerank"
        codes = threads.map(lambda _: httpx.post(url, json=body).status_code, range(12))
        assert set(codes) == {200}
        count = server.metric("askline_batch_size_count")
        assert server.metric("askline_batch_size_sum") == count


def test_shutdown_finishes_running_requests(plugins: Path, threads: ThreadPoolExecutor) -> None:
    with Server("--model", "slow", "--workers", "1", plugins=plugins) as server:
        running: list[Future[httpx.Response]] = [
            threads.submit(_post, server, 1_000) for _ in range(3)
        ]
        _wait_for_jobs(server, running=1, queued=2)
        workers = server.workers()
        assert server.stop() == 0
        assert [each.result().status_code for each in running] == [200] * 3
        for _ in eventually():
            if not any(Path(f"/proc/{pid}").exists() for pid in workers):
                break


def test_workers_end_when_the_service_is_killed(plugins: Path) -> None:
    with Server("--model", "slow", "--workers", "2", plugins=plugins) as server:
        for _ in eventually():
            if len(server.workers()) == 2:
                break
        workers = server.workers()
        server.kill()
        for _ in eventually():
            if not any(Path(f"/proc/{pid}").exists() for pid in workers):
                break


def test_shutdown_answers_the_requests_that_it_has_no_time_for(
    plugins: Path, threads: ThreadPoolExecutor
) -> None:
    before = "import askline.serving.server as server; server._SHUTDOWN_SECONDS = 1"
    options = ("--model", "slow", "--workers", "1")
    with Server(*options, plugins=plugins, before=before) as server:
        cohere = [threads.submit(_post, server, 20_000) for _ in range(4)]
        body = {"query": "Emma 20000", "texts": TEXTS}
        tei = threads.submit(httpx.post, f"{server.base}/rerank", json=body, timeout=30)
        _wait_for_jobs(server, running=1, queued=4)
        start = time.perf_counter()
        assert server.stop() == 0
        assert time.perf_counter() - start < 10
        for each in cohere:
            answer = each.result()
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "5"
            assert answer.json()["message"] == "The service is shutting down. Try again."
        assert tei.result().json()["error_type"] == "Unhealthy"
