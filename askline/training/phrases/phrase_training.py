"""One loop for the extractor, the reader and the encoder: AdamW under a slanted rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import InputError
from ..checkpoint import Epoch
from ..optimizer import slanted_triangular
from .phrase_examples import ahead

__all__ = [
    "OnStep",
    "PhraseRecipe",
    "device_of",
    "fit",
    "precision",
]

_Batch = TypeVar("_Batch")

OnStep = Callable[[int, int], None]
"""Hears after every step how many are done, and of how many in all epochs."""


@dataclass(frozen=True, slots=True)
class PhraseRecipe:
    """How long, how fast, how much at once."""

    epochs: int = 6
    rate: float = 1e-4
    """The peak of the encoder's learning rate; new layers learn five times as fast."""
    batch: int = 32
    """Windows a step (for the reader: questions), with all that belongs to them."""
    decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    seconds: float | None = None
    """Reach the end of the schedule by then, whatever is left undone. The run then depends on the
    speed of the machine, so leave it out where a result must come again."""

    def __post_init__(self) -> None:
        for name in ("epochs", "rate", "batch", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}.")


def fit(
    network: nn.Module,
    batches: Callable[[np.random.Generator], Iterable[_Batch]],
    loss: Callable[[_Batch], Tensor],
    recipe: PhraseRecipe,
    *,
    steps: int,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: OnStep | None = None,
) -> list[Epoch]:
    """Train in place; `steps` are those of one epoch. The network is left in `eval` mode."""
    torch.manual_seed(recipe.seed)
    rng = np.random.default_rng(recipe.seed)
    optimiser = _optimiser(network, recipe)
    peaks = [group["lr"] for group in optimiser.param_groups]
    begun, step, history = time.monotonic(), 0, []
    for number in range(1, recipe.epochs + 1):
        network.train()
        total, count, since = torch.zeros((), device=device_of(network)), 0, time.monotonic()
        for batch in ahead(batches(rng)):
            done = step / (steps * recipe.epochs)
            if recipe.seconds is not None:
                done = max(done, (time.monotonic() - begun) / recipe.seconds)
            if done >= 1:
                break
            for group, peak in zip(optimiser.param_groups, peaks, strict=True):
                group["lr"] = peak * slanted_triangular(int(done * 10_000), 10_000, lowest=0.0)
            total += _step(network, optimiser, loss, batch, recipe.clip)
            step, count = step + 1, count + 1
            if on_step:
                on_step(step, steps * recipe.epochs)
        if not count:
            break
        network.eval()
        history.append(Epoch(number, float(total) / count, time.monotonic() - since, {}))
        if on_epoch:
            on_epoch(history[-1])
    network.eval()
    return history


def _step(
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    loss: Callable[[_Batch], Tensor],
    batch: _Batch,
    clip: float,
) -> Tensor:
    """The loss, left where it is: to read it here would wait for the device at each step."""
    optimiser.zero_grad(set_to_none=True)
    with precision(device_of(network)):
        value = loss(batch)
    value.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(network.parameters(), clip)
    optimiser.step()
    return value.detach()


def _optimiser(network: nn.Module, recipe: PhraseRecipe) -> torch.optim.Optimizer:
    """The encoder at its rate, what is new at five times that; no decay for one-row weights."""
    groups = []
    for new in (False, True):
        for flat in (False, True):
            chosen = [
                value
                for name, value in network.named_parameters()
                if name.startswith("encoder.") != new and (value.dim() < 2) == flat
            ]
            rate, decay = recipe.rate * (5 if new else 1), 0.0 if flat else recipe.decay
            groups.append({"params": chosen, "lr": rate, "weight_decay": decay})
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=device_of(network).type == "cuda")


def device_of(network: nn.Module) -> torch.device:
    """Where its weights are."""
    return next(network.parameters()).device


def precision(device: torch.device) -> AbstractContextManager[object]:
    """Half the bits where that is faster."""
    if device.type != "cuda":
        return nullcontext()
    return torch.autocast("cuda", dtype=torch.bfloat16)
