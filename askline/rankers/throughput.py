"""
How fast a cascade runs here, and how many candidates it can take to the end before a deadline.

A few of the most promising candidates at full depth are worth more than many that the first
classifier has glanced at (`docs/schedules.md` has figures). So where the time is known, no more are
begun than will come through all of their schedule; the others are not even tokenised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..types import Hit, Ranking, StageReport
from .base import Asked
from .schedule import Schedule, candidate_layers

__all__ = [
    "Begun",
    "Pace",
    "reach",
]

_SPARE = 0.1  # of the time left, for what the pace does not know: the batch under way, other work
_DOUBTED = 0.8


class Pace:
    """
    Seconds for a character of text and a layer, tokenising included, as it was lately.

    Characters, because tokens are not known before they are paid for.
    """

    def __init__(self, each: float | None = None) -> None:
        self.each = each
        """None as long as nothing was seen."""

    def saw(self, work: float, seconds: float) -> None:
        """So many characters times layers in so many seconds; a sudden change counts half."""
        if work > 0:
            now = seconds / work
            self.each = now if self.each is None else (self.each + now) / 2

    def doubt(self) -> None:
        """Nobody began at this pace; believed for ever, one slow moment would let nobody again."""
        if self.each is not None:
            self.each *= _DOUBTED

    def work_in(self, seconds: float) -> float:
        """How much can be done in that time: everything, where the pace is not known."""
        if self.each is None:
            return math.inf
        return max(0.0, (1 - _SPARE) * seconds) / max(self.each, 1e-12)


def reach(schedule: Schedule, sizes: Sequence[int], work: float) -> int:
    """How many candidates, in this order and of these sizes, may begin and come to the end."""
    ends = np.cumsum(sizes)
    most, too_many = 0, len(sizes) + 1
    while too_many - most > 1:
        count = (most + too_many) // 2
        layers = candidate_layers(schedule.plan(count), count)
        if layers * ends[count - 1] / count <= work:
            most = count
        else:
            too_many = count
    return most


class Begun(NamedTuple):
    """The candidates of a question that are begun, out of all."""

    asked: Asked
    """Of them alone, in the original order."""
    places: Sequence[int]
    rest: Sequence[int]
    """The places of the others, most promising first."""

    @classmethod
    def of(cls, asked: Asked, schedule: Schedule, work: float) -> Begun:
        """As many of the most promising as can be taken to the end by that much work."""
        everyone = range(len(asked.candidates))
        order = list(everyone if asked.order is None else asked.order)
        sizes = [len(asked.question) + len(asked.candidates[place]) for place in order]
        count = reach(schedule, sizes, work) if work < math.inf else len(order)
        if count == len(order):
            return cls(asked, everyone, ())
        places = sorted(order[:count])
        at = {place: own for own, place in enumerate(places)}
        texts = [asked.candidates[place] for place in places]
        own_order = [at[place] for place in order[:count]]
        return cls(Asked(asked.question, texts, own_order), places, order[count:])

    def whole(self, part: Ranking) -> Ranking:
        """The ranking of those begun, with the others behind them, not judged."""
        if not self.rest:
            return part
        hits = [replace(hit, index=self.places[hit.index]) for hit in part.hits]
        hits += [Hit(place, 0.0, 0) for place in self.rest]
        more, times = len(self.rest), len(hits) / max(1, len(self.places))
        first, *later = (
            replace(stage, cost=stage.cost and stage.cost.among(times)) for stage in part.stages
        )
        first = replace(first, entered=first.entered + more, skipped=first.skipped + more)
        return Ranking(tuple(hits), (first, *later), part.unjudged + more)

    def none(self, name: str) -> Ranking:
        """The ranking where there is time for nobody."""
        return self.whole(Ranking((), (StageReport(name, 0, len(self.rest), 0.0),)))
