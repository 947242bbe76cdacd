"""
A reader that sees question and paragraph together: the teacher of the two that do not.

It never ships. It scores a paragraph's candidates for a question, and marks the answer in sentences
that come with a question but without the answer's place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ...phrases.tokenization import Window
from ..recipe import Epoch
from .batches import like_lengths, pad
from .encoders import accepted, second_type
from .extractor import BARRED
from .fitting import OnStep, PhraseRecipe, device_of, fit, precision
from .material import Material

__all__ = ["Reader", "Reading", "read", "train_reader"]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A question and the window to read, with the spans that answer where they are known."""

    question: NDArray[np.int32]
    window: Window
    spans: NDArray[np.int32]


class Reader(nn.Module):
    """Log-probabilities of each token being the first and the last of the answer."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.ends = nn.Linear(encoder.config.hidden_size, 2)

    def forward(self, readings: Sequence[Reading]) -> tuple[Tensor, Tensor]:
        """Two tables (readings, tokens of the longest window); columns are the window's tokens."""
        device = device_of(self)
        # The window's first special token is dropped: the question ends with the one between.
        rows = [np.concatenate([one.question, one.window.tokens[1:]]) for one in readings]
        tokens, inside = pad(rows, device)
        shifts = torch.tensor([len(one.question) - 1 for one in readings], device=device)
        later = torch.arange(tokens.shape[1], device=device) > shifts[:, None]
        batch = {"input_ids": tokens, "attention_mask": inside.long()}
        batch["token_type_ids"] = (later & inside).long() * second_type(self.encoder)
        states = self.encoder(**accepted(self.encoder, batch)).last_hidden_state
        logits = self.ends(states).float()  # (readings, tokens, 2)
        flags = [(one.window.ends > one.window.starts).astype(np.int32) for one in readings]
        real, _ = pad(flags, device)  # (readings, tokens of the longest window)
        places = torch.arange(real.shape[1], device=device) + shifts[:, None]
        places = places.clamp(max=tokens.shape[1] - 1)
        logits = logits.gather(1, places[..., None].expand(-1, -1, 2))
        logits = logits.masked_fill(real[..., None] == 0, BARRED)
        scores = functional.log_softmax(logits, 1)
        return scores[..., 0], scores[..., 1]

    def loss(self, batch: Sequence[Reading]) -> Tensor:
        """Cross-entropy to the spans, ends taken apart."""
        firsts, lasts = self(batch)
        target = np.zeros((2, *firsts.shape), np.float32)
        for row, one in enumerate(batch):
            for span in one.spans:
                target[[0, 1], row, span] += 1 / len(one.spans)
        first, last = torch.from_numpy(target).to(firsts.device)
        likely: Tensor = (first * firsts + last * lasts).sum()
        return -likely / len(batch)


def readings(material: Iterable[Material]) -> list[Reading]:
    """Every question with its window."""
    return [
        Reading(asked.tokens, one.window, asked.spans)
        for one in material
        for asked in one.questions
    ]


def train_reader(
    network: Reader,
    material: Sequence[Reading],
    recipe: PhraseRecipe,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: OnStep | None = None,
) -> list[Epoch]:
    """Train in place."""
    lengths = [len(one.question) + len(one.window) for one in material]

    def batches(rng: np.random.Generator) -> Iterable[list[Reading]]:
        for places in like_lengths(lengths, recipe.batch, rng):
            yield [material[place] for place in places]

    steps = -(-len(material) // recipe.batch)
    return fit(
        network, batches, network.loss, recipe, steps=steps, on_epoch=on_epoch, on_step=on_step
    )


@torch.no_grad()
def read(
    network: Reader, material: Sequence[Reading], *, batch: int = 128
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Log-probabilities of first and last tokens, one pair of arrays a reading."""
    network.eval()
    found: list[Any] = [None] * len(material)
    order = np.argsort([len(one.question) + len(one.window) for one in material], kind="stable")
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        with precision(device_of(network)):
            firsts, lasts = network([material[place] for place in places])
        tables = firsts.float().cpu().numpy(), lasts.float().cpu().numpy()
        for row, place in enumerate(places):
            size = len(material[place].window)
            found[place] = (tables[0][row, :size].copy(), tables[1][row, :size].copy())
    return found
