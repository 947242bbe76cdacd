"""
P@1 of the cascade at full depth, by the number of candidates that a first stage keeps.

    ASKLINE_DATA=DIR python -m research.benchmarks.sequential --scores DIR [--ca FOLDER]
    ASKLINE_DATA=DIR python -m research.benchmarks.sequential --time [--ca FOLDER]

Tables 4 and 5 and Figure 2 of the Sequential rerankers, on WikiQA test padded to 400 and to 1,300
candidates. DIR holds the cascade's score tables (`research.benchmarks.cascade_cost` makes them);
the score of a pair does not depend on its list, so only the first stages run. FOLDER is a
Compare-Aggregate model, trained in twenty minutes on two cores by

    askline train compare-aggregate --on squadshifts:train --epochs 1 --out START
    askline train compare-aggregate --on wikiqa:train --dev wikiqa:dev --init START --out FOLDER

Writes research/results/sequential.json. `--time` needs a machine without other work: it measures
seconds per question with the cascade at full depth behind each first stage, all rankers in turn,
and writes research/results/sequential_times.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import askline
from askline.evaluation import bootstrap_interval
from askline.rankers.base import Ranker
from askline.tuning import ScoreTable
from askline.types import Question

from . import common
from .cascade_cost import questions
from .common import evenly

FIRST = ("jaccard", "bm25", "idf-overlap", "cosinet")
KEEPS = (1, 2, 5, 10, 20, 50, 100, 200, 400)
SET = "wikiqa:test"
TIMED = {400: 12, 1_300: 6}
"""Timed questions by candidates, at even steps."""
TIMED_KEEPS = (100, 20)
Row = dict[str, Any]


def measured(first: Ranker, table: ScoreTable, lists: tuple[Question, ...]) -> Row:
    """P@1 for each number of candidates that the first stage keeps."""
    right: dict[int, list[bool]] = {keep: [] for keep in KEEPS}
    seconds = []
    for question, start, size in zip(lists, table.starts, table.sizes, strict=True):
        pairs = slice(start, start + size)
        scores, labels = table.scores[-1, pairs], table.labels[pairs]
        begun = time.process_time()
        order = np.array([hit.index for hit in first.rank(question.text, question.texts)])
        seconds.append(time.process_time() - begun)
        for keep in KEEPS:
            right[keep].append(bool(labels[_best(order[:keep], scores)]))
    rows = {str(keep): _row(np.array(own)) for keep, own in right.items()}
    return {
        "questions": len(seconds),
        "first stage, processor ms a question": round(1000 * float(np.median(seconds)), 2),
        "kept": rows,
    }


def _best(kept: NDArray[np.int64], scores: NDArray[np.float32]) -> int:
    """The best of the kept candidates; ties keep the original order."""
    kept = np.sort(kept)
    return int(kept[int(np.argmax(scores[kept]))])


def _row(right: NDArray[np.bool_]) -> Row:
    interval = bootstrap_interval(100.0 * right)
    low, high = round(interval.low, 2), round(interval.high, 2)
    return {"P@1": round(100 * float(right.mean()), 2), "95 %": [low, high]}


def on_all(table: ScoreTable) -> Row:
    """The cascade at full depth over the whole lists."""
    right = []
    for start, size in zip(table.starts, table.sizes, strict=True):
        best = int(np.argmax(table.scores[-1, start : start + size]))
        right.append(bool(table.labels[start + best]))
    return {"questions": len(right), **_row(np.array(right))}


def times(rankers: Mapping[str, Ranker], most: int | None = None) -> Row:
    """Median seconds per question: the cascade on all candidates, and behind each first stage."""
    cascade = askline.Cascade.load()
    full = askline.Cascade.load(depth=cascade.encoder.depths[-1])
    ways: dict[tuple[str, str], Ranker] = {("all", "all"): full}
    ways |= {
        (name, str(keep)): first % keep >> full
        for name, first in rankers.items()
        for keep in TIMED_KEEPS
    }
    figures: Row = {}
    for pad, count in TIMED.items():
        some = evenly(questions(SET, pad), min(count, most or count)).questions
        taken: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
        for question in (some[0], *some):  # the first question warms up
            for way, ranker in ways.items():
                begun = time.perf_counter()
                ranker.rank(question.text, question.texts)
                taken[way].append(time.perf_counter() - begun)
        rows: Row = {"questions": len(some)}
        for (name, keep), seconds in taken.items():
            rows.setdefault(name, {})[keep] = round(median(seconds[1:]), 4)
        print(pad, rows, flush=True)
        figures[f"{SET} padded to {pad}"] = rows
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--scores", type=Path, help="folder of score tables")
    parser.add_argument("--ca", metavar="FOLDER", help="a Compare-Aggregate model to compare")
    parser.add_argument("--time", action="store_true", help="measure seconds per question instead")
    parser.add_argument("--questions", type=int, help="with --time: maximum number per length")
    options = parser.parse_args()
    rankers: dict[str, Ranker] = {name: askline.load(name) for name in FIRST}
    if options.ca:
        from askline.rankers.paper_networks import CompareAggregate

        rankers["compare-aggregate"] = CompareAggregate.load(options.ca)
    if options.time:
        print(f"Saved to {common.save('sequential_times', times(rankers, options.questions))}")
        return
    if options.scores is None:
        raise SystemExit("--scores is needed without --time.")
    figures: Row = {}
    for pad in (400, 1_300):
        path = options.scores / f"scores.{SET.replace(':', '_')}.{pad}.npz"
        table, lists = ScoreTable.load(path), questions(SET, pad).questions
        if table.questions != tuple(question.id for question in lists):
            raise SystemExit(f"{path} has other questions than {SET} padded to {pad}.")
        rows: Row = {"all": on_all(table)}
        for name, first in rankers.items():
            rows[name] = measured(first, table, lists)
            shown = {keep: row["P@1"] for keep, row in rows[name]["kept"].items()}
            print(f"{pad:5} {name:18} {shown}", flush=True)
        figures[f"{SET} padded to {pad}"] = rows
        print(f"{pad:5} all {rows['all']}")
    print(f"Saved to {common.save('sequential', figures)}")


if __name__ == "__main__":
    main()
