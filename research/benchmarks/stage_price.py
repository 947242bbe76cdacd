"""
A price for each look: the shipped schedule for short lists beside one that was searched without.

    ASKLINE_DATA=DIR python -m research.benchmarks.stage_price --scores DIR

The shipped rows were searched with a price of 3 layers a look, which research/results/stage_cost.json does
not bear out. Here they are searched again without one, and both are measured on lists of other
lengths, cut out of the same dev sets: cost, and P@1 and MAP against full depth. No test set is
read. It takes the score tables of `research.benchmarks.cascade_cost` and writes research/results/stage_price.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from askline.models.folder import ModelFolder
from askline.rankers.cascade import shipped_folder
from askline.rankers.schedule import Learned
from askline.tuning import ScoreTable, tune
from askline.tuning.candidate_lists import lists_of
from askline.tuning.schedule_search import measure

from . import report
from .cascade_cost import BUDGET, DEV, PADDED, Tables, dev_tables

COUNTS = (5, 10, 14, 20, 30, 50, 70, 89, 100, 150, 200)


def main() -> None:
    """Search, measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--scores", type=Path, required=True, help="folder of score tables")
    tables = Tables(parser.parse_args().scores, None, 0.4)
    found = dev_tables(tables)
    free = tune(found, budget=BUDGET, stage=0.0, first=True, on_step=print).schedule
    config = ModelFolder.open(shipped_folder(), kind="cascade").config
    shipped = Learned.from_config(free.depths, config["schedule"])
    short = [table for table in found if table.pad == PADDED]
    rows = [_row(short, count, {"shipped": shipped, "no price": free}) for count in COUNTS]
    for row in rows:
        print(row)
    figures = {"sets": list(DEV), "no price": free.as_config(), "rows": rows}
    print(f"Wrote {report.save('stage_price', figures)}.")


def _row(tables: Sequence[ScoreTable], count: int, schedules: dict[str, Learned]) -> dict[str, Any]:
    lists = lists_of(list(tables), count)
    full = measure(lists, ())
    row: dict[str, Any] = {"candidates": count, "lists": len(lists)}
    for name, schedule in schedules.items():
        keeps = schedule.plan(count)[:-1]
        own = measure(lists, keeps)
        row[name] = {
            "cost": round(100 * own.price, 1),
            "P@1": round(100 * (own.p1 - full.p1), 2),
            "MAP": round(100 * (own.map - full.map), 2),
            "keeps": {str(step.depth): step.keep for step in keeps},
        }
    return row


if __name__ == "__main__":
    main()
