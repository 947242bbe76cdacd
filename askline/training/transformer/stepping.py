"""One step after another: gradients in pieces that fit the memory, and the optimiser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .crew import Crew
from .network import PairNetwork
from .pairs import PairSet
from .recipe import Phase, TransformerRecipe
from .scoring import SCORING_BUDGET, pair_scores

__all__ = ["Stepper"]

_SMALLEST_BUDGET = 512

_T = TypeVar("_T")


class Stepper:
    """A network with its optimiser. When memory runs out, it goes on in smaller pieces."""

    def __init__(
        self, network: PairNetwork, budget: int, crew: Crew, on_note: Callable[[str], None]
    ) -> None:
        self.network, self.budget, self.crew, self.on_note = network, budget, crew, on_note
        self.device = next(network.parameters()).device
        self.optimiser: torch.optim.Optimizer | None = None

    def start(self, recipe: TransformerRecipe) -> torch.optim.Optimizer:
        """A new optimiser: the weights go on from phase to phase, its state does not."""
        matrices = [p for p in self.network.parameters() if p.ndim > 1]
        others = [p for p in self.network.parameters() if p.ndim <= 1]
        groups = [
            {"params": matrices, "weight_decay": recipe.decay},
            {"params": others, "weight_decay": 0.0},  # biases and norms are not decayed
        ]
        fused = self.device.type == "cuda"
        self.optimiser = torch.optim.AdamW(groups, lr=recipe.rate, eps=1e-6, fused=fused)
        return self.optimiser

    def step(
        self, phase: Phase, chosen: NDArray[np.int64], rate: float, random: np.random.Generator
    ) -> Tensor:
        """Draw the lists of these questions and learn from them; returns the step's loss."""
        assert self.optimiser is not None  # `start` comes first
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad()
        loss = torch.zeros((), device=self.device)
        own = self.crew.own(chosen)
        if len(own):  # the last step of an epoch may be smaller than the crew
            lists = self._fitting(lambda: phase.lists.draw(own, random, self._scores))
            loss = self._fitting(lambda: self._gradients(phase, lists, len(chosen)))
        self.crew.add_up_gradients(self.network.parameters())
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), phase.recipe.clip)
        self.optimiser.step()
        return loss

    def _fitting(self, work: Callable[[], _T]) -> _T:
        """The work's result, tried again with less at once when memory runs out."""
        while True:
            try:
                return work()
            except torch.cuda.OutOfMemoryError:
                if self.budget // 2 < _SMALLEST_BUDGET:
                    raise
                self.budget //= 2
            torch.cuda.empty_cache()
            self.on_note(f"Out of memory: going on with {self.budget} tokens at once.")

    def _gradients(self, phase: Phase, lists: PairSet, questions: int) -> Tensor:
        """Gradients added up over pieces of whole questions; `questions` in all processes' step."""
        assert self.optimiser is not None
        self.optimiser.zero_grad()
        loss = torch.zeros((), device=self.device)
        for piece in pieces(lists, self.budget):
            rows = lists.rows(piece)
            sizes = np.diff(lists.offsets)[piece].tolist()
            labels = torch.from_numpy(lists.labels[rows]).to(self.device)
            scores = pair_scores(self.network, lists, rows, budget=self.budget)
            taught = lists.taught
            told = None if taught is None else torch.from_numpy(taught[rows]).to(self.device)
            part = phase.recipe.objective(scores, labels, sizes, told) * (len(piece) / questions)
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.detach()
        return loss

    def _scores(self, pairs: PairSet) -> NDArray[np.float32]:
        """What the network says as it is, for choosing what to learn from."""
        self.network.eval()
        with torch.inference_mode():
            rows = np.arange(len(pairs.tokens))
            budget = min(SCORING_BUDGET, 4 * self.budget)
            scores: NDArray[np.float32] = (
                pair_scores(self.network, pairs, rows, budget=budget).cpu().numpy()
            )
        self.network.train()
        return scores


def pieces(pairs: PairSet, budget: int) -> list[NDArray[np.int64]]:
    """Whole questions together while their tokens fit the budget; at least one in each piece."""
    found: list[list[int]] = []
    room = 0
    lengths = pairs.lengths(np.arange(len(pairs.tokens)))
    for question, (start, end) in enumerate(zip(pairs.offsets, pairs.offsets[1:], strict=False)):
        need = int(lengths[start:end].sum())
        if not found or need > room:
            found.append([])
            room = budget
        found[-1].append(question)
        room -= need
    return [np.array(piece) for piece in found]
