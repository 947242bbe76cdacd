"""
Training of a cascade: recipe, training task, and the loss of a part of a step.

A step has candidate lists for the classifiers and paragraphs for the reader, in one packed batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..checkpoint import Epoch
from ..loop import (
    TrainingRecipe,
    TrainingStep,
    TrainingTask,
    check_not_negative,
    check_positive,
    run_training,
)
from ..losses import CascadeObjective, ListLabels
from ..optimizer import AdamW, Optimizer, ParameterGroup, slanted_triangular
from ..packing import PackedBatch, PairTemplate, Rows, TokenRange, TokenTable, pack
from .cascade_examples import MAX_PAIR_LENGTH, CandidateList, TrainingLists
from .cascade_network import CascadeDevSet, CascadeNetwork, measure, score_pairs
from .span_reading import SpanBatch, SpanExamples, room_beside, span_loss

__all__ = [
    "ADAPT",
    "FIT",
    "TRANSFER",
    "CascadePhase",
    "CascadeRecipe",
    "TokenizedTexts",
    "add_hard_negatives",
    "anchored",
    "split_step",
    "train_cascade",
]

_ANSWER_SENTENCE_WEIGHT, _NO_ANSWER_WEIGHT = 0.5, 0.05
"""Weights of a candidate with and without an answer in the reader's loss; a paragraph has 1."""
_UNLIMITED_LENGTH = 1 << 20
_SCHEDULE_RESOLUTION = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeRecipe(TrainingRecipe):
    """AdamW with a slanted triangular learning rate."""

    objective: CascadeObjective = field(default_factory=CascadeObjective)
    epochs: int = 2
    learning_rate: float = 8e-5
    """The peak for the encoder."""
    head_rate: float = 2.0
    """Factor of the learning rate for classifiers and reader."""
    batch_size: int = 48
    """Candidate lists per step."""
    paragraphs: int = 48
    """Paragraphs per step, for the reader."""
    max_tokens: float = 65_536
    frozen: bool = False
    """Whether only the classifiers and the reader are trained, not the encoder."""
    dropout: bool = True
    """Whether the encoder has dropout; classifiers always have."""
    keep_last: bool = False
    """Whether the last classifier is not trained."""
    weight_decay: float = 0.01
    max_gradient_norm: float = 1.0

    def __post_init__(self) -> None:
        TrainingRecipe.__post_init__(self)
        check_positive(self, "head_rate")
        check_not_negative(self, "weight_decay", "paragraphs")


FIT = CascadeRecipe(epochs=1, learning_rate=1e-3, batch_size=192, paragraphs=96, frozen=True)
"""Before the transfer: new classifiers are fitted to the encoder as it is."""
TRANSFER = CascadeRecipe()
ADAPT = CascadeRecipe(
    objective=CascadeObjective(point=1.0, teach=0.0, from_teacher=0.0, reading=0.0),
    epochs=3,
    learning_rate=3e-5,
    head_rate=1.0,
    batch_size=16,
    paragraphs=0,
)
"""Complete lists and no teacher, which knows less about the new set than its labels do."""


def anchored(recipe: CascadeRecipe) -> CascadeRecipe:
    """
    The same recipe with full depth held to the initial cross-encoder, which is also the teacher.

    Its own classifier is not trained. The states that it reads are learned from the teacher, and
    nothing else changes them: no label at the last depth, no dropout, no reader.
    """
    objective = replace(recipe.objective, teach=1.0, anchor=100.0, reading=0.0)
    return replace(recipe, objective=objective, dropout=False, keep_last=True, paragraphs=0)


class TokenizedTexts(NamedTuple):
    """Texts by number, and the template that joins two of them."""

    table: TokenTable
    template: PairTemplate


@dataclass(frozen=True, slots=True, eq=False)
class CascadePhase:
    """A training set and a recipe."""

    lists: TrainingLists
    recipe: CascadeRecipe
    paragraphs: SpanExamples | None = None
    """For the reader. Their text numbers follow those of the lists."""
    teacher: CascadeNetwork | None = None
    """A fixed network whose last classifier is the teacher."""

    @property
    def texts(self) -> TokenizedTexts:
        """Those of lists and paragraphs together."""
        table = self.lists.table
        if self.paragraphs is not None:
            table = table + self.paragraphs.table
        return TokenizedTexts(table, self.lists.template)


class _Drawn(NamedTuple):
    """What one step is computed from."""

    lists: Sequence[CandidateList]
    paragraphs: SpanBatch | None


class StepPart(NamedTuple):
    """A part of a step that is in memory at one time."""

    lists: Sequence[CandidateList]
    paragraphs: SpanBatch | None
    share: float
    """Of the step's loss."""


