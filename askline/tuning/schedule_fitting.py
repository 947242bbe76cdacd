"""
A whole schedule out of score tables: a row for each length of list, and the first stage's cut.

The first row is that of the longest lists of which there are many; from there it goes to shorter
lists and to longer ones. At every depth shorter lists keep no smaller share of their candidates,
and lists longer than those of the first row no fewer: keeps are a smooth function of the count, not
the best of each range by itself.

What tuning leaves behind: the schedule in the model folder, and a report beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np

from ..errors import InputError, ModelError
from ..rankers.schedule import DropFraction, Step, TunedRow, TunedSchedule
from ..text.atomic_write import atomic_write
from .candidate_lists import CandidateLists, concatenated, make_lists
from .depth_calibration import calibrate, no_answer_threshold
from .plot import results_svg
from .results import ALPHAS, LengthResult, TuningResult
from .schedule_search import Trial, measure, search
from .score_tables import ScoreTable
from .selection import Choice, TrialTable

__all__ = [
    "COUNTS",
    "fingerprint",
    "save_schedule",
    "tune",
    "write_report",
]

COUNTS = (10, 20, 50, 100, 400, 1_300)
_ROOM = 1.5  # counts nearer than this to the first stage's cut give way to it


def tune(
    tables: Sequence[ScoreTable],
    *,
    budget: float,
    loss: float = 0.005,
    map_loss: float = 0.002,
    stage: float = 0.0,
    counts: Sequence[int] = COUNTS,
    first: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
) -> TuningResult:
    """
    Search, choose, smooth.

    `budget` is the cost allowed, in token-layers relative to full depth. It holds for long lists;
    shorter ones, where less is to be saved, may cost more rather than lose more P@1 than `loss` or
    more MAP than `map_loss`, on all sets together and, of MAP, on each of them. `stage` is what a
    classifier costs beside its candidates, in layers of one candidate; it counts for short lists,
    and is nothing beside long ones.

    With `first`, the tables' first stage is part of the pipeline, and its cut is searched too: the
    smallest with which full depth behind it surely loses no more than `loss`, on the padded length
    that asks for most.
    """
    if not 0 < budget <= 1:
        raise InputError(f"budget must be above 0 and at most 1, got {budget}.")
    aim = _Aim(budget, loss, map_loss)
    longest = max(int(table.sizes.max()) for table in tables)
    lengths = [count for count in counts if count <= longest] or [longest]
    heads = _heads(tables, aim, on_step) if first else []
    cut = max((head.cut for head in heads), default=0)
    heads = [head for head in heads if head.lists.count > cut]
    if cut:
        near = [n for n in lengths if cut / _ROOM < n < cut * _ROOM and n < max(lengths)]
        lengths = [*(set(lengths) - set(near)), cut]
    lists = {count: _lists(tables, count) for count in sorted(set(lengths))}
    anchor = _anchor(lists)
    lists |= {n: replace(own, stage=stage) for n, own in lists.items() if n < anchor}
    if cut:
        lists[cut] = concatenated([lists[cut], *(head.lists.first(cut) for head in heads)])
    rows: list[LengthResult] = []
    for count in _from(anchor, list(lists)):
        on_step(f"{count} candidates")
        if count > anchor:
            rows.append(_row(lists[count], aim.at_any_loss, below=rows[-1].row))
        else:
            above = rows[0].row if rows else None
            rows.insert(0, _row(lists[count], aim if rows else aim.at_any_loss, above=above))
    schedule = TunedSchedule(tables[0].depths, tuple(found.row for found in rows), stage)
    calibration = calibrate(tables)
    return TuningResult(
        schedule,
        tuple(rows),
        cut,
        tuple(head.found(schedule, cut) for head in heads),
        calibration,
        no_answer_threshold(tables, calibration[tables[0].depths[-1]]),
        budget,
        tuple(dict.fromkeys(table.name for table in tables)),
    )


@dataclass(frozen=True, slots=True)
class _Aim:
    """What a schedule may cost and lose; see `tune`."""

    budget: float
    loss: float
    map_loss: float

    @property
    def reach(self) -> float:
        """How far the search goes: past the budget, where it may have to grow."""
        return self.budget if self.loss >= 1 else min(1.0, 2 * self.budget)

    @property
    def at_any_loss(self) -> _Aim:
        """The budget alone."""
        return replace(self, loss=1.0, map_loss=1.0)


@dataclass(frozen=True, eq=False)
class _Head:
    """The search for a first stage's cut on whole lists of one length."""

    lists: CandidateLists
    field: TrialTable
    loss: float

    @cached_property
    def choice(self) -> Choice:
        """Of the cuts before full depth; what the cascade drops is decided by its own rows."""
        keeps = [trial.keeps for trial in self.field.trials]
        cuts = np.array([len(steps) == 1 and not steps[0].depth for steps in keeps])
        return self.field.cheapest(self.loss, among=cuts)

    @property
    def cut(self) -> int:
        return self.choice.trial.keeps[0].keep

    def found(self, schedule: TunedSchedule, cut: int) -> LengthResult:
        """The pipeline as it will run, not as it was searched."""
        keeps = (Step(0, cut), *schedule.plan(cut)[:-1])
        choice = replace(self.choice, trial=measure(self.lists, keeps))
        count, front = self.lists.count, self.field.front()
        return LengthResult(count, len(self.lists), choice, front, _rule(self.lists))


