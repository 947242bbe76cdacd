"""
Deadlines on the real engine: how far past the deadline an answer comes, and what it is worth.

WikiQA dev questions padded to 400 candidates, ranked with 1 ms to 1 s and without a deadline. Past
the deadline there is at most the batch under way (each thread has one) and what cannot be
interrupted: tokenising, and the first stage.

    ASKLINE_DATA=DIR python -m benchmarks.deadlines [SPEC …]

It writes results/deadlines.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import askline
from askline import data
from askline.evaluation import markdown_table
from askline.types import Question

from . import report

PADDED = 400
QUESTIONS = 40
DEADLINES = (1.0, 10.0, 50.0, 100.0, 1_000.0, None)
SPECS = ("cascade", "cosinet % 50 >> cascade")
Row = dict[str, Any]


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    options = parser.parse_args()
    padded = data.pad(data.load("wikiqa:dev", root=report.data_root()), PADDED)
    questions = data.select(padded, "answerable").questions[: options.questions]
    figures = {spec: measured(spec, questions) for spec in options.specs}
    for spec, rows in figures.items():
        print(f"\n{spec}, {len(questions)} questions of {PADDED} candidates\n{_shown(rows)}")
    print(f"Wrote {report.save('deadlines', figures, 'onnxruntime')}.")


def measured(spec: str, questions: Sequence[Question]) -> list[Row]:
    """One row for each deadline."""
    ranker = askline.load(spec)
    askline.trace(ranker, questions[0].text, questions[0].texts)  # layers are made ready once
    return [_row(ranker, questions, deadline) for deadline in DEADLINES]


def _row(ranker: askline.Ranker, questions: Sequence[Question], deadline: float | None) -> Row:
    taken, right, judged = [], [], []
    for question in questions:
        start = time.perf_counter()
        ranking = askline.trace(ranker, question.text, question.texts, deadline)
        taken.append(1000 * (time.perf_counter() - start))
        right.append(question.candidates[ranking.hits[0].index].is_answer)
        judged.append(ranking.cost.token_share if ranking.cost else 0.0)
    p50, p95 = np.percentile(taken, [50, 95])
    return {
        "deadline ms": deadline,
        "ms p50": round(float(p50), 1),
        "ms p95": round(float(p95), 1),
        "late ms p95": None if deadline is None else round(max(0.0, float(p95) - deadline), 1),
        "P@1": round(100 * float(np.mean(right)), 1),
        "token-layers": round(float(np.mean(judged)), 4),
    }


def _shown(rows: Sequence[Row]) -> str:
    header = list(rows[0])
    return markdown_table(
        header, [["–" if v is None else str(v) for v in r.values()] for r in rows]
    )


if __name__ == "__main__":
    main()
