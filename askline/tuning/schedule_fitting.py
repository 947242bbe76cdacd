"""
`tune`: a complete drop schedule from score tables, its calibration, and how both are saved.

A schedule has a row per list length, and optionally a cut by a first stage. The first row is fitted
to the longest lists of which there are many; then come shorter lists, and then longer ones. At
every depth, shorter lists keep at least the same share of their candidates, and lists longer than
those of the first row keep at least as many. So the number kept is a smooth function of the list
length, not an independent optimum per length. The calibration turns the logits at each depth into
probabilities, and chooses the no-answer threshold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ModelError
from ..evaluation.calibration import PlattScaling
from ..rankers.probability import LogitCalibration
from ..rankers.schedule import DropFraction, Step, TunedRow, TunedSchedule
from ..text.atomic_write import atomic_write
from .schedule_search import Choice, Trial, TrialTable, measure, search
from .score_tables import CandidateLists, ScoreTable, concatenated, make_lists

__all__ = [
    "ALPHAS",
    "COUNTS",
    "LengthResult",
    "TuningResult",
    "calibrate",
    "fingerprint",
    "no_answer_threshold",
    "save_schedule",
    "tune",
    "write_report",
]

ALPHAS = (0.3, 0.4, 0.5)
"""Drop fractions of the paper's rule, which tuned schedules are compared with."""


@dataclass(frozen=True, eq=False)
class LengthResult:
    """The result for lists of one length."""

    count: int
    """Candidates per list."""
    questions: int
    choice: Choice
    front: Sequence[Trial]
    """The Pareto front, cheapest first."""
    fixed_fractions: Sequence[Trial]
    """The paper's rule on the same lists, with each of `ALPHAS`."""

    @property
    def row(self) -> TunedRow:
        """The row of the schedule."""
        return TunedRow(self.count, self.choice.trial.keeps)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; quality in percent, cost relative to full depth."""
        held_out = self.choice.held_out
        return {
            "count": self.count,
            "lists": self.questions,
            "full": _trial_as_dict(self.choice.full),
            "chosen": _trial_as_dict(self.choice.trial),
            "held out, against full depth": {
                "P@1": round(100 * held_out.p1, 2),
                "P@1 ±": round(100 * held_out.p1_error, 2),
                "MAP": round(100 * held_out.map, 2),
                "cost": round(held_out.cost, 4),
            },
            "front": [_trial_as_dict(trial) for trial in self.front],
            "alpha": {
                str(alpha): _trial_as_dict(trial)
                for alpha, trial in zip(ALPHAS, self.fixed_fractions, strict=True)
            },
        }


@dataclass(frozen=True, eq=False)
class TuningResult:
    """A schedule for every list length, with its calibration and the measurements behind it."""

    schedule: TunedSchedule
    rows: tuple[LengthResult, ...]
    first: int
    """How many candidates the first stage keeps; 0 without a first stage."""
    pipelines: tuple[LengthResult, ...]
    """First stage and cascade together on whole padded lists, with the final schedule."""
    calibration: dict[int, LogitCalibration]
    threshold: float
    budget: float
    sets: tuple[str, ...]

    def to_config(self) -> dict[str, Any]:
        """The entries for the model folder's `config.json`."""
        settings = {"budget": self.budget, "tuned_on": list(self.sets)}
        if self.first:
            settings["first"] = self.first
        return {
            "schedule": self.schedule.to_config() | settings,
            "calibration": {
                str(depth): {"scale": line.scale, "shift": line.shift}
                for depth, line in self.calibration.items()
            },
            "threshold": self.threshold,
        }

    def as_dict(self) -> dict[str, Any]:
        """The whole report, for JSON."""
        return {
            **self.to_config(),
            "rows": [row.as_dict() for row in self.rows],
            "pipelines": [pipeline.as_dict() for pipeline in self.pipelines],
        }


def _trial_as_dict(trial: Trial) -> dict[str, Any]:
    return {
        "cost": round(trial.mean_cost, 4),
        "P@1": round(100 * trial.p1, 2),
        "MAP": round(100 * trial.map, 2),
        "keeps": {str(step.depth): step.keep for step in trial.keeps},
    }


