"""One question on its way down a cascade: who is left, who was dropped where, what it cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import RankerError
from ..runtime.staged import StagedRun
from ..types import Cost, Hit, Ranking, StageReport
from .deadline import Stop
from .schedule import Step

if TYPE_CHECKING:
    from .cascade import Cascade

__all__ = ["Descent"]

IntArray = NDArray[np.int64]


class Descent:
    """One question on its way down. Those that are left stand best first, as far as is known."""

    def __init__(
        self, cascade: Cascade, run: StagedRun, order: Sequence[int] | None, start: float
    ) -> None:
        self.cascade = cascade
        self.run = run
        self.tokens = run.tokens
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

    def take(self, step: Step, time_is_up: Stop | None) -> None:
        """Run to the depth of this step and drop what it does not keep; less, if time is up."""
        if self.cut_short:
            self._skip(step)
        else:
            self._run(step, time_is_up)
        self.planned = step.keep

    def ranking(self) -> Ranking:
        """The hits and reports; what was never judged is at the end."""
        hits = (*self._hits(self.left), *self.dropped)
        return Ranking(hits, tuple(self.reports), int((~self.judged).sum()))

    def _run(self, step: Step, time_is_up: Stop | None) -> None:
        logits = self.run.advance(self.left, step.depth, stop=time_is_up)
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
