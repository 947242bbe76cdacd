"""
The state of one request on its way through the stages of a pipeline.

The rules: a stage gets the survivors of the stage before it, in their original order. Documents
that a stage drops follow the survivors, in the order of the stage that dropped them, so every
document keeps a place. With a deadline, a document that was not scored in time keeps the place that
the stage before gave it.
"""

from __future__ import annotations

from dataclasses import replace

from ..types import Hit, Ranking, StageReport
from .requests import Request

__all__ = ["PipelineState"]


class PipelineState:
    """Survivors, dropped documents and stage reports of one request."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._order = request.order
        self._hits: tuple[Hit, ...] = ()  # the survivors, best first, once a stage has scored them
        self._dropped: tuple[Hit, ...] = ()
        self._reports: list[StageReport] = []
        self._unscored = 0
        self.survivors = list(range(len(request.texts)))
        """Positions in the request of the documents that go on, in the original order."""

    def next_request(self) -> Request:
        """What the next stage ranks: the survivors, in the original order."""
        return self._request.select(self.survivors, self._order)

    def update(self, part: Ranking, *, keep: int | None) -> None:
        """Take over a stage's ranking of the survivors; only the best `keep` go on."""
        survivors, first_stage = self.survivors, len(self._reports)
        hits = tuple(
            replace(hit, index=survivors[hit.index], stage=hit.stage + first_stage)
            for hit in part.hits
        )
        if part.unscored and self._hits:
            scored = hits[: -part.unscored]
            seen = {hit.index for hit in scored}
            hits = (*scored, *(hit for hit in self._hits if hit.index not in seen))
        elif part.unscored:
            self._unscored = part.unscored
        scale = len(self._request.texts) / max(1, len(survivors))
        self._reports += [
            replace(stage, cost=stage.cost and stage.cost.relative_to(scale))
            for stage in part.stages
        ]
        if keep is not None:
            hits, self._dropped = hits[:keep], hits[keep:] + self._dropped
        self._hits = hits
        self.survivors = sorted(hit.index for hit in hits)
        place = {position: own for own, position in enumerate(self.survivors)}
        self._order = [place[hit.index] for hit in hits]

    def skip(self, stage: str, *, out_of_time: bool) -> None:
        """Report a stage that did not run: time was up, or it would have dropped nothing."""
        count = len(self.survivors)
        skipped = count if out_of_time else 0
        self._reports.append(StageReport(stage, count, count, 0.0, skipped=skipped))

    def ranking(self) -> Ranking:
        """The hits and reports of all stages."""
        return Ranking(self._hits + self._dropped, tuple(self._reports), self._unscored)
