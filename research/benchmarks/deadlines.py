"""
Deadlines: how late answers come, and their quality.

    ASKLINE_DATA=DIR python -m research.benchmarks.deadlines [SPEC …]

WikiQA dev questions padded to 400 candidates, with deadlines of 1 ms to 1 s and without. After the
deadline, only the current batch of each thread and rankers that cannot be interrupted (a light
first stage) still run. Layers are loaded and the throughput is known before the first measurement.
With a first stage, P@1 is measured a second time while the cascade does not limit how many
candidates it starts. Writes research/results/deadlines.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import askline
from askline import data
from askline.evaluation import markdown_table
from askline.rankers.base import Pipeline
from askline.rankers.deadline import Deadline, Stop
from askline.rankers.requests import Request
from askline.types import Question

from . import common

PADDED = 400
DEADLINES = (1.0, 10.0, 50.0, 100.0, 200.0, 1_000.0, None)
SPECS = {"cascade": 30, "cosinet % 50 >> cascade": 126}
"""Specs with their number of questions."""
BLIND = (50.0, 100.0, 200.0)
Row = dict[str, Any]


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", nargs="*", default=list(SPECS))
    parser.add_argument("--questions", type=int, default=max(SPECS.values()))
    options = parser.parse_args()
    padded = data.pad(data.load_dataset("wikiqa:dev", root=common.data_root()), PADDED)
    questions = data.filter_questions(padded, "answerable").questions[: options.questions]
    figures = {spec: measured(spec, questions[: SPECS.get(spec)]) for spec in options.specs}
    for spec, rows in figures.items():
        print(f"\n{spec}, lists of {PADDED} candidates\n{_shown(rows)}")
    print(f"Wrote {common.save('deadlines', figures, 'onnxruntime')}.")


def measured(spec: str, questions: Sequence[Question]) -> list[Row]:
    """One row for each deadline."""
    ranker = askline.load(spec)
    ranker.warm_up()
    ranker.trace(questions[0].text, questions[0].texts[:20])  # loads numpy and other modules
    return [_by(deadline, ranker, questions) for deadline in DEADLINES]


def _by(deadline: float | None, ranker: askline.Ranker, questions: Sequence[Question]) -> Row:
    row = {"deadline ms": deadline, **_row(ranker, questions, lambda: Deadline.after(deadline))}
    if deadline is not None:
        row["late ms p95"] = round(max(0.0, row["ms p95"] - deadline), 1)
        if deadline in BLIND and isinstance(ranker, Pipeline):
            row["P@1, all begun"] = _row(ranker, questions, lambda: _blind(deadline))["P@1"]
    return row


def _blind(milliseconds: float) -> Stop:
    """A deadline that reports when time is up, but not how much is left."""
    deadline = Deadline.after(milliseconds)
    assert deadline is not None
    return lambda: deadline()


def _row(
    ranker: askline.Ranker, questions: Sequence[Question], stop: Callable[[], Stop | None]
) -> Row:
    taken, right, judged = [], [], []
    for question in questions:
        start = time.perf_counter()
        (ranking,) = ranker.run_batch([Request(question.text, question.texts)], stop())
        taken.append(1000 * (time.perf_counter() - start))
        right.append(question.candidates[ranking.hits[0].index].is_answer)
        judged.append(ranking.cost.token_share if ranking.cost else 0.0)
    p50, p95 = np.percentile(taken, [50, 95])
    return {
        "questions": len(questions),
        "ms p50": round(float(p50), 1),
        "ms p95": round(float(p95), 1),
        "P@1": round(100 * float(np.mean(right)), 1),
        "token-layers": round(float(np.mean(judged)), 4),
    }


def _shown(rows: Sequence[Row]) -> str:
    header = list(dict.fromkeys(key for row in rows for key in row))
    return markdown_table(header, [[str(row.get(key, "")) for key in header] for row in rows])


if __name__ == "__main__":
    main()
