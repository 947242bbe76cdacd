"""Training of one network by several processes with one GPU each, started by Accelerate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import require_extra

__all__ = ["Distributed"]


def _unchanged(tensor: Tensor) -> Tensor:
    return tensor


@dataclass(frozen=True, slots=True)
class Distributed:
    """
    One process of several. They start with the same weights, divide each step and sum gradients.

    Every process then takes the same optimizer step, so the weights stay equal and are never sent.
    """

    rank: int = 0
    size: int = 1
    device: torch.device | None = None
    """The device of this process; None leaves the choice to the caller."""
    sum: Callable[[Tensor], Tensor] = _unchanged
    """Sums a tensor over all processes."""

    @classmethod
    def from_environment(cls) -> Distributed:
        """The processes that `accelerate launch` or torchrun started; else a single process."""
        if "WORLD_SIZE" not in os.environ:
            return cls()
        library = require_extra("accelerate", purpose="Training on several GPUs", extra="train")
        worker = library.Accelerator()
        total = partial(worker.reduce, reduction="sum")
        return cls(worker.process_index, worker.num_processes, worker.device, total)

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def own_share(self, batch: NDArray[np.int64]) -> NDArray[np.int64]:
        """The part of a batch that this process computes."""
        return batch[self.rank :: self.size]

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Sum in one message. A process without a part of the step contributes zeros."""
        if self.size == 1:
            return
        trained = [p for p in parameters if p.requires_grad]
        own = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        flat = self.sum(torch.cat([gradient.flatten() for gradient in own]))
        parts = torch.split(flat, [p.numel() for p in trained])
        for parameter, part in zip(trained, parts, strict=True):
            parameter.grad = part.view_as(parameter)
