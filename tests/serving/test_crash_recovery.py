"""SIGKILL while documents are added: acknowledged documents are not lost."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import httpx
import pytest

from askline.corpus import Corpus

from .server_process import Server, eventually

pytestmark = pytest.mark.slow

ROUNDS = 3


def _add(server: Server, turn: int, acknowledged: list[str]) -> None:
    """Add documents, one request after another, until the server is gone."""
    with httpx.Client(base_url=server.base, timeout=30) as client:
        number = 0
        while True:
            batch = [
                {"id": f"{turn}/{number}/{each}", "text": f"Comet {number} came in {each}. " * 20}
                for each in range(3)
            ]
            try:
                response = client.post("/v1/documents", json={"documents": batch})
            except httpx.TransportError:
                return
            if response.status_code == 200:
                acknowledged += [document["id"] for document in response.json()["documents"]]
            number += 1


def test_acknowledged_documents_survive_a_kill(tmp_path: Path) -> None:
    generator = random.Random(3)
    folder = tmp_path / "index"
    acknowledged: list[str] = []
    for turn in range(ROUNDS):
        options = ("--index", str(folder), "--model", "bm25", "--workers", "2")
        with Server(*options) as server:
            before = len(acknowledged)
            adding = threading.Thread(target=_add, args=(server, turn, acknowledged))
            adding.start()
            for _ in eventually(30):
                if len(acknowledged) >= before + 9:
                    break
            adding.join(generator.random() / 10)  # the next request is at a random point
            server.kill()
            adding.join(30)
    with Server("--index", str(folder), "--model", "bm25", "--workers", "1") as server:
        listed: set[str] = set()
        after = ""
        while True:
            params: dict[str, str | int] = {"after": after, "limit": 1_000}
            page = server.client.get("/v1/documents", params=params).json()
            listed |= {document["id"] for document in page["documents"]}
            if page["next"] is None:
                break
            after = page["next"]
        assert set(acknowledged) <= listed
        answered = server.post("/v1/ask", {"question": "Which comet came?"}).json()
        assert answered["answers"]
    with Corpus.open(folder, ranker=None) as corpus:
        assert corpus.status().searchable
