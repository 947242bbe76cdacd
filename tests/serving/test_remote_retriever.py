"""The service with a search server in place of an index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from ..corpus.connectors.engine import Engine
from .server_process import Server

BOOKS = {
    "17": {"title": "Emma", "body": "It sold well. Jane Austen wrote Emma in 1815. It is long."},
    "18": {"title": "Walden", "body": "Thoreau wrote Walden by a pond."},
}
COMMAND = [sys.executable, "-c", "from askline.cli import main; main()", "serve", "--port", "0"]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(indexes={"books": BOOKS}) as engine:
        yield engine


@pytest.fixture(scope="module")
def served(engine: Engine) -> Iterator[Server]:
    url = f"opensearch://reader:a%20secret@127.0.0.1:{engine.port}/books?text=body&timeout=5"
    with Server("--model", "bm25", "--workers", "1", ASKLINE_RETRIEVER=url) as running:
        yield running


@pytest.mark.slow
def test_answers_have_the_ids_and_offsets_of_the_other_server(served: Server) -> None:
    found = served.post("/v1/ask", {"question": "Who wrote Emma?", "explain": True}).json()
    best = found["answers"][0]
    source = best["source"]
    assert (source["document"], source["title"]) == ("17", "Emma")
    assert BOOKS["17"]["body"][source["start"] : source["end"]] == best["text"]
    assert (best["before"], best["after"]) == ("It sold well.", "It is long.")
    assert found["stages"][0]["ranker"] == "opensearch/books % 100"
    assert [each["stage"] for each in found["candidates"][0]["stage_scores"]] == [0, 1]


@pytest.mark.slow
def test_documents_cannot_be_managed_through_the_service(served: Server) -> None:
    info = served.client.get("/info").json()
    assert (info["has_index"], info["has_documents"]) == (True, False)
    listed = served.client.get("/v1/documents")
    assert listed.status_code == 404
    assert listed.json()["message"].startswith("The texts are in opensearch/books")
    added = served.post("/v1/documents", {"documents": [{"id": "a", "text": "b"}]})
    assert added.status_code == 404


def test_a_failing_server_gives_503_and_may_recover(served: Server, engine: Engine) -> None:
    engine.failure = (500, {"error": {"type": "broken", "reason": "broken"}, "status": 500})
    try:
        failed = served.post("/v1/ask", {"question": "Who wrote Emma?"})
    finally:
        engine.failure = None
    assert failed.status_code == 503
    assert failed.headers["retry-after"] == "1"
    assert "opensearch://127.0.0.1" in failed.json()["message"]
    assert "secret" not in failed.text + "".join(served.lines)
    assert served.post("/v1/ask", {"question": "Who wrote Emma?"}).status_code == 200


@pytest.mark.slow
def test_a_cancelled_question_does_not_affect_the_next(served: Server, engine: Engine) -> None:
    before = served.metric("askline_cancelled_jobs_total")
    engine.wait = 1.0
    try:
        with pytest.raises(httpx.ReadTimeout):
            served.post("/v1/ask", {"question": "Who wrote Walden?"}, timeout=0.3)
    finally:
        engine.wait = 0.0
    found = served.post("/v1/ask", {"question": "Who wrote Emma?"}).json()
    assert found["answers"][0]["source"]["document"] == "17"
    assert served.metric("askline_cancelled_jobs_total") == before + 1


def test_the_url_is_not_an_argument_of_the_worker_process(served: Server) -> None:
    (worker,) = served.workers()
    with open(f"/proc/{worker}/cmdline") as arguments:
        assert "secret" not in arguments.read()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--retriever", "opensearch://127.0.0.1:1/books"], 1, "cannot be reached"),
        (["--retriever", "mongodb://127.0.0.1/books"], 2, "No kind of server 'mongodb'"),
        (["--retriever", "opensearch://h/i", "--index", "d"], 2, "an index or a retriever"),
    ],
    ids=["unreachable", "kind", "both"],
)
def test_unusable_servers_are_reported_at_start(
    options: list[str], code: int, message: str
) -> None:
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
