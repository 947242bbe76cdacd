"""
Optimizers, the learning-rate schedule, and steps that several processes or threads share.

`AdamW` accumulates gradients over the parts of a step, one after the other. `ThreadedAdam` computes
the gradients of two parts on two CPU threads, for networks whose operations are too small for torch
to run one of them on several threads. `Distributed` sums the gradients of several processes with
one GPU each, which Accelerate starts.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.adam import adam

from ..errors import require_extra

__all__ = [
    "Adam",
    "AdamW",
    "CpuThreads",
    "Distributed",
    "Optimizer",
    "ParameterGroup",
    "ThreadedAdam",
    "cpu_threads",
    "slanted_triangular",
    "split_in_halves",
]

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


def slanted_triangular(progress: float, *, rise: float = 0.1, lowest: float = 1 / 32) -> float:
    """
    The factor of the peak learning rate (Howard & Ruder, 2018).

    It rises over the first share `rise` of the steps and falls to `lowest` over the others.
    `progress` is the share of the steps that are done, from 0 to 1.
    """
    height = progress / rise if progress < rise else (1 - progress) / (1 - rise)
    return lowest + (1 - lowest) * height


class Optimizer(Protocol):
    """What the training loop needs of an optimizer."""

    def accumulate(self, parts: Sequence[_Part], loss: Callable[[_Part], Tensor]) -> Tensor:
        """Compute the gradients of the sum of the parts' losses; returns that sum."""
        ...

    def step(self, factor: float) -> None:
        """Move the weights, each at its peak learning rate times `factor`."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What the next step depends on besides the weights."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ParameterGroup:
    """Parameters with a learning rate and a weight decay of their own."""

    parameters: Sequence[nn.Parameter]
    learning_rate: float
    """The peak."""
    weight_decay: float = 0.0


class AdamW:
    """`torch.optim.AdamW` with gradient clipping and gradients summed over processes."""

    def __init__(
        self,
        network: nn.Module,
        groups: Sequence[ParameterGroup],
        *,
        max_gradient_norm: float = math.inf,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        distributed: Distributed | None = None,
    ) -> None:
        self._network, self._max_gradient_norm = network, max_gradient_norm
        self._distributed = distributed or Distributed()
        self._device = next(network.parameters()).device
        self._optimizer = torch.optim.AdamW(
            [
                {
                    "params": list(group.parameters),
                    "lr": group.learning_rate,
                    "peak": group.learning_rate,
                    "weight_decay": group.weight_decay,
                }
                for group in groups
            ],
            betas=betas,
            eps=epsilon,
            fused=self._device.type == "cuda",
        )

    def accumulate(self, parts: Sequence[_Part], loss: Callable[[_Part], Tensor]) -> Tensor:
        """One backward pass per part. Without parts, all gradients of this process are zero."""
        self._optimizer.zero_grad()
        losses = [torch.zeros((), device=self._device)]
        for part in parts:
            value = loss(part)
            value.backward()  # type: ignore[no-untyped-call]
            losses.append(value.detach())
        self._distributed.sum_gradients(self._network.parameters())
        return torch.stack(losses).sum()

    def step(self, factor: float) -> None:
        """Clip the gradients and move the weights."""
        for group in self._optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        if math.isfinite(self._max_gradient_norm):
            nn.utils.clip_grad_norm_(self._network.parameters(), self._max_gradient_norm)
        self._optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """That of the torch optimizer."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self._optimizer.load_state_dict(dict(state))


class Adam:
    """
    The steps of `torch.optim.Adam(…, fused=True)`, to the bit.

    The class in torch imports torch's compiler when it is created, which takes as long as importing
    torch; the function that both call does not.
    """

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self._weights = list(weights)
        self._means = [torch.zeros_like(weight) for weight in self._weights]
        self._squares = [torch.zeros_like(weight) for weight in self._weights]
        self._steps = [torch.zeros((), device=weight.device) for weight in self._weights]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """Move the weights. The memory layout of a gradient must be that of its weight."""
        adam(
            self._weights,
            list(gradients),
            self._means,
            self._squares,
            [],
            self._steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Any]:
        """What the next step depends on besides the weights."""
        return {"means": self._means, "squares": self._squares, "steps": self._steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        for name, own in self.state_dict().items():
            for value, kept in zip(own, state[name], strict=True):
                value.copy_(kept)


class ThreadedAdam:
    """Adam over gradients of parts that are computed on CPU threads and summed in a fixed order."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], learning_rate: float, threads: CpuThreads
    ) -> None:
        self._parameters, self._learning_rate = list(parameters), learning_rate
        self._threads = threads
        self._gradients = [torch.empty_like(parameter) for parameter in self._parameters]
        self._adam = Adam(self._parameters)

    def accumulate(self, parts: Sequence[_Part], loss: Callable[[_Part], Tensor]) -> Tensor:
        """At most two parts, each on a thread of its own."""

        def gradients(part: _Part) -> tuple[Tensor, tuple[Tensor, ...]]:
            value = loss(part)
            return value.detach(), torch.autograd.grad(value, self._parameters)

        done = self._threads.map(gradients, parts)
        self._sum([each for _, each in done])
        return torch.stack([value for value, _ in done]).sum()

    def _sum(self, parts: Sequence[tuple[Tensor, ...]]) -> None:
        for gradient, first, *second in zip(self._gradients, *parts, strict=True):
            if second:
                torch.add(first, *second, out=gradient)
            else:
                gradient.copy_(first)

    def step(self, factor: float) -> None:
        """Move the weights."""
        self._adam.step(self._gradients, self._learning_rate * factor)

    def state_dict(self) -> dict[str, Any]:
        """That of Adam."""
        return self._adam.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self._adam.load_state_dict(state)


class CpuThreads:
    """This thread, and those of a pool if there is one."""

    def __init__(self, pool: Executor | None = None) -> None:
        self._pool = pool

    def map(self, work: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
        """The results in the order of the parts. This thread computes the first."""
        if self._pool is None:
            return [work(part) for part in parts]
        started = [self._pool.submit(work, part) for part in parts[1:]]
        return [*map(work, parts[:1]), *(one.result() for one in started)]


@contextmanager
def cpu_threads(device: torch.device) -> Iterator[CpuThreads]:
    """
    Two threads on a CPU if torch may use several; meanwhile torch itself uses one.

    Torch releases the interpreter lock while it computes, so both threads work at the same time. A
    part gives the same result on either thread: weights do not depend on the number of threads.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads == 1:
        yield CpuThreads()
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield CpuThreads(pool)
    finally:
        torch.set_num_threads(threads)


def split_in_halves(rows: NDArray[np.int64], work: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Two parts of about equal `work`, which has the cost of each row. One row is one part."""
    if len(rows) < 2:
        return [rows]
    parts: tuple[list[int], list[int]] = [], []
    done = [0, 0]
    for row in rows[np.argsort(-work[rows], kind="stable")].tolist():
        lighter = int(done[1] < done[0])
        parts[lighter].append(row)
        done[lighter] += 1 + int(work[row])
    return [np.array(part) for part in parts]


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
