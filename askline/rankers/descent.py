"""
Questions on their way down a cascade: who is left, who was dropped where, what it cost.

Several go down together: at each depth, those that have a step there are computed in one go, and
the others wait.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import RankerError
from ..runtime.staged import SharedRun
from ..types import Cost, Hit, Ranking, StageReport
from .deadline import Stop
from .schedule import Step

if TYPE_CHECKING:
    from .cascade import Cascade

__all__ = ["Descent", "descend"]

IntArray = NDArray[np.int64]


class Descent:
    """One question on its way down. Those that are left stand best first, as far as is known."""

    def __init__(
        self, cascade: Cascade, tokens: IntArray, order: Sequence[int] | None, start: float
    ) -> None:
        self.cascade = cascade
        self.tokens = tokens
        self.steps = {step.depth: step for step in cascade.schedule.plan(len(tokens))}
        self.left: IntArray = np.arange(len(self.tokens)) if order is None else np.asarray(order)
        self.chance = np.zeros(len(self.tokens))  # of the last classifier that judged it
        self.judged = np.zeros(len(self.tokens), bool)
        self.stage = 0  # the classifier that decided the order of those left
        self.depth = 0
        self.planned = len(self.left)  # how many would be left by now if time had not run out
        self.cut_short = False
        self.dropped: list[Hit] = []
        self.reports: list[StageReport] = []
        self.since = start  # the first stage pays for tokenising

    def has_ahead(self, depth: int) -> bool:
        """Whether a step at this depth or a deeper one is still to be taken."""
        return not self.cut_short and max(self.steps) >= depth

    def take(self, step: Step, logits: NDArray[np.float32], time_is_up: Stop | None) -> None:
        """Drop what this step does not keep; `logits` are of those left, nan if time was up."""
        if self.cut_short:
            self._skip(step)
        else:
            self._judge(step, logits, time_is_up)
        self.planned = step.keep

    def ranking(self) -> Ranking:
        """The hits and reports; what was never judged is at the end."""
        hits = (*self._hits(self.left), *self.dropped)
        return Ranking(hits, tuple(self.reports), int((~self.judged).sum()))

    def _judge(self, step: Step, logits: NDArray[np.float32], time_is_up: Stop | None) -> None:
        seen = ~np.isnan(logits)
        self._check(seen, step, time_is_up)
        reached = self.left[seen]
        self.chance[reached] = self.cascade.chances(step.depth, logits[seen])
        self.judged[reached] = True
        self.cut_short = len(reached) < len(self.left)
        entered = len(self.left)
        if len(reached):
            self.stage = len(self.reports)
            self._sort()
        if not self.cut_short:
            self.dropped = [*self._hits(self.left[step.keep :]), *self.dropped]
            self.left = self.left[: step.keep]
        self._report(step, entered, reached)
        self.depth = step.depth

    def _sort(self) -> None:
        # Judged before not judged, then by chance, then as given. Where time ran out in the middle,
        # chances of two depths stand side by side: that is what their calibration is good for.
        keys = (self.left, -self.chance[self.left], ~self.judged[self.left])
        self.left = self.left[np.lexsort(keys)]

    def _hits(self, rows: IntArray) -> list[Hit]:
        scores = self.chance[rows].tolist()
        return [
            Hit(row, score, self.stage) for row, score in zip(rows.tolist(), scores, strict=True)
        ]

    def _report(self, step: Step, entered: int, reached: IntArray) -> None:
        now = time.perf_counter()
        layers, full = step.depth - self.depth, self.cascade.encoder.layers
        cost = Cost(
            layers * len(reached),
            layers * int(self.tokens[reached].sum()),
            full * len(self.tokens),
            full * int(self.tokens.sum()),
        )
        name, skipped = self.cascade.at(step.depth), entered - len(reached)
        self.reports.append(
            StageReport(
                name, entered, len(self.left), now - self.since, skipped, cost, calibrated=True
            )
        )
        self.since = now

    def _skip(self, step: Step) -> None:
        """A classifier that was not begun: as many as the plan had for it were not judged."""
        name, count = self.cascade.at(step.depth), self.planned
        self.reports.append(StageReport(name, count, step.keep, 0.0, skipped=count))

    def _check(self, seen: NDArray[np.bool_], step: Step, time_is_up: Stop | None) -> None:
        if time_is_up is None and not seen.all():
            row = int(self.left[int(seen.argmin())])
            raise RankerError(f"{self.cascade.at(step.depth)} gave candidate {row} the score NaN.")


def descend(run: SharedRun, descents: Sequence[Descent], time_is_up: Stop | None) -> None:
    """Take all these questions, whose candidates follow each other in the run, to their end."""
    counts = [len(descent.tokens) for descent in descents]
    bases = np.cumsum([0, *counts])[:-1]
    for depth in sorted({depth for descent in descents for depth in descent.steps}):
        rows, waiting = list[IntArray](), list[IntArray]()
        for base, own in zip(bases.tolist(), descents, strict=True):
            if own.has_ahead(depth):
                (rows if depth in own.steps else waiting).append(base + own.left)
        logits = np.full(sum(counts), np.nan, np.float32)  # of all; those not asked for stay so
        if rows:
            asked = _in_turn(rows) if time_is_up is not None else np.concatenate(rows)
            others = np.concatenate(waiting) if waiting else None
            logits[asked] = run.advance(asked, depth, stop=time_is_up, waiting=others)
        for own, base in zip(descents, bases.tolist(), strict=True):
            if depth in own.steps:
                own.take(own.steps[depth], logits[base + own.left], time_is_up)


def _in_turn(rows: Sequence[IntArray]) -> IntArray:
    """The most promising of each question first, so that time runs out on the others."""
    shares = [np.arange(len(own)) / len(own) for own in rows]
    return np.asarray(np.concatenate(rows)[np.argsort(np.concatenate(shares), kind="stable")])
