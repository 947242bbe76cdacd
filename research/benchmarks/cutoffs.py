"""
Search the cutoffs of the shipped schedule, on dev lists whose logits at all depths are known.

    ASKLINE_DATA=DIR python -m research.benchmarks.cutoffs --scores DIR [--search]

Cutoffs drop candidates by their logits (`askline.rankers.schedule.Cutoff`). All pairs of the dev
sets are scored once and kept in the folder of `--scores`. The lists are those of the sets, and the
same lists padded to 20 and 100 candidates. No test set is read.

A loss is the larger of two: with the labels of the set, and with labels drawn from the
probabilities at full depth. Drawn labels have many answers per list, and there are several draws,
so the second loss varies less; it is too high rather than too low, because full depth is never
wrong in it.

The cost is the time of a ranking on two threads, as `milliseconds` models it. The search is
simulated annealing with a fixed seed and a fixed start: the cheapest cutoffs whose losses
of MAP and P@1 stay within LIMITS. It is done once more for each of FOLDS parts of the questions,
without that part, which then tells the loss on questions that were not searched on.

Writes research/results/cutoffs.json: milliseconds and losses in percent, of the shipped cutoffs,
of the ones found (`cutoffs`), and on the parts left out. Without `--search`, the shipped ones only.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
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
Ints = NDArray[np.int64]
Cutoffs = dict[int, Cutoff]
Row = dict[str, float]

# (set, questions): TrecQA train and train-all have the many answers per list of TrecQA test.
SETS = {
    "TrecQA": (("trecqa-clean:dev", None), ("trecqa:train", None), ("trecqa:train-all", 320)),
    "WikiQA": (("wikiqa:dev", None), ("wikiqa:train", None)),
    "SelQA, SQuADShifts": (("selqa:dev", 400), ("squadshifts:dev", 300)),
}
PADDED = (
    ("wikiqa:dev", None),
    ("trecqa-clean:dev", None),
    ("squadshifts:dev", 60),
    ("selqa:dev", 60),
)
LENGTHS = (20, 100)
PADDED_TO = 100
LONGEST = 80  # longer lists have numbers besides the cutoffs
LIMITS = {"TrecQA": 0.1, "WikiQA": 0.1, "SelQA, SQuADShifts": 0.15, "20": 0.2, "100": 0.8}
"""Points of MAP and of P@1 that the lists may lose."""
WEIGHTS = {"20": 1.0, "100": 0.2}
"""Of the milliseconds of the padded lists, each relative to full depth."""
PENALTY = 2.0  # for a point beyond a limit, in units of the cost
DRAWS = 3
FOLDS = 3
TRIALS = 4_000
TEMPERATURE = 0.006
START = {
    2: Cutoff(9.0, -8.0, 8),
    4: Cutoff(10.0, -9.0, 8),
    6: Cutoff(8.0, -5.0, 5),
    8: Cutoff(6.0, -4.0, 3),
}
MARGINS = (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 99)
LOGITS = (-99, -10, -9.5, -9, -8.5, -8, -7.5, -7, -6.5, -6, -5.5, -5, -4.5, -4, -3.5, -3)
KEEPS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
# Measured on two cores with VNNI: per call, per step, and per token and layer on one thread.
CALL_MS, STEP_MS, TOKEN_LAYER_MS = 0.9, 0.4, 0.0069


def main() -> None:
    """Score, measure or search, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--scores", type=Path, required=True, help="folder for the score tables")
    parser.add_argument("--search", action="store_true", help="search cutoffs")
    given = parser.parse_args()
    given.scores.mkdir(parents=True, exist_ok=True)
    schedule = Cascade.load(shipped_folder()).schedule
    assert isinstance(schedule, TunedSchedule)
    groups = load_groups(given.scores, schedule)
    shipped = dict(schedule.cutoffs)
    figures: dict[str, object] = {
        "lists": {name: len(group.sizes) for name, group in groups.items()},
        "full depth": measured(groups, {}),
        "shipped": measured(groups, shipped),
    }
    if given.search:
        parts = [{name: own.part(fold) for name, own in groups.items()} for fold in range(FOLDS)]
        rests = [
            {name: own.part(fold, others=True) for name, own in groups.items()}
            for fold in range(FOLDS)
        ]
        with ProcessPoolExecutor(1 + FOLDS) as pool:
            found, *others = pool.map(search, [groups, *rests])
        held_out = [measured(part, own) for part, own in zip(parts, others, strict=True)]
        figures |= {
            "cutoffs": {str(depth): asdict(own) for depth, own in sorted(found.items())},
            "found": measured(groups, found),
            "parts left out": {
                name: {
                    key: round(float(np.mean([rows[name][key] for rows in held_out])), 3)
                    for key in held_out[0][name]
                }
                for name in groups
            },
        }
    for label, rows in figures.items():
        print(label)
        for name, row in rows.items():  # type: ignore[attr-defined]
            print(f"  {name:<20} {row}")
    common.save("cutoffs", figures)


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of one kind, filled up to the longest one."""

    schedule: TunedSchedule
    logits: Floats  # (depths, lists, candidates), very low where there is no candidate
    labels: Bools  # (1 + draws, lists, candidates): those of the set, then drawn ones
    tokens: Floats  # (lists, candidates)
    sizes: Ints  # (lists,)

    def __post_init__(self) -> None:
        order = np.argsort(-self.logits, axis=2, kind="stable")
        present = np.arange(order.shape[2]) < self.sizes[:, None]
        full = self.quality(np.argsort(order[-1], axis=1))
        for name, value in (("order", order), ("present", present), ("full", full)):
            object.__setattr__(self, name, value)

    order: Ints = None  # type: ignore[assignment]
    present: Bools = None  # type: ignore[assignment]
    full: tuple[Floats, Floats] = None  # type: ignore[assignment]

    @classmethod
    def of(
        cls,
        tables: Sequence[ScoreTable],
        schedule: TunedSchedule,
        full_depth: Cascade,
        length: int = 0,
    ) -> Lists:
        """Lists of up to LONGEST candidates; with a length, padded ones cut to that length."""
        found = [
            (table.scores[:, own], table.labels[own], table.tokens[own])
            for table in tables
            for own in _lists_of(table, length)
        ]
        sizes = np.array([len(labels) for _, labels, _ in found])
        shape = (len(found), int(sizes.max()))
        present = np.arange(shape[1]) < sizes[:, None]
        logits = np.full((len(schedule.depths), *shape), -1e9)
        logits[:, present] = np.concatenate([scores for scores, _, _ in found], axis=1)
        labels, tokens = np.zeros((1 + DRAWS, *shape), bool), np.zeros(shape)
        labels[0, present] = np.concatenate([own for _, own, _ in found])
        tokens[present] = np.concatenate([own for *_, own in found])
        depth = schedule.depths[-1]
        probability = full_depth.probabilities(depth, logits[-1].astype(np.float32))
        drawn = np.random.default_rng(0).random((DRAWS, *shape)) < probability
        labels[1:] = drawn & present
        return cls(schedule, logits, labels, tokens, sizes)

    def part(self, fold: int, *, others: bool = False) -> Lists:
        """Every list of a fold, or all but these."""
        own = (np.arange(len(self.sizes)) % FOLDS == fold) != others
        return Lists(
            self.schedule,
            self.logits[:, own],
            self.labels[:, own],
            self.tokens[own],
            self.sizes[own],
        )

    def quality(self, places: Ints) -> tuple[Floats, Floats]:
        """Average precision and P@1, (1 + draws, lists), of candidates at these places."""
        ranked = np.zeros(self.labels.shape, np.float32)
        draw, own, candidate = self.labels.nonzero()
        ranked[draw, own, places[own, candidate]] = 1
        precision = ranked * np.cumsum(ranked, axis=2) / np.arange(1, self.logits.shape[2] + 1)
        answers = np.maximum(1, self.labels.sum(axis=2))
        return precision.sum(axis=2) / answers, ranked[:, :, 0].astype(np.float64)

    def run(self, cutoffs: Cutoffs, *, timed: bool) -> tuple[Floats, Ints]:
        """Milliseconds of each list, and the place of each candidate, as a cascade gives them."""
        alive, count = self.present.copy(), self.sizes.copy()
        places = np.broadcast_to(np.arange(alive.shape[1]), alive.shape).copy()
        spent, before = np.full(len(count), CALL_MS), np.zeros(len(count))
        ordered = replace(self.schedule, cutoffs=tuple(sorted(cutoffs.items())))
        longest = int(self.sizes.max())
        plan = {step.depth: step for step in ordered.plan(longest)}
        for stage, depth in enumerate(self.schedule.depths):
            step, cutoff = plan.get(depth), cutoffs.get(depth)
            if step is None:
                continue
            # Numbers apply to the padded lists of one length; up to 80 candidates there are none.
            most = step.keep if step.keep < longest else alive.shape[1]
            least = min(most, cutoff.keep) if cutoff else most
            is_last = depth == self.schedule.depths[-1]
            active = np.ones(len(count), bool) if is_last else count > least
            if timed:
                layers = depth - before[active]
                spent[active] += STEP_MS + layers * self.milliseconds(alive[active], active)
            before[active] = depth
            order = self.order[stage]
            rank = np.empty_like(places)
            sorted_ranks = np.cumsum(np.take_along_axis(alive, order, axis=1), axis=1) - 1
            np.put_along_axis(rank, order, sorted_ranks, axis=1)
            scored = alive & active[:, None]
            places = np.where(scored, rank, places)
            if is_last:
                break
            dropped = rank >= most
            if cutoff is not None:
                logits = np.where(alive, self.logits[stage], -1e9)
                floor = np.maximum(cutoff.logit, logits.max(axis=1) - cutoff.margin)
                dropped |= (logits < floor[:, None]) & (rank >= cutoff.keep)
            alive &= ~(dropped & scored)
            count = alive.sum(axis=1)
        return spent, places

    def milliseconds(self, alive: Bools, lists: Bools) -> Floats:
        """Of one layer on two threads: each takes the longest pair that is left."""
        tokens = -np.sort(-np.where(alive, self.tokens[lists], 0.0), axis=1)
        first = second = np.zeros(len(tokens))
        for column in tokens.T[: int(alive.sum(axis=1).max(initial=0))]:
            goes_first = first <= second
            first = np.where(goes_first, first + column, first)
            second = np.where(goes_first, second, second + column)
        return TOKEN_LAYER_MS * np.maximum(first, second)

    def measured(self, cutoffs: Cutoffs, *, timed: bool = True) -> Row:
        """Milliseconds, and the losses against full depth."""
        spent, places = self.run(cutoffs, timed=timed)
        known: Bools = np.asarray(self.labels.any(axis=2))
        row = {"ms": float(spent.mean())} if timed else {}
        for name, full, own in zip(("MAP", "P@1"), self.full, self.quality(places), strict=True):
            loss = 100 * (full - own)
            row[f"{name} lost"] = float(loss[0][known[0]].mean())
            row[f"{name} lost, drawn labels"] = float(loss[1:][known[1:]].mean())
        return {key: round(value, 3) for key, value in row.items()}


def search(groups: Mapping[str, Lists]) -> Cutoffs:
    """The cheapest cutoffs within the limits, by simulated annealing."""
    chance = random.Random(0)
    full = {name: groups[name].measured({})["ms"] for name in WEIGHTS}
    current = best = START
    value = least = cost(groups, START, full)
    for trial in range(TRIALS):
        tried = _changed(current, chance)
        own = cost(groups, tried, full)
        temperature = TEMPERATURE * (1 - trial / TRIALS)
        if own < value or chance.random() < math.exp((value - own) / temperature):
            current, value = tried, own
        if own < least:
            best, least = tried, own
    return best


def cost(groups: Mapping[str, Lists], cutoffs: Cutoffs, full: Mapping[str, float]) -> float:
    """The time as a share of full depth, and a penalty for losses beyond the limits."""
    total = 0.0
    for name, group in groups.items():
        row = group.measured(cutoffs, timed=name in WEIGHTS)
        if name in WEIGHTS:
            total += WEIGHTS[name] * row["ms"] / full[name]
        for measure in ("MAP lost", "P@1 lost"):
            loss = max(row[measure], row[f"{measure}, drawn labels"])
            total += PENALTY * max(0.0, loss - LIMITS[name])
    return total


def measured(groups: Mapping[str, Lists], cutoffs: Cutoffs) -> dict[str, Row]:
    return {name: group.measured(cutoffs) for name, group in groups.items()}


def _changed(cutoffs: Cutoffs, chance: random.Random) -> Cutoffs:
    """One to three values moved by up to two places, or a cutoff added or left out."""
    made = dict(cutoffs)
    for _ in range(chance.choice((1, 1, 2, 3))):
        depth = chance.choice((2, 3, 4, 6, 8))
        if depth not in made:
            values = (chance.choice(MARGINS), chance.choice(LOGITS), chance.choice(KEEPS))
            made[depth] = Cutoff(float(values[0]), float(values[1]), values[2])
        elif len(made) > 1 and chance.random() < 0.08:
            del made[depth]
        else:
            own, kind = made[depth], chance.choice(("margin", "logit", "keep"))
            step = chance.choice((-2, -1, 1, 2))
            if kind == "margin":
                made[depth] = replace(own, margin=_moved(MARGINS, own.margin, step))
            elif kind == "logit":
                made[depth] = replace(own, logit=_moved(LOGITS, own.logit, step))
            else:
                made[depth] = replace(own, keep=int(_moved(KEEPS, own.keep, step)))
    return made


def _moved(values: Sequence[float], value: float, step: int) -> float:
    place = values.index(value) + step
    return float(values[min(len(values) - 1, max(0, place))])


def load_groups(folder: Path, schedule: TunedSchedule) -> dict[str, Lists]:
    """The lists of the sets by kind, and the padded ones by length."""
    cascade = Cascade.load(shipped_folder())
    groups = {
        name: Lists.of([_scored(own, 0, most, folder) for own, most in sets], schedule, cascade)
        for name, sets in SETS.items()
    }
    padded = [_scored(name, PADDED_TO, most, folder) for name, most in PADDED]
    for length in LENGTHS:
        groups[str(length)] = Lists.of(padded, schedule, cascade, length)
    return groups


def _lists_of(table: ScoreTable, length: int) -> list[Ints]:
    """The pairs of each list of at most LONGEST candidates, of a padded one its first ones."""
    found = []
    for start, size in zip(table.starts.tolist(), table.sizes.tolist(), strict=True):
        pairs = np.arange(start, start + size)
        if length:
            added = table.added[pairs]
            room = length - int((~added).sum())
            pairs = pairs[~added | (np.cumsum(added) <= room)]
        if len(pairs) <= (length or LONGEST) and table.labels[pairs].any():
            found.append(pairs)
    return found


def _scored(name: str, pad: int, most: int | None, folder: Path) -> ScoreTable:
    questions: QuestionSet = data.load_dataset(name, root=common.data_root())
    if pad:
        questions = data.pad(questions, to=pad)
    if name == "trecqa:train-all":  # its longest lists have 761 candidates
        questions = data.filter_questions(questions, "both")
        short = tuple(own for own in questions if len(own.candidates) <= 100)
        questions = replace(questions, questions=short)
    questions = evenly(data.filter_questions(questions, "answerable"), most)
    encoder = load_encoder(ModelFolder.open(shipped_folder(), kind="cascade"))
    path = folder / f"{name.replace(':', '_')}.{pad}.npz"
    return score_set(encoder, questions, model="shipped", pad=pad, path=path)


if __name__ == "__main__":
    main()
