"""
What the stored schedule loses on unpadded lists, beside full depth.

    ASKLINE_DATA=DIR python -m research.benchmarks.short_lists [--config FILE --label TEXT]

Schedules are tuned on padded lists. Here every question has only its own 2 to 90 candidates:
WikiQA train (not used for training), WikiQA dev, TrecQA dev and SelQA dev; the test sets and 1,000
questions of SQuAD-sent, on which nothing is chosen. `--config` takes the schedule of another
config.json. Writes research/results/short_lists.json, one entry per label.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import askline
from askline import data
from askline.evaluation import evaluate
from askline.rankers.cascade import shipped_folder
from askline.rankers.schedule import KeepCounts, TunedSchedule
from askline.types import QuestionSet

from . import common
from .common import evenly

DEV = ("wikiqa:dev", "wikiqa:train", "trecqa-clean:dev", "selqa:dev")
TEST = ("wikiqa:test", "trecqa-clean:test", "squad1:dev")
SAMPLE = 1_000
MEASURES = ("MAP", "P@1")
NAME = "short_lists"
Row = dict[str, Any]


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--config", type=Path, help="a config.json with another schedule")
    parser.add_argument("--label", default="shipped", help="name of the entry  [default: shipped]")
    given = parser.parse_args()
    ranker = askline.Cascade.load(shipped_folder())
    depths = ranker.encoder.depths
    if given.config:
        stored = json.loads(given.config.read_text("utf-8"))["schedule"]
        ranker = replace(ranker, schedule=TunedSchedule.from_config(depths, stored))
    whole = replace(ranker, schedule=KeepCounts(depths))  # no candidate is dropped
    rows: dict[str, Row] = {}
    for name in (*DEV, *TEST):
        rows[name] = compared(ranker, whole, _questions(name))
        print(name, rows[name], flush=True)
    known = common.load_or_empty(NAME)
    known.pop("environment", None)
    common.save(NAME, {**known, given.label: rows})


def compared(ranker: askline.Cascade, whole: askline.Cascade, questions: QuestionSet) -> Row:
    """Figures with the schedule and at full depth, in percent."""
    found = {
        label: evaluate(own, questions, measures=MEASURES)
        for label, own in (("schedule", ranker), ("full depth", whole))
    }
    row: Row = {"questions": len(questions)}
    for label, evaluation in found.items():
        row[label] = {
            name: round(100 * float(values.mean()), 2) for name, values in evaluation.values.items()
        }
    row["MAP against full depth"] = round(row["schedule"]["MAP"] - row["full depth"]["MAP"], 2)
    return row


def _questions(name: str) -> QuestionSet:
    found = data.filter_questions(data.load_dataset(name, root=common.data_root()), "answerable")
    return evenly(found, SAMPLE)


if __name__ == "__main__":
    main()
