"""The reader learns where answers start and end; research/notes/cascade.md has what it came to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ...errors import InputError
from ..cascade.reading import Reading, ReadingSet, reading_loss, taught_loss
from ..packed.packing import Packed, pack
from ..packed.templates import PairTemplate
from .network import AdaptedReader

__all__ = ["ReaderRecipe", "fit_reader"]


@dataclass(frozen=True, slots=True)
class ReaderRecipe:
    """AdamW under a triangular rate."""

    epochs: int = 3
    rate: float = 1e-3
    """The peak of the learning rate of the thin matrices."""
    small_rate: float = 1e-4
    """The same of biases, norms and the last line."""
    batch: int = 32
    """Paragraphs a step."""
    wrong: float = 0.1
    """The share of questions that get a paragraph without their answer."""
    taught: float = 0.5
    """How much teachers count, where there are any; the labels count the rest."""
    rising: float = 0.06
    """The part of all steps in which the rate rises."""
    seconds: float = math.inf
    """When the rate is at its lowest and the training ends, whatever is left of it."""
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "rate", "small_rate", "batch", "rising", "seconds", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}.")


def fit_reader(
    reader: AdaptedReader,
    examples: ReadingSet,
    template: PairTemplate,
    recipe: ReaderRecipe,
    *,
    teachers: Sequence[AdaptedReader] = (),
    on_step: Callable[[int, int, float], None] = lambda _done, _of, _loss: None,
) -> AdaptedReader:
    """
    Train in place; the mean of what the teachers hold for likely is learnt beside the labels.

    `on_step` gets the steps done, all steps, and the loss.
    """
    torch.manual_seed(recipe.seed)
    random = np.random.default_rng(recipe.seed)
    device = next(reader.parameters()).device
    groups = [(reader.thin(), recipe.rate), (reader.rest(), recipe.small_rate)]
    optimiser = torch.optim.AdamW(
        [{"params": weights, "peak": rate} for weights, rate in groups],
        lr=recipe.rate, eps=1e-6, weight_decay=0.0,
    )  # fmt: skip
    a_pass = max(1, len(examples) // recipe.batch)
    total, begun = recipe.epochs * a_pass, time.perf_counter()
    reader.train()
    for step in range(total):
        done = max(step / total, (time.perf_counter() - begun) / recipe.seconds)
        if done >= 1:
            break
        if step % a_pass == 0:
            order = random.permutation(len(examples))
        at = step % a_pass * recipe.batch
        drawn = examples.draw(order[at : at + recipe.batch], random, wrong=recipe.wrong)
        share = min(done / recipe.rising, (1 - done) / (1 - recipe.rising))
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * share
        batch = pack(
            examples.table, drawn.questions, drawn.paragraphs, template,
            limit=examples.limit, window=drawn.window, device=device,
        )  # fmt: skip
        loss = _loss(reader, batch, drawn, teachers, recipe.taught)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(reader.own.parameters(), recipe.clip)
        optimiser.step()
        on_step(step + 1, total, float(loss.detach()))
    return reader.eval()


def _loss(
    reader: AdaptedReader,
    batch: Packed,
    drawn: Reading,
    teachers: Sequence[AdaptedReader],
    taught: float,
) -> torch.Tensor:
    spans = torch.from_numpy(drawn.spans).to(batch.tokens.device)
    ends = reader(batch)
    by_label = reading_loss(ends, batch, spans, torch.ones(len(spans), device=ends.device))
    if not teachers:
        return by_label
    with torch.no_grad():
        told = [teacher(batch) for teacher in teachers]
    return (1 - taught) * by_label + taught * taught_loss(ends, batch, told)
