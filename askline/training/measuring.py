"""A network on a dev set, measured as rankers are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from ..evaluation import Run, judgements, score_run
from ..evaluation.measures import FloatArray
from ..rankers.base import by_score
from ..types import QuestionSet
from .encoding import EncodedSet

__all__ = ["DevSet", "scores"]

_QUESTIONS_AT_ONCE = 16


@dataclass(frozen=True, slots=True, eq=False)
class DevSet:
    """The same questions as text and as numbers."""

    questions: QuestionSet
    encoded: EncodedSet
    measures: tuple[str, ...] = ("MAP", "MRR", "P@1")

    def values(self, network: nn.Module) -> dict[str, FloatArray]:
        """Measure → a fraction for each question."""
        hits = map(by_score, scores(network, self.encoded))
        run = Run.from_hits("network", zip(self.questions, hits, strict=True))
        return score_run(run, judgements(self.questions), measures=self.measures)

    def measure(self, network: nn.Module) -> dict[str, float]:
        """Measure → the mean over all questions, in percent."""
        return {name: 100 * float(each.mean()) for name, each in self.values(network).items()}


def scores(network: nn.Module, questions: EncodedSet) -> Iterator[FloatArray]:
    """The scores of each question's candidates, question after question."""
    network.eval()
    with torch.inference_mode():
        for at in range(0, len(questions), _QUESTIONS_AT_ONCE):
            batch = questions.batch(range(at, min(at + _QUESTIONS_AT_ONCE, len(questions))))
            found = network(batch).double().cpu()
            yield from (part.numpy() for part in found.split(batch.sizes))
