"""Several processes, one GPU each, that train one network together; Accelerate starts them."""

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

__all__ = [
    "Crew",
]


def _alone(tensor: Tensor) -> Tensor:
    return tensor


@dataclass(frozen=True, slots=True)
class Crew:
    """
    One process of several. They start alike, share out each step, and add up their gradients.

    As every process then takes the same step, their weights stay alike and need no sending.
    """

    rank: int = 0
    size: int = 1
    device: torch.device | None = None
    """The device that this process was given; None leaves it to the caller."""
    total: Callable[[Tensor], Tensor] = _alone
    """A tensor added up over all processes."""

    @classmethod
    def assembled(cls) -> Crew:
        """The crew that `accelerate launch` (or torchrun) started; a single process without it."""
        if "WORLD_SIZE" not in os.environ:
            return cls()
        library = require_extra("accelerate", purpose="Training on several GPUs", extra="train")
        worker = library.Accelerator()
        total = partial(worker.reduce, reduction="sum")
        return cls(worker.process_index, worker.num_processes, worker.device, total)

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes files and speaks."""
        return self.rank == 0

    def own(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's share of a step."""
        return chosen[self.rank :: self.size]

    def add_up_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """One message for all of them. A process without a share of the step brings zeros."""
        if self.size == 1:
            return
        trained = [p for p in parameters if p.requires_grad]
        own = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        flat = self.total(torch.cat([gradient.flatten() for gradient in own]))
        parts = torch.split(flat, [p.numel() for p in trained])
        for parameter, part in zip(trained, parts, strict=True):
            parameter.grad = part.view_as(parameter)
