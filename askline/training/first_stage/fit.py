"""The training of the first-stage filter."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.light_config import FEATURES, FilterLayout
from ..schedule import slanted_triangular
from .lists import Example
from .network import Filter, FilterBatch

__all__ = ["FilterRecipe", "fit", "tensors_of"]


@dataclass(frozen=True, slots=True)
class FilterRecipe:
    """The values that the shipped filter was made with; chosen on dev sets."""

    epochs: int = 2
    rate: float = 2e-3
    batch: int = 32
    dropout: float = 0.1
    decay: float = 1e-4
    seed: int = 0


def fit(
    lists: Sequence[Example],
    table: tuple[NDArray[np.float32], NDArray[np.float32]],
    layout: FilterLayout,
    recipe: FilterRecipe,
    *,
    tell: Callable[[int, int, float], object] = lambda *_: None,
) -> Filter:
    """
    Minimise the negative log of the share that a list's answers get of its softmax.

    `table` holds the vectors and rarities of the lists' vocabulary; `tell` hears step, steps and
    loss after every step. Lists of like size are taken together. CPU and one thread will do.
    """
    torch.manual_seed(recipe.seed)
    draw = random.Random(recipe.seed)
    vectors, rarity = (torch.from_numpy(part) for part in table)
    network = Filter(layout, dropout=recipe.dropout)
    _start(network, lists)
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    steps = [batch for _ in range(recipe.epochs) for batch in _batches(lists, recipe.batch, draw)]
    for step, chosen in enumerate(steps):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * slanted_triangular(step, len(steps))
        batch = FilterBatch.of([lists[place] for place in chosen])
        loss = _loss(network(batch, vectors, rarity), batch)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        tell(step + 1, len(steps), loss.item())
    return network.eval()


def tensors_of(network: Filter) -> dict[str, NDArray[np.float32]]:
    """The weights by the names of `FilterLayout.shapes`."""
    names = {"mean": "features.mean", "scale": "features.scale"}
    return {
        names.get(name, name): value.numpy().copy() for name, value in network.state_dict().items()
    }


def _start(network: Filter, lists: Sequence[Example]) -> None:
    """Features at mean 0 and deviation 1, and a lexical ranker to start from."""
    seen = np.concatenate([one.features for one in lists])
    network.mean.copy_(torch.from_numpy(seen.mean(axis=0)))
    network.scale.copy_(torch.from_numpy(seen.std(axis=0) + 1e-3))
    weight = torch.zeros(len(FEATURES))
    weight[FEATURES.index("covered_here")] = 10.0
    weight[FEATURES.index("bm25")] = 5.0
    with torch.no_grad():
        network.direct.weight.copy_((weight * network.scale)[None])


def _batches(lists: Sequence[Example], size: int, draw: random.Random) -> list[list[int]]:
    order = sorted(
        range(len(lists)), key=lambda place: (len(lists[place].features) // 6, draw.random())
    )
    batches = [order[first : first + size] for first in range(0, len(order), size)]
    draw.shuffle(batches)
    return batches


def _loss(scores: Tensor, batch: FilterBatch) -> Tensor:
    weighed = (scores + batch.log_weight).masked_fill(~batch.present, -1e4)
    shares = weighed.log_softmax(1).masked_fill(~batch.answer, -1e4)
    return -shares.logsumexp(1).mean()