class _CascadeTask(TrainingTask[Rows, _Drawn, StepPart]):
    """Candidate lists with hard negatives of one classifier, and paragraphs for the reader."""

    network: CascadeNetwork
    recipe: CascadeRecipe

    def __init__(self, network: CascadeNetwork, phase: CascadePhase) -> None:
        self.network, self.recipe, self._phase = network, phase.recipe, phase
        self._texts = phase.texts

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self._phase.lists) // self.recipe.batch_size)

    def new_optimizer(self) -> Optimizer:
        recipe, groups = self.recipe, []
        for is_matrix in (True, False):  # biases and norms have no weight decay
            for is_head in (True, False):
                chosen = [
                    weight
                    for name, weight in self.network.named_parameters()
                    if (weight.ndim > 1) == is_matrix and name.startswith("encoder.") != is_head
                    if is_head or not recipe.frozen
                ]
                rate = recipe.learning_rate * (recipe.head_rate if is_head else 1.0)
                decay = recipe.weight_decay if is_matrix else 0.0
                groups.append(ParameterGroup(chosen, rate, decay))
        return AdamW(self.network, groups, max_gradient_norm=recipe.max_gradient_norm, epsilon=1e-6)

    def schedule(self, progress: float) -> float:
        return slanted_triangular(round(progress * _SCHEDULE_RESOLUTION) / _SCHEDULE_RESOLUTION)

    def set_training_mode(self) -> None:
        """Training mode and gradients for what the recipe trains."""
        recipe = self.recipe
        self.network.train()
        self.network.encoder.train(recipe.dropout and not recipe.frozen)
        self.network.encoder.requires_grad_(not recipe.frozen)
        last = self.network.classifiers[str(self.network.shape.depths[-1])]
        last.train(not recipe.keep_last).requires_grad_(not recipe.keep_last)

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[Rows]:  # noqa: ARG002
        order = random.permutation(len(self._phase.lists))
        torch.manual_seed(int(random.integers(2**63)))
        size = self.recipe.batch_size
        yield from (order[at : at + size] for at in range(0, len(order), size))

    def prepare(
        self,
        batch: Rows,
        random: np.random.Generator,
        max_tokens: float,  # noqa: ARG002
    ) -> _Drawn:
        drawn = [self._phase.lists.draw(place, random) for place in batch.tolist()]
        # A random classifier chooses the hard negatives of a step, so that each meets its own.
        depth = int(random.choice(self.network.shape.depths))
        drawn = add_hard_negatives(self.network, self._texts, drawn, depth=depth)
        return _Drawn(drawn, self._draw_paragraphs(random))

    def _draw_paragraphs(self, random: np.random.Generator) -> SpanBatch | None:
        examples = self._phase.paragraphs
        if examples is None or not self.recipe.paragraphs:
            return None
        rows = random.integers(len(examples), size=self.recipe.paragraphs)
        return examples.draw(rows, random).shifted(len(self._phase.lists.table))

    def split(self, batch: _Drawn, max_tokens: float) -> list[StepPart]:
        return split_step(self._texts.table, batch.lists, batch.paragraphs, max_tokens)

    def loss(self, part: StepPart) -> Tensor:
        teacher, objective = self._phase.teacher, self.recipe.objective
        return _part_loss(self.network, self._texts, part, objective, teacher)


