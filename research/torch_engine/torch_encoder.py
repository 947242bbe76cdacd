"""
A cascade in torch, stage by stage: `Cascade(TorchEncoder.load(DIR), Drop(depths, 0.3))`.

It implements `engine/layerwise.py`. Candidates are packed without padding, in bfloat16 on a GPU.
After a classifier, the states of the remaining candidates are gathered into full batches again, so
a dropped candidate causes no more cost. The host knows every length, so it waits for the GPU once
per stage, for the scores. On a CPU it is the float reference of the torch-free engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askline.engine.layerwise import LayerwiseEncoder, LayerwiseRun
from askline.errors import InputError, ModelError
from askline.training.cascade.cascade_network import CascadeNetwork, load_cascade
from askline.training.cascade.span_reading import best_spans, text_windows
from askline.training.packing import (
    PackedBatch,
    PairTemplate,
    Rows,
    TokenRange,
    TokenTable,
    is_bert,
    pack,
)
from askline.types import Span

from .frozen_layers import FrozenClassifier, FrozenEmbedding, FrozenLayer, means
from .packed_states import StateBatch, StateBatches

__all__ = [
    "TorchEncoder",
    "TorchRun",
]

BUDGET = {"cuda": 262_144, "cpu": 8_192}
"""Tokens that go through a layer at once; `stop` is asked between two such batches."""


class TorchEncoder(LayerwiseEncoder):
    """An encoder with classifiers; runs share its weights and nothing else."""

    def __init__(
        self,
        network: CascadeNetwork,
        tokenizer: Any,
        *,
        limit: int = 512,
        budget: int = 0,
        compiled: bool = False,
    ) -> None:
        if not is_bert(network.encoder):
            kind = type(network.encoder).__name__
            raise ModelError(f"Only BERT encoders can be run in stages, got {kind}.")
        self.network, self.tokenizer, self.limit = network.eval(), tokenizer, limit
        self.device = next(network.parameters()).device
        self.budget = budget or BUDGET[self.device.type]
        self.template = PairTemplate.of(tokenizer)
        precision = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        encoder: Any = network.encoder
        self.embedding = FrozenEmbedding.of(encoder.embeddings, precision, compiled=compiled)
        self.ready = [
            FrozenLayer.of(layer, precision, compiled=compiled) for layer in encoder.encoder.layer
        ]
        # Behind tanh all is within 1, where half precision has three bits more than bfloat16.
        fine = torch.float16 if self.device.type == "cuda" else torch.float32
        classifiers: Any = network.classifiers
        self.judges = {
            int(depth): FrozenClassifier.of(own.hidden, own.out, fine)
            for depth, own in classifiers.items()
        }

    @classmethod
    def load(
        cls, folder: str | PathLike[str], *, device: str = "cpu", compiled: bool = False
    ) -> TorchEncoder:
        """
        A folder that `askline train cascade` wrote.

        `compiled` joins small kernels; the first question then waits a quarter of a minute.
        """
        network, tokenizer = load_cascade(folder)
        encoder: Any = network.encoder
        reach: int = encoder.config.max_position_embeddings
        limit = min(reach, tokenizer.model_max_length)
        return cls(network.to(device), tokenizer, limit=limit, compiled=compiled)

    @property
    def depths(self) -> tuple[int, ...]:
        """The depths of the classifiers."""
        return self.network.shape.depths

    def begin(self, question: str, candidates: Sequence[str]) -> TorchRun:
        """Tokenize, and cut candidates that are too long into windows."""
        return TorchRun(self, TokenTable.of([question, *candidates], self.tokenizer), candidates)


class TorchRun(LayerwiseRun):
    """One question. Batches hold whole candidates of like length."""

    def __init__(self, encoder: TorchEncoder, table: TokenTable, candidates: Sequence[str]) -> None:
        self._encoder, self._table, self._candidates = encoder, table, candidates
        rows = np.arange(1, len(candidates) + 1)
        zeros = np.zeros_like(rows)
        self._of, self._start, self._length = text_windows(
            table, zeros, rows, encoder.template, limit=encoder.limit
        )
        asked = min(int(table.lengths(zeros[:1])[0]), 64) if len(rows) else 0
        self._cost = self._length + asked + encoder.template.extra  # tokens of each window
        self._tokens = np.bincount(self._of, self._cost, len(candidates)).astype(np.int64)
        self._batches = self._packed(np.arange(len(self._of)))
        self._depth = 0

    @property
    def tokens(self) -> NDArray[np.int64]:
        """Tokens of each candidate, over its windows."""
        return self._tokens

    @torch.inference_mode()
    def advance(
        self,
        rows: NDArray[np.int64],
        depth: int,
        *,
        stop: Callable[[], bool] | None = None,
        waiting: NDArray[np.int64] | None = None,  # noqa: ARG002
    ) -> NDArray[np.float32]:
        """One question at a time: no rows can be waiting."""
        if depth not in self._encoder.depths or depth <= self._depth:
            raise InputError(
                f"depth must be one of {self._encoder.depths} and above {self._depth}, got {depth}."
            )
        self.keep(rows)
        read, reached = list[torch.Tensor](), list[StateBatch]()
        for flight in self._batches.batches:
            if stop is not None and stop():
                break
            read.append(self._run(flight, depth))
            reached.append(flight)
        scores = self._encoder.judges[depth](torch.cat(read)) if read else torch.zeros(0)
        # All of this is done while the device computes; then the host waits for it.
        self._batches, self._depth = StateBatches.of(reached), depth
        owners = self._of[self._batches.windows]
        best = np.full(len(self._candidates), np.nan, np.float32)
        found = scores.cpu().numpy()
        if len(self._of) == len(best):  # a window each
            best[owners] = found
        else:
            np.fmax.at(best, owners, found)
        return best[rows]

    @torch.inference_mode()
    def read(self, rows: NDArray[np.int64]) -> list[Span | None]:
        """The best span over the windows of each candidate."""
        reader = self._encoder.network.reader
        if reader is None:
            return [None] * len(rows)
        if self._depth != self._encoder.layers:
            self.advance(rows, self._encoder.layers)
        wanted = np.zeros(len(self._candidates), bool)
        wanted[rows] = True
        found: dict[int, NDArray[np.float64]] = {}
        for flight in self._batches.batches:
            if not wanted[self._of[flight.windows]].any():
                continue
            assert flight.states is not None  # it came to the last depth
            spans = best_spans(reader(flight.states.float()), self._pack(flight.windows))
            for window, values in zip(flight.windows.tolist(), spans, strict=True):
                row = int(self._of[window])
                if row not in found or values[2] > found[row][2]:
                    shift = self._start[window] if values[0] >= 0 else 0
                    found[row] = values + np.array([shift, shift, 0, 0])
        return [self._span(int(row), found.get(int(row))) for row in rows]

    @torch.inference_mode()
    def keep(self, rows: NDArray[np.int64]) -> None:
        """Forget all others now, which `advance` would do when it is next called."""
        alive = np.zeros(len(self._candidates), bool)
        alive[rows] = True
        if self._depth:
            kept = alive[self._of[self._batches.windows]]
            self._batches = self._batches.only(kept, self._encoder.budget)
        elif not alive.all():
            self._batches = self._packed(np.flatnonzero(alive[self._of]))

    def _run(self, flight: StateBatch, depth: int) -> torch.Tensor:
        """(windows, width) what the classifier at that depth reads."""
        network: Any = self._encoder.network
        states, where = flight.states, flight.where
        if states is None:
            assert flight.packed is not None  # tokens or states, one of the two
            states, flight.packed = self._encoder.embedding(flight.packed), None
        for layer in self._encoder.ready[self._depth : depth]:
            flight.states = states = layer(states, where)  # the old ones go
        if network.shape.reads(depth) == "mean":
            return means(states, where)
        return states[where.starts[:-1].long()].float()

    def _packed(self, text_windows: Rows) -> StateBatches:
        """These windows, as many together as fit the budget."""
        cost = self._cost[text_windows]
        parts = (text_windows[some] for some in _runs(cost, self._encoder.budget))
        return StateBatches.of(
            [StateBatch.of(part, self._cost[part], self._pack(part)) for part in parts]
        )

    def _pack(self, chosen: Rows) -> PackedBatch:
        first = np.zeros(len(chosen), np.int64)
        window = TokenRange(self._start[chosen], self._length[chosen])
        own = self._encoder
        return pack(
            self._table,
            first,
            self._of[chosen] + 1,
            own.template,
            limit=own.limit,
            window=window,
            device=own.device,
        )

    def _span(self, row: int, values: NDArray[np.float64] | None) -> Span | None:
        if values is None or values[0] < 0:
            return None
        text = self._candidates[row]
        places = self._encoder.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )["offset_mapping"]
        start, end = places[int(values[0])][0], places[int(values[1])][1]
        return Span(start, end, float(values[2]), float(values[3]))


def _runs(cost: Rows, budget: int) -> list[Rows]:
    """Places in order, as many together as fit the budget."""
    if not len(cost):
        return []
    marks = np.cumsum(cost) // budget
    return np.split(np.arange(len(cost)), np.flatnonzero(np.diff(marks)) + 1)
