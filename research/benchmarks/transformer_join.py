"""Rows of several calls of `research.benchmarks.transformers` as one record, and their means."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from .transformer_jobs import Row
from .transformer_plans import mean_map, padding_loss

__all__ = ["joined", "summary"]

_SAME = (
    *("start", "loss", "seed", "depth", "epochs", "hard", "share", "fold", "weights"),
    *("kind", "steps", "seconds allowed", "compared", "way"),
)
"""What tells a row from others of its kind. Where `epochs` and `loss` are lists they are what came
out of a training, which does not count."""
_ONCE = {"start": "general", "hard": "bm25"}
"""What rows of the first calls do not say, for there was no other yet."""
_CALL = ("environment", "device", "processes at once", "parts", "recipe", "adapt recipe")


def joined(paths: Sequence[Path]) -> dict[str, Any]:
    """
    The rows of all files, a later one's for an earlier one's; the environment is the last's.

    The first file may be one that was joined before.
    """
    rows: dict[str, dict[tuple[Any, ...], Row]] = {}
    calls: list[dict[str, Any]] = []
    for path in paths:
        found = json.loads(path.read_text("utf-8"))
        for name, own in found["rows"].items():
            kept = rows.setdefault(name, {})
            said = _ONCE if name != "transfer" else _ONCE | _compared(found["parts"])
            done = [{"call": len(calls) + 1} | said | row for row in own if "failed" not in row]
            kept.update({_key(row): row for row in done})
        calls += found.get("calls") or [{name: found[name] for name in _CALL}]
    merged = {name: list(own.values()) for name, own in rows.items()}
    return {**calls[-1], "calls": calls, **summary(merged), "rows": merged}


def _compared(parts: Sequence[str]) -> Row:
    """Runs that only compare negatives stand beside those of the same depth that were adapted."""
    return {"compared": True} if "negatives" in parts and "depths" not in parts else {}


def _key(row: Row) -> tuple[Any, ...]:
    values = (row.get(name) for name in _SAME)
    return tuple("…" if isinstance(value, list) else value for value in values)


def summary(rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Means over seeds, of all that has several."""
    adapted = {name: rows.get(name, []) for name in ("adapt_wikiqa", "adapt_trecqa")}
    singles = [row for row in rows.get("single", []) if "dev" in row]
    compared = [row for row in singles if row.get("depth") != "all"]
    return {
        "by loss": {name: _by_loss(own) for name, own in adapted.items()},
        "by depth": {name: _by_depth(own) for name, own in adapted.items()},
        "report head": _means([row for row in rows.get("report_head", []) if "dev" in row]),
        "hard negatives": {
            hard: {name: _mean([row["dev"][name] for row in own]) for name in own[0]["dev"]}
            | {"mean MAP of each seed": [_mean_map(row) for row in own]}
            | {"mean MAP": round(fmean(_mean_map(row) for row in own), 2), "seeds": len(own)}
            for hard, own in _groups(compared, "hard").items()
        },
        "plans": [
            {key: row[key] for key in ("hard", "share", "dev")}
            | {"mean MAP": _mean_map(row)}
            | {"P@1 lost by padding": round(padding_loss(row["dev"]), 2)}
            for row in sorted(rows.get("plan_on_dev", []), key=_plan)
        ],
        "ways, by cross-validation": {
            name: row[name]
            for row in rows.get("cross_choose", [])
            for name in ("questions", "ways", "chosen")
        },
        "adapted the chosen way": _means(rows.get("cross_adapt", [])),
        "students, mean dev MAP": {
            _student(row): row["dev"]["mean"]["MAP"]
            for row in rows.get("students_on_dev", [])
            if "dev" in row
        },
    }


def _plan(row: Row) -> tuple[str, float]:
    return row["hard"], -row["share"]


def _mean_map(row: Row) -> float:
    return round(mean_map(row["dev"]), 2)


def _student(row: Row) -> str:
    """The steps are not said where time alone was the limit."""
    steps = f", {row['steps']:.0f} steps" if "steps" in row else ""
    return f"{row['kind']}{steps}, {row['share']} of the way"


def _by_loss(rows: Sequence[Row]) -> dict[str, Row]:
    """From the general model; the loss with the best dev is chosen."""
    own = [row for row in rows if row.get("start") == "general"]
    means = {loss: _means(group) for loss, group in _groups(own, "loss").items()}
    best = max(means, key=lambda each: float(means[each]["dev"]["MAP"]), default="")
    return {loss: row | {"chosen": loss == best} for loss, row in means.items()}


def _by_depth(rows: Sequence[Row]) -> dict[str, Row]:
    own = [row for row in rows if "test" in row and row.get("start") != "general"]
    groups = sorted(_groups(own, "depth").items())
    return {str(depth): _means(group) for depth, group in groups}


def _means(rows: Sequence[Row]) -> Row:
    """Of dev and test measures, with the deviation of the test's."""
    if not rows:
        return {}
    found: Row = {part: _mean([row[part] for row in rows]) for part in ("dev", "test")}
    if len(rows) > 1:
        found["test ±"] = {
            name: round(stdev(row["test"][name] for row in rows), 2) for name in rows[0]["test"]
        }
    seconds = [row["seconds"] for row in rows if "seconds" in row]
    if seconds:
        found["seconds"] = round(fmean(seconds), 1)
    return found | {"seeds": len(rows)}


def _groups(rows: Sequence[Row], name: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: round(fmean(row[name] for row in rows), 2) for name in rows[0]}