def train_cascade(
    network: CascadeNetwork,
    phases: Sequence[CascadePhase],
    *,
    dev: CascadeDevSet | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[TrainingStep], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train in place; the network ends with the weights of the last epoch.

    Epochs are numbered through all phases, and `dev` is measured at every depth after each. For all
    else see `run_training`.
    """
    settings = f"{network.shape}; " + "; ".join(
        f"{phase.recipe} on {len(phase.lists)} questions of {phase.lists.name}" for phase in phases
    )
    history = run_training(
        [_CascadeTask(network, phase) for phase in phases],
        settings=settings,
        evaluate=None if dev is None else lambda: measure(network, dev),
        checkpoint=checkpoint,
        on_epoch=on_epoch,
        on_step=on_step,
        on_note=on_note,
    )
    network.requires_grad_(True)
    return history


def add_hard_negatives(
    network: CascadeNetwork, texts: TokenizedTexts, drawn: Sequence[CandidateList], *, depth: int
) -> list[CandidateList]:
    """Add to each list the texts of its pools that the classifier at `depth` scores highest."""
    pools = [(each.question, *pool) for each in drawn for pool in each.pools]
    if not any(len(own) for _, own, _ in pools):
        return list(drawn)
    sizes = [len(own) for _, own, _ in pools]
    first = np.repeat([question for question, _, _ in pools], sizes)
    second = np.concatenate([own for _, own, _ in pools])
    scores = score_pairs(
        network, texts.table, texts.template, first, second, limit=MAX_PAIR_LENGTH, deepest=depth
    )[-1]
    hardest = (
        own[np.argsort(-part, kind="stable")[:keep]]
        for (_, own, keep), part in zip(pools, np.split(scores, np.cumsum(sizes)[:-1]), strict=True)
    )
    return [
        each.with_negatives(np.concatenate([next(hardest) for _ in each.pools]))
        if each.pools
        else each
        for each in drawn
    ]


def split_step(
    table: TokenTable,
    lists: Sequence[CandidateList],
    paragraphs: SpanBatch | None,
    max_tokens: float,
) -> list[StepPart]:
    """Parts of whole lists of about `max_tokens` tokens, at least one list in each."""
    cost = [
        len(each.candidates) * int(table.lengths(np.array([each.question]))[0])
        + int(table.lengths(each.candidates).sum())
        for each in lists
    ]
    total = sum(cost) + (0 if paragraphs is None else int(paragraphs.window.length.sum()))
    count = min(len(lists), max(1, math.ceil(total / max_tokens)))
    list_ends = np.linspace(0, len(lists), count + 1).astype(int)
    examples = 0 if paragraphs is None else len(paragraphs.questions)
    example_ends = np.linspace(0, examples, count + 1).astype(int)
    return [
        StepPart(
            lists[list_ends[at] : list_ends[at + 1]],
            None
            if paragraphs is None
            else paragraphs.part(slice(example_ends[at], example_ends[at + 1])),
            (list_ends[at + 1] - list_ends[at]) / len(lists),
        )
        for at in range(count)
    ]


def _part_loss(
    network: CascadeNetwork,
    texts: TokenizedTexts,
    part: StepPart,
    objective: CascadeObjective,
    teacher: CascadeNetwork | None = None,
) -> Tensor:
    device = next(network.parameters()).device
    batch = _pack_part(texts, part, device)
    lists, known = batch.lists, None
    if teacher is not None:
        only = torch.arange(batch.pairs, device=device)
        with torch.no_grad():
            known = teacher(batch.packed.keep(only)[0])
        lists = lists._replace(teacher=known.scores[-1].float())
    found = network(batch.packed)
    loss = objective(found.scores[:, : batch.pairs].float(), lists)
    if known is not None and objective.anchor:
        loss = loss + objective.anchor_loss(found.first[: batch.pairs], known.first)
    if found.ends is not None and objective.reading:
        reader_loss = span_loss(found.ends, batch.packed, batch.spans, batch.weights)
        loss = loss + objective.reading * reader_loss
    return loss * part.share


class _PackedPart(NamedTuple):
    packed: PackedBatch
    pairs: int
    """The first sequences are the pairs of the lists, the others are paragraphs."""
    lists: ListLabels
    spans: Tensor
    weights: Tensor


def _pack_part(texts: TokenizedTexts, part: StepPart, device: torch.device) -> _PackedPart:
    drawn, paragraphs = part.lists, part.paragraphs
    sizes = [len(each.candidates) for each in drawn]
    pairs = sum(sizes)
    first = np.repeat([each.question for each in drawn], sizes)
    second = np.concatenate([each.candidates for each in drawn])
    labels = np.concatenate([each.labels for each in drawn])
    spans = np.concatenate([each.spans for each in drawn])
    window = _whole_windows(texts, first, second)
    weights = _reader_weights(spans, labels)
    weights[spans[:, 1] >= window.length] = 0.0  # the answer was cut off
    spans[spans[:, 1] >= window.length] = -1
    limit = MAX_PAIR_LENGTH
    if paragraphs is not None:
        first = np.concatenate([first, paragraphs.questions])
        second = np.concatenate([second, paragraphs.paragraphs])
        spans = np.concatenate([spans, paragraphs.spans])
        weights = np.concatenate([weights, np.ones(len(paragraphs.questions))])
        window = TokenRange(
            np.concatenate([window.start, paragraphs.window.start]),
            np.concatenate([window.length, paragraphs.window.length]),
        )
        limit = _UNLIMITED_LENGTH  # the windows are within their own limit
    packed = pack(
        texts.table, first, second, texts.template, limit=limit, window=window, device=device
    )
    owners = np.repeat(np.arange(len(drawn)), sizes)
    tensors = [
        torch.from_numpy(array).to(device, non_blocking=True)
        for array in (labels, owners, spans, weights.astype(np.float32))
    ]
    lists = ListLabels(tensors[0], tensors[1], len(drawn))
    return _PackedPart(packed, pairs, lists, tensors[2], tensors[3])


def _reader_weights(spans: NDArray[np.int64], labels: NDArray[np.float32]) -> NDArray[np.floating]:
    """An answer sentence without a known span has weight 0."""
    without_span = np.where(labels > 0, 0.0, _NO_ANSWER_WEIGHT)
    return np.where(spans[:, 0] >= 0, _ANSWER_SENTENCE_WEIGHT, without_span)


def _whole_windows(texts: TokenizedTexts, first: Rows, second: Rows) -> TokenRange:
    """Each candidate from its start, as far as it fits beside its question."""
    room = room_beside(texts.table, first, texts.template, MAX_PAIR_LENGTH)
    length = np.minimum(texts.table.lengths(second), room)
    return TokenRange(np.zeros(len(second), np.int64), length)
