"""The search of cutoffs: its model of a cascade, and that its result is what ships."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from askline import Cascade
from askline.engine.layerwise import LayerwiseEncoder, LayerwiseRun
from askline.engine.numpy_ops import FloatArray, IntArray
from askline.rankers.cascade import shipped_folder
from askline.rankers.schedule import Cutoff, TunedRow, TunedSchedule
from research.benchmarks import common
from research.benchmarks.cutoffs import Lists

DEPTHS = (2, 4, 6, 8)
CUTOFFS = {2: Cutoff(2.0, -0.5, 4), 4: Cutoff(1.5, -1.0, 2), 6: Cutoff(1.0, 0.0, 1)}


class KnownLogits(LayerwiseEncoder, LayerwiseRun):
    """An encoder and its run whose logits (depths, candidates) are known."""

    def __init__(self, logits: FloatArray) -> None:
        self.logits = logits

    @property
    def depths(self) -> tuple[int, ...]:
        return DEPTHS

    @property
    def tokens(self) -> IntArray:
        return np.ones(self.logits.shape[1], np.int64)

    def begin(self, question: str, candidates: Sequence[str]) -> LayerwiseRun:
        assert question
        assert len(candidates) == self.logits.shape[1]
        return self

    def advance(
        self,
        rows: IntArray,
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: IntArray | None = None,
    ) -> FloatArray:
        assert stop is None
        assert waiting is None
        return np.asarray(self.logits[DEPTHS.index(depth), rows])


def test_the_model_of_the_search_ranks_as_a_cascade_does() -> None:
    schedule = TunedSchedule(DEPTHS, (TunedRow(80, ()),), cutoffs=tuple(sorted(CUTOFFS.items())))
    random = np.random.default_rng(3)
    sizes = np.array([1, 3, 9, 9, 20])
    logits = np.full((len(DEPTHS), len(sizes), 20), -1e9)
    for number, size in enumerate(sizes):
        logits[:, number, :size] = random.normal(0.0, 2.0, (len(DEPTHS), size))
    tokens = (np.arange(20) < sizes[:, None]).astype(float)
    labels = random.random((2, *tokens.shape)) < 0.5
    lists = Lists(schedule, logits, labels & (tokens > 0), tokens, sizes)
    _, places = lists.run(CUTOFFS, timed=False)
    for number, size in enumerate(sizes):
        own = logits[:, number, :size].astype(np.float32)
        hits = Cascade(KnownLogits(own), schedule).rank("a question", ["text"] * int(size))
        assert np.argsort(places[number, :size]).tolist() == [hit.index for hit in hits]


def test_the_shipped_cutoffs_are_those_that_the_search_found() -> None:
    schedule = Cascade.load(shipped_folder()).schedule
    assert isinstance(schedule, TunedSchedule)
    assert schedule.to_config()["cutoffs"] == common.load("cutoffs")["cutoffs"]
