from __future__ import annotations

import pytest

from research.benchmarks.shared_store_load import _is_kept, run_load

from ..postgres_server import find_programs

pytest.importorskip("psycopg")


@pytest.mark.slow
@pytest.mark.skipif(find_programs() is None, reason="needs a PostgreSQL server")
def test_kills_of_writers_and_of_the_server_lose_nothing_that_was_acknowledged() -> None:
    counts = run_load(12.0, writers=2, readers=2, writer_kills=3.0, server_kills=6.0)
    assert (counts["lost"], counts["mixed"], counts["damaged"]) == (0, 0, 0)
    assert counts["writers killed"] >= 1
    assert counts["servers killed"] >= 1
    assert counts["acknowledged"] >= 20
    assert counts["questions"] >= 5


@pytest.mark.parametrize(
    ("stored", "events", "kept"),
    [
        ("0x2", [("try", "0x1"), ("ack", "0x1"), ("try", "0x2"), ("ack", "0x2")], True),
        ("0x1", [("try", "0x1"), ("ack", "0x1"), ("try", "0x2"), ("ack", "0x2")], False),
        ("0x2", [("try", "0x1"), ("ack", "0x1"), ("try", "0x2")], True),
        ("0x1", [("try", "0x1"), ("ack", "0x1"), ("try", "0x2")], True),
        (None, [("try", "0x1"), ("ack", "0x1"), ("try", "0x2")], False),
        (None, [("try", "0x1"), ("ack", "0x1"), ("try", "removed0x2")], True),
        (None, [("try", "0x1")], True),
    ],
)
def test_what_may_be_stored_is_what_was_acknowledged_or_tried_later(
    stored: str | None, events: list[tuple[str, str]], kept: bool
) -> None:
    assert _is_kept(stored, events) is kept
