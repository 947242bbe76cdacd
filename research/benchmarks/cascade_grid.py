"""
All settings of four drop ratios from 0.1 to 0.6: the Cascade Transformer's Figure 2.

    python -m research.benchmarks.cascade_grid --scores DIR

Four dev sets (WikiQA, TrecQA, SelQA, SQuADShifts) replace GPD, with lists filled up or cut to 20
candidates, because with 400 hardly any setting loses anything. Uses the score tables of
`research.benchmarks.cascade_cost`. Candidates are dropped after layers 3, 4, 6 and 8, and the
classifier after layer 10, the last one that ships, makes the order; in the paper these are layers
4, 6, 8, 10 and 12. Cost is candidate-layers relative to full depth. Writes all 1,296 settings to
research/results/cascade_grid.json.
"""

from __future__ import annotations

import argparse
from itertools import product
from math import floor
from pathlib import Path

import numpy as np

from askline.rankers.schedule import Step
from askline.tuning import ScoreTable
from askline.tuning.schedule_search import measure
from askline.tuning.score_tables import make_lists

from .common import save

SETS = ("wikiqa:dev", "trecqa-clean:dev", "selqa:dev", "squadshifts:dev")
PADDED, COUNT = 400, 20
DEPTHS = (3, 4, 6, 8, 10)
RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
SAME = (0.3, 0.4, 0.5)  # as in the paper's Table 3


def keeps(count: int, ratios: tuple[float, ...]) -> tuple[Step, ...]:
    """The paper's rule: ⌊αk⌋ of k candidates are dropped."""
    found = []
    for depth, ratio in zip(DEPTHS[:-1], ratios, strict=True):
        count -= floor(ratio * count + 1e-9)
        found.append(Step(depth, count))
    return tuple(found)


def cost(count: int, steps: tuple[Step, ...]) -> float:
    """Candidate-layers relative to all candidates at full depth."""
    entered = [count, *(step.keep for step in steps)]
    layers = np.diff([0, *DEPTHS])
    return float(np.dot(entered, layers)) / (DEPTHS[-1] * count)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--scores", type=Path, required=True, help="folder of score tables")
    options = parser.parse_args()
    paths = (options.scores / f"scores.{name.replace(':', '_')}.{PADDED}.npz" for name in SETS)
    tables = [ScoreTable.load(path) for path in paths]
    lists, long = make_lists(tables, COUNT), make_lists(tables[:1], PADDED)
    rows = []
    for ratios in product(RATIOS, repeat=4):
        steps = keeps(COUNT, ratios)
        trial = measure(lists, steps)
        row = (*ratios, round(cost(COUNT, steps), 4), round(100 * trial.p1, 2))
        rows.append([*row, round(100 * trial.map, 2)])
    full = measure(lists, ())
    found = np.array(rows)
    figures = {
        "sets": SETS,
        "candidates": COUNT,
        "questions": len(lists),
        "columns": ["α3", "α4", "α6", "α8", "cost", "P@1", "MAP"],
        "full depth": {"P@1": round(100 * full.p1, 2), "MAP": round(100 * full.map, 2)},
        "P@1": {"best": float(found[:, 5].max()), "worst": float(found[:, 5].min())},
        "MAP": {"best": float(found[:, 6].max()), "worst": float(found[:, 6].min())},
        "same": {
            str(ratio): {"cost": row[4], "P@1": row[5], "MAP": row[6]}
            for ratio in SAME
            for row in rows
            if row[:4] == [ratio] * 4
        },
        f"{SETS[0]} padded to {PADDED}, P@1": {
            "full depth": round(100 * measure(long, ()).p1, 2),
            "the most dropped": round(100 * measure(long, keeps(PADDED, RATIOS[-1:] * 4)).p1, 2),
        },
        "settings": rows,
    }
    for name, value in figures.items():
        if name != "settings":
            print(f"{name}: {value}")
    print(f"Saved to {save('cascade_grid', figures)}")


if __name__ == "__main__":
    main()
