"""Scores of many pairs at every depth, and what they come to as rankings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...data import select
from ...errors import InputError
from ...evaluation import Run, judgements, score_run
from ...rankers.base import by_score
from ...types import QuestionSet
from ..packed.packing import Rows, TokenTable, pack
from ..packed.templates import PairTemplate
from .network import CascadeNetwork

__all__ = ["Dev", "measure", "score_pairs", "token_parts"]

BUDGET = 32_768
"""Tokens in one forward pass where no gradient is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Dev:
    """A set to measure on after each epoch: its questions with an answer."""

    questions: QuestionSet
    table: TokenTable
    template: PairTemplate
    first: Rows
    second: Rows
    limit: int = 256

    @classmethod
    def of(cls, questions: QuestionSet, tokeniser: Any, *, limit: int = 256) -> Dev:
        """Tokenise a set; questions without an answer are left out."""
        kept = select(questions, "answerable")
        if not kept.questions:
            raise InputError(f"{questions.name} has no question with an answer to measure on.")
        texts: dict[str, int] = {}
        first, second = [], []
        for question in kept:
            row = texts.setdefault(question.text, len(texts))
            for text in question.texts:
                first.append(row)
                second.append(texts.setdefault(text, len(texts)))
        table = TokenTable.of(list(texts), tokeniser)
        template = PairTemplate.of(tokeniser)
        return cls(kept, table, template, np.array(first), np.array(second), limit)


@torch.inference_mode()
def score_pairs(
    network: CascadeNetwork,
    table: TokenTable,
    template: PairTemplate,
    first: Rows,
    second: Rows,
    *,
    limit: int = 256,
    deepest: int | None = None,
    budget: int = BUDGET,
) -> NDArray[np.float32]:
    """(depths, pairs), whatever the batches are."""
    # A frozen encoder is not in training while its classifiers are: each part goes back alone.
    awake = [part for part in network.modules() if part.training]
    network.eval()
    device = next(network.parameters()).device
    lengths = np.minimum(table.lengths(first) + table.lengths(second) + template.extra, limit)
    parts, places = [], token_parts(lengths, budget)
    for rows in places:
        batch = pack(table, first[rows], second[rows], template, limit=limit, device=device)
        parts.append(network(batch, deepest=deepest).scores.float())
    back = np.argsort(np.concatenate(places), kind="stable")
    for part in awake:
        part.training = True
    found: NDArray[np.float32] = torch.cat(parts, 1).cpu().numpy()[:, back]
    return found


def token_parts(lengths: Rows, budget: int) -> list[Rows]:
    """Places of like length together, while their tokens fit the budget; one at least."""
    order = np.argsort(lengths, kind="stable")
    marks = np.cumsum(lengths[order]) // budget
    return [part for part in np.split(order, np.flatnonzero(np.diff(marks)) + 1) if len(part)]


def measure(
    network: CascadeNetwork, dev: Dev, *, measures: tuple[str, ...] = ("MAP", "P@1")
) -> dict[str, float]:
    """
    Measure → percent: the last classifier's under their own names, then the others' with a depth.

    `MAP` is at full depth, `MAP at 6` after six layers.
    """
    scores = score_pairs(network, dev.table, dev.template, dev.first, dev.second, limit=dev.limit)
    cuts = np.cumsum([len(question.candidates) for question in dev.questions])[:-1]
    found: dict[str, float] = {}
    truth = judgements(dev.questions)
    for depth, row in sorted(zip(network.shape.depths, scores, strict=True), reverse=True):
        hits = map(by_score, np.split(row.astype(np.float64), cuts))
        run = Run.from_hits("network", zip(dev.questions, hits, strict=True))
        last = depth == network.shape.depths[-1]
        for name, values in score_run(run, truth, measures=measures).items():
            found[name if last else f"{name} at {depth}"] = 100 * float(values.mean())
    return found
