"""
What requests gain that are ranked together: processor time a request, eight at a time.

    python -m research.benchmarks.service_batches

One core, the default ranker, best of two rounds; half a minute. Writes
research/results/service_batches.json.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial

from askline import load
from askline.rankers.pipeline import Pipeline

from . import report
from .service_load import bodies

TOGETHER = 8
ROUNDS = {1: 6, 3: 4, 5: 3, 10: 2, 20: 2, 100: 1}
"""Of each number of candidates, so that each takes about as long."""


def main() -> None:
    """Measure and save."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ranker = load()
    assert isinstance(ranker, Pipeline)
    rows = []
    for candidates, rounds in ROUNDS.items():
        found = [(str(body["query"]), list(body["documents"])) for body in bodies(candidates)]
        asked = (found * 2)[:TOGETHER]
        ranker.trace_many(asked)
        row = {
            "candidates": candidates,
            "ms one by one": _each(partial(_apart, ranker, asked), rounds),
            "ms together": _each(partial(ranker.trace_many, asked), rounds),
        }
        print(row, flush=True)
        rows.append(row)
    figures = {"ranker": str(ranker), "requests at a time": TOGETHER, "rows": rows}
    print(report.save("service_batches", figures, "onnxruntime"))


def _apart(ranker: Pipeline, asked: Sequence[tuple[str, Sequence[str]]]) -> None:
    for question, candidates in asked:
        ranker.trace(question, candidates)


def _each(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of processor time a request."""
    taken = []
    for _ in range(2):
        start = time.process_time()
        for _ in range(rounds):
            work()
        taken.append(time.process_time() - start)
    return round(1000 * min(taken) / rounds / TOGETHER, 1)


if __name__ == "__main__":
    main()
