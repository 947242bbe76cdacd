from __future__ import annotations

import pytest

from .conftest import RERANK_BODY
from .server_process import Server

pytestmark = pytest.mark.slow


def test_questions_are_logged_only_with_log_text() -> None:
    with Server("--model", "bm25", "--workers", "1", "--log-text") as server:
        server.post("/v1/rerank", RERANK_BODY)
        server.await_line('"question": "Who wrote Emma[?]"')
        record = next(line for line in server.access() if line["route"] == "/v1/rerank")
        assert record["status"] == 200
        assert record["candidates"] == 3
        assert {"time", "client", "method", "ms", "bytes", "queue_ms", "work_ms", "task"} <= set(
            record
        )