_MIN_SCALE = 1e-3
UNANSWERABLE = 1 / 3
"""The assumed share of questions that have no answer among their candidates."""
_WRONG = -1.0  # below every threshold

FloatArray = NDArray[np.float64]


def calibrate(tables: Sequence[ScoreTable]) -> dict[int, LogitCalibration]:
    """
    Platt scaling per depth, fitted on the questions' own candidates.

    Candidates added by padding are left out: hundreds of easy negatives would say little about the
    probabilities at the top of a list, which are the ones that users see.
    """
    own = [~table.added for table in tables]
    labels = np.concatenate([table.labels[mask] for table, mask in zip(tables, own, strict=True)])
    calibration = {}
    for row, depth in enumerate(tables[0].depths):
        logits = [table.scores[row, mask] for table, mask in zip(tables, own, strict=True)]
        fitted = PlattScaling.fit(np.concatenate(logits), labels)
        calibration[depth] = LogitCalibration(fitted.scale, fitted.shift)
        if fitted.scale < _MIN_SCALE:  # a useless classifier gives every candidate the base rate
            base_rate = float(np.log(labels.mean() / (1 - labels.mean())))
            calibration[depth] = LogitCalibration(_MIN_SCALE, base_rate)
    return calibration


def no_answer_threshold(tables: Sequence[ScoreTable], calibration: LogitCalibration) -> float:
    """
    The probability at full depth below which no answer is given.

    It maximizes the share of questions that are handled correctly, with the right sentence or with
    no answer, if one question in three is unanswerable. Every question counts twice, with its
    answers and without them, and all tables have the same weight. (The threshold with the highest
    F1 of abstaining would suppress a third of the right sentences.)
    """
    by_table = [_best_probabilities(table, calibration) for table in tables]
    probabilities = np.concatenate([own for pair in by_table for own in pair])
    if not len(probabilities):
        raise InputError(
            "Expected questions that have an answer and another candidate, got none. Use a "
            "larger set."
        )
    thresholds = np.unique(np.maximum(probabilities, 0.0))
    correct = np.zeros(len(thresholds))
    for answerable, unanswerable in by_table:
        # An answer is given if the probability is at least the threshold.
        correct += (1 - UNANSWERABLE) * (1 - _share_below(answerable, thresholds))
        correct += UNANSWERABLE * _share_below(unanswerable, thresholds)
    return min(1.0, float(thresholds[np.argmax(correct)]))


def _best_probabilities(
    table: ScoreTable, calibration: LogitCalibration
) -> tuple[FloatArray, FloatArray]:
    """
    The probability of the best candidate, for questions with answers and other candidates.

    First with all candidates, -1 if the best one is wrong, which no threshold can correct; then
    with the answers removed.
    """
    probabilities = np.asarray(calibration(table.scores[-1]), np.float64)
    answerable, unanswerable = [], []
    for start, size in zip(table.starts.tolist(), table.sizes.tolist(), strict=True):
        labels, own = table.labels[start : start + size], probabilities[start : start + size]
        if labels.any() and not labels.all():
            answerable.append(own.max() if labels[own.argmax()] else _WRONG)
            unanswerable.append(own[~labels].max())
    return np.array(answerable), np.array(unanswerable)


