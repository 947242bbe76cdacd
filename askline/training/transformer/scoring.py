"""Scores of many pairs: length-sorted batches under a token budget, in half precision on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...evaluation import Run, judgements, score_run
from ...evaluation.measures import FloatArray
from ...rankers.base import by_score
from ...types import QuestionSet
from .network import PairNetwork
from .pairs import PairSet, token_batches

__all__ = ["autocast", "list_scores", "measure", "measure_scores", "pair_scores"]

SCORING_BUDGET = 32_768
"""Padded tokens in one forward pass where no gradient is kept."""
MEASURES = ("MAP", "MRR", "P@1")


def autocast(device: torch.device) -> AbstractContextManager[object]:
    """bfloat16 for the matrix products on a GPU; on a CPU nothing changes."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def pair_scores(
    network: PairNetwork, pairs: PairSet, rows: NDArray[np.int64], *, budget: int
) -> Tensor:
    """(rows,) in the order of `rows`, whatever the batches are; gradients flow if they are on."""
    device = next(network.parameters()).device
    packed = device.type == "cuda" and network.packs
    parts, places = [], []
    for batch in token_batches(pairs.lengths(rows), budget):
        places.append(batch)
        if packed:
            parts.append(network.packed(pairs.pack(rows[batch], device)))
        else:
            with autocast(device):
                parts.append(network(pairs.collate(rows[batch], device)))
    back = np.argsort(np.concatenate(places), kind="stable")
    return torch.cat(parts)[torch.from_numpy(back).to(device)]


def list_scores(
    network: PairNetwork, pairs: PairSet, *, budget: int = SCORING_BUDGET
) -> Iterator[FloatArray]:
    """The scores of each question's candidates, question after question."""
    network.eval()
    with torch.inference_mode():
        scores = pair_scores(network, pairs, np.arange(len(pairs.tokens)), budget=budget)
    values = scores.double().cpu().numpy()
    for start, end in zip(pairs.offsets, pairs.offsets[1:], strict=False):
        yield values[start:end]


def measure(
    network: PairNetwork,
    questions: QuestionSet,
    pairs: PairSet,
    *,
    measures: tuple[str, ...] = MEASURES,
) -> dict[str, float]:
    """Measure → the mean over all questions, in percent. `pairs` are those of `questions`."""
    return measure_scores(questions, list_scores(network, pairs), measures=measures)


def measure_scores(
    questions: QuestionSet,
    scores: Iterable[FloatArray],
    *,
    measures: tuple[str, ...] = MEASURES,
) -> dict[str, float]:
    """The same, of scores that are there: those of each question's candidates."""
    run = Run.from_hits("network", zip(questions, map(by_score, scores), strict=True))
    values = score_run(run, judgements(questions), measures=measures)
    return {name: 100 * float(each.mean()) for name, each in values.items()}