def _heads(tables: Sequence[ScoreTable], aim: _Aim, on_step: Callable[[str], None]) -> list[_Head]:
    """On tables whose lists are all of one length: the first stage has ranked them whole."""
    whole: dict[int, list[ScoreTable]] = {}
    for table in tables:
        if table.light is not None and table.sizes.min() == table.sizes.max():
            whole.setdefault(int(table.sizes.max()), []).append(table)
    if not whole:
        longest = max(int(table.sizes.max()) for table in tables)
        raise InputError(
            "A first stage is tuned on lists of one length, and these differ. Pad them all to at "
            f"least the longest, which has {longest} candidates."
        )
    heads = []
    for count, own in sorted(whole.items()):
        on_step(f"first stage, {count} candidates")
        lists = _lists(own, count)
        field = TrialTable.of(search(lists, budget=aim.budget, first=True), lists.folds, lists.sets)
        heads.append(_Head(lists, field, aim.loss))
    return heads


def _lists(tables: Sequence[ScoreTable], count: int) -> CandidateLists:
    """Out of the table of each set with the shortest lists that are long enough."""
    enough = [table for table in tables if int(table.sizes.max()) >= count]
    by_length = sorted(enough, key=lambda table: -int(table.sizes.max()))
    shortest = {table.name: table for table in by_length}
    return make_lists(list(shortest.values()), count)


def _from(anchor: int, counts: Sequence[int]) -> list[int]:
    """Down from the anchor, then up."""
    longer = sorted(count for count in counts if count > anchor)
    return sorted(set(counts) - set(longer), reverse=True) + longer


def _anchor(lists: Mapping[int, CandidateLists]) -> int:
    """The longest lists of which there are at least half as many as of any others."""
    most = max(len(own) for own in lists.values())
    return max(count for count, own in lists.items() if 2 * len(own) >= most)


def _row(
    lists: CandidateLists,
    aim: _Aim,
    *,
    below: TunedRow | None = None,
    above: TunedRow | None = None,
) -> LengthResult:
    """The best that is in line with the rows of shorter and of longer lists."""
    trials = search(lists, budget=aim.reach)
    if below is not None:
        trials = [*trials, measure(lists, below.keeps)]  # always in line, where nothing else may be
    field = TrialTable.of(trials, lists.folds, lists.sets)
    fits = [
        (below is None or (_shares_fall(below, row) and _numbers_rise(below, row)))
        and (above is None or _shares_fall(row, above))
        and TunedSchedule(lists.depths, (row,), lists.stage).plan(row.count)[:-1] == row.keeps
        for row in (TunedRow(lists.count, trial.keeps) for trial in field.trials)
    ]
    among = np.array(fits) if any(fits) else None
    choice = field.best(aim.budget, loss=aim.loss, map_loss=aim.map_loss, among=among)
    return LengthResult(lists.count, len(lists), choice, field.front(), _rule(lists))


def _rule(lists: CandidateLists) -> list[Trial]:
    plans = [DropFraction(lists.depths, alpha).plan(lists.count) for alpha in ALPHAS]
    return [measure(lists, plan[:-1]) for plan in plans]


def _shares_fall(shorter: TunedRow, longer: TunedRow) -> bool:
    """Whether longer lists keep no larger share of their candidates."""
    share = shorter.count / longer.count
    return all(
        math.floor(share * longer.at(depth)) <= shorter.at(depth)
        for depth in _depths(shorter, longer)
    )


def _numbers_rise(shorter: TunedRow, longer: TunedRow) -> bool:
    """Whether longer lists keep no fewer candidates."""
    return all(shorter.at(depth) <= longer.at(depth) for depth in _depths(shorter, longer))


def _depths(*rows: TunedRow) -> set[int]:
    return {step.depth for row in rows for step in row.keeps}


_CONFIG = "config.json"


def fingerprint(folder: Path) -> str:
    """Of all that a model computes with; its schedule and its card are no part of that."""
    digest = blake2b(digest_size=8)
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.name not in (_CONFIG, "README.md"):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def save_schedule(tuned: TuningResult, folder: Path) -> None:
    """Put schedule, calibration and threshold into the folder's config; the rest stays."""
    path = folder / _CONFIG
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a JSON object: {error}") from error
    _write(path, json.dumps(config | tuned.to_config(), indent=2, ensure_ascii=False))


def write_report(tuned: TuningResult, folder: Path) -> tuple[Path, Path]:
    """The fronts as JSON and as a picture."""
    folder.mkdir(parents=True, exist_ok=True)
    figures, picture = folder / "front.json", folder / "front.svg"
    _write(figures, json.dumps(tuned.as_dict(), indent=1, ensure_ascii=False))
    _write(picture, results_svg(tuned).rstrip())
    return figures, picture


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as stream:
        stream.write((text + "\n").encode())
