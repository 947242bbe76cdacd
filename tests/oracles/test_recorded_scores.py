"""Shipped weights and rankings stay as they were recorded, bit for bit on the same arithmetic."""

from __future__ import annotations

import json
import math

import pytest

from .recorded import RECORD, Row, arithmetic, everything

CLOSE = 2e-4  # on another processor or library, where the last bits of a float may differ


@pytest.fixture(scope="module")
def now() -> dict[str, list[Row]]:
    return everything()


@pytest.mark.slow
def test_rankings_are_as_recorded(now: dict[str, list[Row]]) -> None:
    record = json.loads(RECORD.read_text("utf-8"))
    assert now.keys() == record["rows"].keys()
    if arithmetic() == record["arithmetic"]:
        different = [name for name, rows in record["rows"].items() if now[name] != rows]
    else:
        different = [name for name, rows in record["rows"].items() if not _close(now[name], rows)]
    assert not different


def _close(found: list[Row], recorded: list[Row]) -> bool:
    """Every candidate has its recorded numbers, nearly; candidates that are level may swap."""
    if len(found) != len(recorded):
        return False
    return all(
        one == other if isinstance(other, int) or "0x" not in other else _near(str(one), other)
        for row, wanted in zip(sorted(found, key=_key), sorted(recorded, key=_key), strict=True)
        for one, other in zip(row, wanted, strict=True)
    )


def _key(row: Row) -> list[str]:
    return [str(cell) for cell in row if "0x" not in str(cell)]


def _near(one: str, other: str) -> bool:
    return math.isclose(float.fromhex(one), float.fromhex(other), rel_tol=CLOSE, abs_tol=CLOSE)
