"""
Drop schedules: which classifiers of a cascade run, and how many candidates each one keeps.

A schedule makes a plan from the number of candidates alone. A classifier that would drop nothing is
not run. There are three kinds:

- `DropFraction`: every classifier drops the same fraction, as in Soldaini & Moschitti (2020).
- `KeepCounts`: a fixed number of candidates after each of some classifiers.
- `TunedSchedule`: numbers found by `askline tune cascade` for some list lengths, interpolated for
  the lengths between them. It may also have cutoffs, which drop candidates by their logits: an easy
  question then costs less than a hard one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any, Protocol

from ..errors import InputError, ModelError

__all__ = [
    "Cutoff",
    "DropFraction",
    "KeepCounts",
    "Schedule",
    "Step",
    "TunedRow",
    "TunedSchedule",
    "candidate_layers",
    "parse_keeps",
]

_ROUNDING = 1e-9  # 0.29 * 100 is 28.999…, and should count as 29


@dataclass(frozen=True, slots=True)
class Cutoff:
    """
    Drops candidates by their logits at a depth, whatever their number.

    The best `keep` candidates stay. Of the others, those are dropped whose logit is below `logit`,
    or more than `margin` below that of the best candidate.
    """

    margin: float
    logit: float
    keep: int

    def kept(self, logits: Sequence[float]) -> int:
        """How many of these candidates stay; `logits` fall."""
        least = max(self.logit, logits[0] - self.margin)
        return max(self.keep, sum(logit >= least for logit in logits))


@dataclass(frozen=True, slots=True)
class Step:
    """
    Run the layers up to `depth`, then keep the best `keep` candidates.

    With a `cutoff`, fewer of them are kept where their logits differ much.
    """

    depth: int
    keep: int
    cutoff: Cutoff | None = None


class Schedule(Protocol):
    """How many candidates a cascade keeps at each depth, by the length of the list."""

    def plan(self, count: int) -> tuple[Step, ...]:
        """
        The steps for a list of `count` candidates; `count` is at least 1.

        Depths rise and keeps fall. The last step keeps all candidates that reach it.
        """
        ...


@dataclass(frozen=True, slots=True)
class DropFraction:
    """After each classifier but the last, ⌊α·k⌋ of the k candidates are dropped."""

    depths: tuple[int, ...]
    alpha: float

    def __post_init__(self) -> None:
        number = isinstance(self.alpha, (int, float)) and not isinstance(self.alpha, bool)
        if not number or not 0 <= self.alpha < 1:
            raise InputError(f"alpha must be at least 0 and below 1, got {self.alpha!r}.")

    def plan(self, count: int) -> tuple[Step, ...]:
        """128 candidates, α 0.3: 90, 63, 45, 32."""
        keeps = {}
        left = count
        for depth in self.depths[:-1]:
            left -= math.floor(self.alpha * left + _ROUNDING)
            keeps[depth] = left
        return _plan(self.depths, keeps, count)


@dataclass(frozen=True, slots=True)
class KeepCounts:
    """A number of candidates after each depth in `keeps`; without any, the last depth alone."""

    depths: tuple[int, ...]
    keeps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        for step in self.keeps:
            if step.depth not in self.depths[:-1]:
                raise InputError(
                    f"keeps must be at the depths {_listed(self.depths[:-1])}, got {step.depth}. "
                    f"Depth {self.depths[-1]} is the last and keeps all that reach it."
                )
            if step.keep < 1:
                raise InputError(f"keep must be at least 1, got {step.keep}.")
        for before, after in pairwise(self.keeps):
            if after.depth <= before.depth or after.keep > before.keep:
                raise InputError(
                    "keeps must have rising depths and must not rise, got "
                    f"{after.depth}:{after.keep} after {before.depth}:{before.keep}."
                )

    def plan(self, count: int) -> tuple[Step, ...]:
        """The keeps as given, where there are more candidates than that."""
        return _plan(self.depths, {step.depth: step.keep for step in self.keeps}, count)


@dataclass(frozen=True, slots=True)
class TunedRow:
    """The keeps by depth that were tuned for lists of `count` candidates."""

    count: int
    keeps: tuple[Step, ...]

    def at(self, depth: int) -> int:
        """How many candidates are left after that depth."""
        before = [step.keep for step in self.keeps if step.depth <= depth]
        return min([self.count, *before])


@dataclass(frozen=True, slots=True)
class TunedSchedule:
    """
    Keeps tuned for some list lengths.

    Between two of them, and from one candidate to the first, log keep is linear in log count; past
    the last, the line is extended.
    """

    depths: tuple[int, ...]
    rows: tuple[TunedRow, ...]
    stage: float = 0.0
    """The fixed cost of a step, in layers of one candidate."""
    cutoffs: tuple[tuple[int, Cutoff], ...] = ()
    """Depths and their cutoffs."""

    def plan(self, count: int) -> tuple[Step, ...]:
        """
        Interpolated keeps, rounded up, without the steps that cost more than they save.

        A step with a cutoff is left out only if the cutoff cannot drop anything.
        """
        keeps = {depth: self._keep(depth, count) for depth in self.depths[:-1]}
        plan = _without_costly_steps(_plan(self.depths, keeps, count), count, self.stage)
        return _with_cutoffs(plan, dict(self.cutoffs), count)

    def _keep(self, depth: int, count: int) -> int:
        points = [(1, 1), *((row.count, row.at(depth)) for row in self.rows)]
        after = next((at for at, point in enumerate(points) if point[0] >= count), len(points) - 1)
        (n0, k0), (n1, k1) = points[max(1, after) - 1], points[max(1, after)]
        slope = math.log(k1 / k0) / math.log(n1 / n0)
        if count > n1:
            n0, k0, slope = n1, k1, min(1.0, max(0.0, slope))
        on_line: float = k0 * (count / n0) ** slope
        return math.ceil(on_line - _ROUNDING)

    @classmethod
    def from_config(cls, depths: Sequence[int], config: Mapping[str, Any]) -> TunedSchedule:
        """From the `schedule` of a model folder."""
        try:
            rows = tuple(
                TunedRow(
                    int(row["count"]),
                    tuple(Step(int(depth), int(keep)) for depth, keep in row["keeps"].items()),
                )
                for row in config["rows"]
            )
            for row in rows:
                KeepCounts(tuple(depths), row.keeps)
            counts = [1, *(row.count for row in rows)]
            if len(counts) < 2 or any(b <= a for a, b in pairwise(counts)):
                raise ValueError("counts must rise from 2 or more")
            stage = float(config.get("stage", 0.0))
            if not 0 <= stage < math.inf:
                raise ValueError(f"stage must be at least 0, got {stage}")
            cutoffs = {
                int(depth): Cutoff(float(own["margin"]), float(own["logit"]), int(own["keep"]))
                for depth, own in config.get("cutoffs", {}).items()
            }
            KeepCounts(tuple(depths), tuple(Step(at, 1) for at in sorted(cutoffs)))
            if any(own.keep < 1 for own in cutoffs.values()):
                raise ValueError(f"a cutoff must keep at least 1, got {cutoffs}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(
                'A schedule must have the form {"rows": [{"count": 400, "keeps": {"4": 60}}]}, '
                f"with depths out of {_listed(depths)}: {error}"
            ) from error
        return cls(tuple(depths), rows, stage, tuple(sorted(cutoffs.items(), key=itemgetter(0))))

    def to_config(self) -> dict[str, Any]:
        """What `from_config` reads."""
        rows = [
            {"count": row.count, "keeps": {str(step.depth): step.keep for step in row.keeps}}
            for row in self.rows
        ]
        config: dict[str, Any] = {"rows": rows, "stage": self.stage}
        if self.cutoffs:
            config["cutoffs"] = {str(depth): asdict(own) for depth, own in self.cutoffs}
        return config


def candidate_layers(plan: Sequence[Step], count: int) -> int:
    """The cost of a plan for `count` candidates."""
    steps = [Step(0, count), *plan]
    return sum(before.keep * (step.depth - before.depth) for before, step in pairwise(steps))


def parse_keeps(text: str, depths: Sequence[int]) -> tuple[Step, ...]:
    """
    `"90,40,10"`: after the first, second and third classifier; `"4:90,8:10"`: after these layers.

    The two forms do not mix.
    """
    parts = [part.strip() for part in text.split(",")]
    if all(re.fullmatch(r"\d+", part) for part in parts) and len(parts) < len(depths):
        return tuple(Step(depth, int(keep)) for depth, keep in zip(depths, parts, strict=False))
    if all(re.fullmatch(r"\d+:\d+", part) for part in parts):
        pairs = [part.split(":") for part in parts]
        return tuple(Step(int(depth), int(keep)) for depth, keep in pairs)
    raise InputError(
        f"keeps must be at most {len(depths) - 1} numbers, as in '90,40,10', or DEPTH:NUMBER, as "
        f"in '{depths[0]}:90', with commas between; got {text!r}."
    )


def _plan(depths: Sequence[int], keeps: Mapping[int, int], count: int) -> tuple[Step, ...]:
    """The steps that drop something, and the last step."""
    steps = []
    left = count
    for depth in depths[:-1]:
        keep = max(1, min(left, keeps.get(depth, left)))
        if keep < left:
            steps.append(Step(depth, keep))
            left = keep
    return (*steps, Step(depths[-1], left))


def _without_costly_steps(plan: tuple[Step, ...], count: int, stage: float) -> tuple[Step, ...]:
    """
    The plan without the steps that cost more than they save.

    A step saves the layers between its depth and the next one, for the candidates that it drops.
    The step that saves least is removed first, because its neighbours then save more.
    """
    steps = [Step(0, count), *plan]
    while len(steps) > 2:
        saved = [
            (before.keep - step.keep) * (after.depth - step.depth)
            for before, step, after in zip(steps, steps[1:], steps[2:], strict=False)
        ]
        least = min(range(len(saved)), key=saved.__getitem__)
        if saved[least] >= stage:
            break
        del steps[least + 1]
    last = Step(steps[-1].depth, steps[-2].keep)  # it keeps all that reach it
    return (*steps[1:-1], last)


def _with_cutoffs(
    plan: tuple[Step, ...], cutoffs: Mapping[int, Cutoff], count: int
) -> tuple[Step, ...]:
    """The plan with a step at every depth whose cutoff may drop something."""
    by_depth = {step.depth: step for step in plan}
    steps, left = list[Step](), count
    for depth in sorted(by_depth.keys() | cutoffs.keys()):
        step, cutoff = by_depth.get(depth, Step(depth, left)), cutoffs.get(depth)
        if cutoff is not None and step.keep > cutoff.keep:
            steps.append(replace(step, cutoff=cutoff))
        elif depth in by_depth:
            steps.append(step)
        left = step.keep
    return tuple(steps)


def _listed(depths: Iterable[int]) -> str:
    return ", ".join(map(str, depths)) or "none"
