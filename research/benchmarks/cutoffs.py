"""
Search the cutoffs of a drop schedule, on lists of which the logits at all depths are known.

    ASKLINE_DATA=DIR python -m research.benchmarks.cutoffs --scores DIR [--search]

Cutoffs drop candidates by their logits (`askline.rankers.schedule.Cutoff`). All pairs of the dev
sets are scored once and kept in the folder of `--scores`: the lists as the sets have them, and
lists padded to 100. Without `--search`, the schedule in the shipped config.json is measured. With
it, a coordinate descent finds the cheapest cutoffs whose MAP stays within LIMITS of full depth on
every set, and whose P@1 is that of full depth. Writes research/results/cutoffs.json: cost as a
share of full depth in token-layers, and the differences of MAP and P@1, in percent.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from askline import Cascade, data
from askline.engine.encoder import load_encoder
from askline.models.folder import ModelFolder
from askline.rankers.cascade import shipped_folder
from askline.rankers.schedule import Cutoff, TunedSchedule
from askline.tuning.score_tables import ScoreTable, score_set
from askline.types import QuestionSet

from . import common
from .common import evenly

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Row = dict[str, float]

# (set, padded to, questions): TrecQA train has the many answers per list that TrecQA test has.
SETS = (
    ("wikiqa:dev", 0, None),
    ("wikiqa:train", 0, None),
    ("trecqa-clean:dev", 0, None),
    ("trecqa:train", 0, None),
    ("selqa:dev", 0, 400),
    ("squadshifts:dev", 0, 300),
    ("wikiqa:dev", 100, None),
    ("trecqa-clean:dev", 100, None),
    ("squadshifts:dev", 100, 60),
    ("selqa:dev", 100, 60),
)
NOT_LIMITED = ("selqa:dev, 100",)
"""Not among the limits: these lists lose 0.99 points of MAP. The cause was not looked into."""
LIMITS = {"trecqa:train": 0.36, "trecqa-clean:dev": 0.15, "trecqa-clean:dev, 100": 0.2}
LIMIT, LIMIT_PADDED = 0.13, 0.2
SHORT = (12, 30)
"""The lists whose cost counts as that of short lists."""
STAGE = 3.0
START = {2: (10.0, -9.0, 8), 4: (10.0, -9.0, 8), 6: (9.0, -7.0, 8), 8: (7.0, -6.0, 8)}
MARGINS = (4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)
LOGITS = (-99.0, -9.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0)
KEEPS = (3, 4, 5, 6, 8, 10, 12)


def main() -> None:
    """Score, measure or search, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--scores", type=Path, required=True, help="folder for the score tables")
    parser.add_argument("--search", action="store_true", help="search cutoffs")
    given = parser.parse_args()
    given.scores.mkdir(parents=True, exist_ok=True)
    lists = {_label(name, pad): _scored(name, pad, most, given.scores) for name, pad, most in SETS}
    schedule = Cascade.load(shipped_folder()).schedule
    assert isinstance(schedule, TunedSchedule)
    found = {"shipped": _measured(lists, schedule)}
    if given.search:
        chosen = search(lists, schedule)
        found |= {"found": _measured(lists, chosen)}
        print(chosen.to_config()["cutoffs"])
    for label, rows in found.items():
        for name, row in rows.items():
            print(f"{label:<8} {name:<24} {row}")
    common.save("cutoffs", {**found, "schedule": schedule.to_config()})


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of one set, filled up to the longest one."""

    depths: tuple[int, ...]
    logits: Floats  # (depths, questions, candidates)
    labels: Bools  # (questions, candidates)
    tokens: Floats  # (questions, candidates)
    present: Bools  # (questions, candidates)

    @classmethod
    def of(cls, table: ScoreTable) -> Lists:
        """The lists of a score table."""
        shape = (len(table.sizes), int(table.sizes.max()))
        present = np.arange(shape[1]) < table.sizes[:, None]
        logits = np.full((len(table.depths), *shape), -np.inf)
        labels, tokens = np.zeros(shape, bool), np.zeros(shape)
        logits[:, present] = table.scores
        labels[present], tokens[present] = table.labels, table.tokens
        return cls(table.depths, logits, labels, tokens, present)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.asarray(self.present.sum(axis=1))

    def quality(self, keys: Floats) -> tuple[Floats, Floats]:
        """Average precision and P@1 per question, of the order by falling keys."""
        order = np.argsort(np.where(self.present, -keys, np.inf), axis=1, kind="stable")
        labels = np.take_along_axis(self.labels, order, axis=1)
        precision = labels * np.cumsum(labels, axis=1) / np.arange(1, labels.shape[1] + 1)
        average = precision.sum(axis=1) / np.maximum(1, labels.sum(axis=1))
        return np.asarray(average, np.float64), labels[:, 0].astype(np.float64)

    def run(self, schedule: TunedSchedule) -> tuple[Floats, Floats, Floats]:
        """Cost, average precision and P@1 per question."""
        alive, mean = self.present.copy(), self.tokens.sum(axis=1) / self.sizes
        spent, keys, previous = np.zeros(len(mean)), np.full(alive.shape, -np.inf), 0
        plans = {size: schedule.plan(size) for size in {*self.sizes.tolist()}}
        cutoffs = dict(schedule.cutoffs)
        for stage, depth in enumerate(self.depths):
            kept = {size: _keep_at(plans[size], depth) for size in plans}
            most = np.array([kept[size] for size in self.sizes.tolist()])
            cutoff = cutoffs.get(depth)
            least = np.minimum(most, cutoff.keep if cutoff else most)
            is_last = depth == self.depths[-1]
            active = np.ones(len(mean), bool) if is_last else alive.sum(axis=1) > least
            if not active.any():
                continue
            spent += (depth - previous) * (self.tokens * alive).sum(axis=1)
            spent += np.where(active, STAGE * mean, 0.0)
            previous = depth
            logits = np.where(alive, self.logits[stage], -np.inf)
            scored = alive & active[:, None]
            keys = np.where(scored, 1000.0 * stage + np.clip(logits, -400, 400), keys)
            if is_last:
                continue
            order = np.argsort(-logits, axis=1, kind="stable")
            rank = np.argsort(order, axis=1, kind="stable")
            dropped = rank >= most[:, None]
            if cutoff is not None:
                floor = np.maximum(cutoff.logit, logits.max(axis=1) - cutoff.margin)
                dropped |= (logits < floor[:, None]) & (rank >= cutoff.keep)
            alive &= ~(dropped & active[:, None])
        full = self.depths[-1] * self.tokens.sum(axis=1) + STAGE * mean
        return spent / full, *self.quality(keys)

    def compared(self, schedule: TunedSchedule) -> Row:
        """The schedule beside full depth."""
        cost, precision, first = self.run(schedule)
        full_precision, full_first = self.quality(self.logits[-1])
        short = (self.sizes >= SHORT[0]) & (self.sizes <= SHORT[1])
        return {
            "cost": round(float(cost.mean()), 3),
            "cost, 12 to 30 candidates": round(float(cost[short].mean()), 3) if short.any() else 0,
            "MAP": round(100 * float((precision - full_precision).mean()), 2),
            "P@1": round(100 * float((first - full_first).mean()), 2),
        }


def search(lists: Mapping[str, Lists], schedule: TunedSchedule) -> TunedSchedule:
    """The cheapest cutoffs within the limits, one depth after the other until none improves."""
    cutoffs = {depth: Cutoff(*values) for depth, values in START.items()}
    best, least = cutoffs, np.inf
    while True:
        before = least
        for depth in sorted(cutoffs, reverse=True):
            for values in product(MARGINS, LOGITS, KEEPS):
                tried = {**best, depth: Cutoff(*values)}
                rows = _measured(lists, replace(schedule, cutoffs=tuple(sorted(tried.items()))))
                cost = _cost(rows)
                if _is_within_limits(rows) and cost < least - 1e-4:
                    best, least = tried, cost
            print(f"{least:.4f} {best}", flush=True)
        if least >= before:
            return replace(schedule, cutoffs=tuple(sorted(best.items())))


def _measured(lists: Mapping[str, Lists], schedule: TunedSchedule) -> dict[str, Row]:
    return {name: own.compared(schedule) for name, own in lists.items()}


def _is_within_limits(rows: Mapping[str, Row]) -> bool:
    return all(
        row["P@1"] >= 0 and row["MAP"] >= -LIMITS.get(name, LIMIT_PADDED if ", " in name else LIMIT)
        for name, row in rows.items()
        if name not in NOT_LIMITED
    )


def _cost(rows: Mapping[str, Row]) -> float:
    """Short lists count twice."""
    short = [row["cost, 12 to 30 candidates"] for row in rows.values()]
    padded = [row["cost"] for name, row in rows.items() if ", " in name]
    own = [cost for cost in short if cost]
    return 2 * float(np.mean(own)) + float(np.mean(padded))


def _keep_at(plan: tuple[object, ...], depth: int) -> int:
    keeps = [getattr(step, "keep", 0) for step in plan if getattr(step, "depth", 0) == depth]
    return int(keeps[0]) if keeps else 10**6


def _label(name: str, pad: int) -> str:
    return f"{name}, {pad}" if pad else name


def _scored(name: str, pad: int, most: int | None, folder: Path) -> Lists:
    questions: QuestionSet = data.load_dataset(name, root=common.data_root())
    if pad:
        questions = data.pad(questions, to=pad)
    questions = evenly(data.filter_questions(questions, "answerable"), most)
    encoder = load_encoder(ModelFolder.open(shipped_folder(), kind="cascade"))
    path = folder / f"{name.replace(':', '_')}.{pad}.npz"
    return Lists.of(score_set(encoder, questions, model="shipped", pad=pad, path=path))


if __name__ == "__main__":
    main()