def _share_below(probabilities: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Per threshold, the share of probabilities below it."""
    return np.searchsorted(np.sort(probabilities), thresholds) / max(1, len(probabilities))


COUNTS = (10, 20, 50, 100, 400, 1_300)
"""List lengths that get a row of their own."""
_MIN_RATIO = 1.5  # lengths closer than this to the first stage's cut are replaced by it
_CONFIG = "config.json"


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
    Search schedules for all list lengths, choose one per length, and calibrate.

    `budget` is the allowed cost in token-layers, relative to full depth. It holds for long lists.
    Short lists, where less can be saved, may cost more rather than lose more P@1 than `loss` or
    more MAP than `map_loss`, over all sets together and, for MAP, on each of them. `stage` is the
    fixed cost of a classifier per list, in layers of one candidate; it matters for short lists.

    With `first`, the tables' first stage is part of the pipeline, and its cut is searched too: the
    smallest cut with which full depth surely loses no more than `loss`, on the padded length that
    needs the largest cut.
    """
    if not 0 < budget <= 1:
        raise InputError(f"budget must be above 0 and at most 1, got {budget}.")
    limits = _Limits(budget, loss, map_loss)
    longest = max(int(table.sizes.max()) for table in tables)
    lengths = [count for count in counts if count <= longest] or [longest]
    searches = _search_first_stage(tables, limits, on_step) if first else []
    cut = max((one.cut for one in searches), default=0)
    searches = [one for one in searches if one.lists.count > cut]
    if cut:
        close = [
            count
            for count in lengths
            if cut / _MIN_RATIO < count < cut * _MIN_RATIO and count < max(lengths)
        ]
        lengths = [*(set(lengths) - set(close)), cut]
    lists = {count: _shortest_lists(tables, count) for count in sorted(set(lengths))}
    anchor = _anchor_length(lists)
    lists |= {count: replace(own, stage=stage) for count, own in lists.items() if count < anchor}
    if cut:
        lists[cut] = concatenated(
            [lists[cut], *(one.lists.after_first_stage(cut) for one in searches)]
        )
    rows: list[LengthResult] = []
    for count in _fitting_order(anchor, list(lists)):
        on_step(f"{count} candidates")
        if count > anchor:
            rows.append(_fit_row(lists[count], limits.budget_only, shorter=rows[-1].row))
        else:
            own_limits = limits if rows else limits.budget_only
            longer = rows[0].row if rows else None
            rows.insert(0, _fit_row(lists[count], own_limits, longer=longer))
    schedule = TunedSchedule(tables[0].depths, tuple(result.row for result in rows), stage)
    calibration = calibrate(tables)
    return TuningResult(
        schedule,
        tuple(rows),
        cut,
        tuple(one.pipeline_result(schedule, cut) for one in searches),
        calibration,
        no_answer_threshold(tables, calibration[tables[0].depths[-1]]),
        budget,
        tuple(dict.fromkeys(table.name for table in tables)),
    )


@dataclass(frozen=True, slots=True)
class _Limits:
    """The allowed cost and losses of a schedule; see `tune`."""

    budget: float
    loss: float
    map_loss: float

    @property
    def search_budget(self) -> float:
        """How far to search: beyond the budget if the budget may have to grow."""
        return self.budget if self.loss >= 1 else min(1.0, 2 * self.budget)

    @property
    def budget_only(self) -> _Limits:
        """The same budget without limits on the losses."""
        return replace(self, loss=1.0, map_loss=1.0)


@dataclass(frozen=True, eq=False)
class _FirstStageSearch:
    """The search for a first stage's cut on whole lists of one length."""

    lists: CandidateLists
    trials: TrialTable
    loss: float

    @cached_property
    def choice(self) -> Choice:
        """The best cut before full depth; the cascade's drops are decided by its own rows."""
        keeps = [trial.keeps for trial in self.trials.trials]
        is_cut = np.array([len(steps) == 1 and not steps[0].depth for steps in keeps])
        return self.trials.cheapest(self.loss, among=is_cut)

    @property
    def cut(self) -> int:
        return self.choice.trial.keeps[0].keep

    def pipeline_result(self, schedule: TunedSchedule, cut: int) -> LengthResult:
        """The first stage followed by the cascade, with the final schedule."""
        keeps = (Step(0, cut), *schedule.plan(cut)[:-1])
        choice = replace(self.choice, trial=measure(self.lists, keeps))
        front = self.trials.pareto_front()
        return LengthResult(
            self.lists.count, len(self.lists), choice, front, _fixed_fractions(self.lists)
        )


def _search_first_stage(
    tables: Sequence[ScoreTable], limits: _Limits, on_step: Callable[[str], None]
) -> list[_FirstStageSearch]:
    """One search per length, on tables whose lists all have the same length."""
    by_length: dict[int, list[ScoreTable]] = {}
    for table in tables:
        if table.first_stage is not None and table.sizes.min() == table.sizes.max():
            by_length.setdefault(int(table.sizes.max()), []).append(table)
    if not by_length:
        longest = max(int(table.sizes.max()) for table in tables)
        raise InputError(
            "Tuning a first stage needs lists of one length, but these differ. Pad them all to at "
            f"least the longest, which has {longest} candidates."
        )
    searches = []
    for count, own in sorted(by_length.items()):
        on_step(f"first stage, {count} candidates")
        lists = _shortest_lists(own, count)
        found = search(lists, budget=limits.budget, first=True)
        trials = TrialTable.of(found, lists.folds, lists.sets)
        searches.append(_FirstStageSearch(lists, trials, limits.loss))
    return searches


def _shortest_lists(tables: Sequence[ScoreTable], count: int) -> CandidateLists:
    """Lists of `count`, per set from the table with the shortest lists that are long enough."""
    enough = [table for table in tables if int(table.sizes.max()) >= count]
    longest_first = sorted(enough, key=lambda table: -int(table.sizes.max()))
    shortest = {table.name: table for table in longest_first}
    return make_lists(list(shortest.values()), count)


def _fitting_order(anchor: int, counts: Sequence[int]) -> list[int]:
    """Down from the anchor, then up."""
    longer = sorted(count for count in counts if count > anchor)
    return sorted(set(counts) - set(longer), reverse=True) + longer


def _anchor_length(lists: Mapping[int, CandidateLists]) -> int:
    """The longest length with at least half as many lists as any other length has."""
    most = max(len(own) for own in lists.values())
    return max(count for count, own in lists.items() if 2 * len(own) >= most)


def _fit_row(
    lists: CandidateLists,
    limits: _Limits,
    *,
    shorter: TunedRow | None = None,
    longer: TunedRow | None = None,
) -> LengthResult:
    """The best schedule that is consistent with the rows of shorter and of longer lists."""
    trials = search(lists, budget=limits.search_budget)
    if shorter is not None:
        trials = [*trials, measure(lists, shorter.keeps)]  # always consistent
    table = TrialTable.of(trials, lists.folds, lists.sets)
    consistent = [
        (shorter is None or (_shares_fall(shorter, row) and _numbers_rise(shorter, row)))
        and (longer is None or _shares_fall(row, longer))
        and TunedSchedule(lists.depths, (row,), lists.stage).plan(row.count)[:-1] == row.keeps
        for row in (TunedRow(lists.count, trial.keeps) for trial in table.trials)
    ]
    among = np.array(consistent) if any(consistent) else None
    choice = table.best(limits.budget, loss=limits.loss, map_loss=limits.map_loss, among=among)
    return LengthResult(
        lists.count, len(lists), choice, table.pareto_front(), _fixed_fractions(lists)
    )


def _fixed_fractions(lists: CandidateLists) -> list[Trial]:
    """The paper's rule, which drops the same fraction after every classifier."""
    plans = [DropFraction(lists.depths, alpha).plan(lists.count) for alpha in ALPHAS]
    return [measure(lists, plan[:-1]) for plan in plans]


def _shares_fall(shorter: TunedRow, longer: TunedRow) -> bool:
    """Whether longer lists keep no larger share of their candidates at any depth."""
    ratio = shorter.count / longer.count
    return all(
        math.floor(ratio * longer.at(depth)) <= shorter.at(depth)
        for depth in _depths(shorter, longer)
    )


def _numbers_rise(shorter: TunedRow, longer: TunedRow) -> bool:
    """Whether longer lists keep at least as many candidates at every depth."""
    return all(shorter.at(depth) <= longer.at(depth) for depth in _depths(shorter, longer))


def _depths(*rows: TunedRow) -> set[int]:
    return {step.depth for row in rows for step in row.keeps}


def fingerprint(folder: Path) -> str:
    """A hash of the files a model computes with, that is, without its config and its card."""
    digest = blake2b(digest_size=8)
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.name not in (_CONFIG, "README.md"):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def save_schedule(tuned: TuningResult, folder: Path) -> None:
    """Write schedule, calibration and threshold into the model folder's config."""
    path = folder / _CONFIG
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a JSON object: {error}") from error
    _write(path, json.dumps(config | tuned.to_config(), indent=2, ensure_ascii=False))


def write_report(tuned: TuningResult, folder: Path) -> Path:
    """Write the results as `front.json`; returns its path. `askline.plots` draws them."""
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "front.json"
    _write(report, json.dumps(tuned.as_dict(), indent=1, ensure_ascii=False))
    return report


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as stream:
        stream.write((text + "\n").encode())
