"""
Training of a cross-encoder: transfer from large sets, then adapt to one (TANDA).

TANDA (Garg, Vu and Moschitti, 2020) trains on a large set first and on the target afterwards. Each
is a phase with a learning rate of its own: the weights carry over, the optimizer state does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data import filter_questions
from ...errors import InputError
from ...types import QuestionSet
from ..checkpoint import Epoch, interpolate_weights
from ..loop import TrainingRecipe, TrainingTask, check_not_negative, run_training
from ..losses import Objective
from ..optimizer import AdamW, Distributed, Optimizer, ParameterGroup
from ..training_log import StepRecord, StepRecorder
from .pair_network import SCORING_TOKENS, PairNetwork, measure, pair_scores
from .pair_sets import PairSet, encode_pairs
from .sampled_lists import (
    ListSource,
    Negatives,
    SampledLists,
    SamplingPart,
    SamplingPlan,
)

__all__ = [
    "ADAPT",
    "TRANSFER",
    "TransferAndAdapt",
    "TransformerDevSet",
    "TransformerPhase",
    "TransformerRecipe",
    "train_transformer",
    "transfer_and_adapt",
]

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerRecipe(TrainingRecipe):
    """AdamW with a slanted triangular learning rate; the defaults transferred best."""

    objective: Objective = field(default_factory=Objective)
    epochs: int = 2
    learning_rate: float = 6e-5
    batch_size: int = 48
    """Questions per step, each with all its candidates."""
    max_tokens: float = 16_384
    """Padded tokens in one backward pass; a larger step is split."""
    max_gradient_norm: float = 1.0
    weight_decay: float = 0.01
    keep: Literal["last", "best"] = "best"
    """Which epoch of the last phase to keep; without a dev set it is the last."""

    def __post_init__(self) -> None:
        TrainingRecipe.__post_init__(self)
        check_not_negative(self, "weight_decay")


@dataclass(frozen=True, slots=True, eq=False)
class TransformerPhase:
    """A training set and a recipe. Questions without candidates must be left out before."""

    lists: ListSource
    recipe: TransformerRecipe


@dataclass(frozen=True, slots=True, eq=False)
class TransformerDevSet:
    """The set that chooses the best epoch, by the first of its measures."""

    questions: QuestionSet
    pairs: PairSet


class _Drawn(NamedTuple):
    """The lists that this process computes in one step."""

    lists: PairSet | None
    """None if the step has fewer questions than there are processes."""
    questions: int
    """In the whole step, over all processes."""


class _Part(NamedTuple):
    lists: PairSet
    questions: Rows
    """Which questions of `lists`."""
    share: float
    """Of the step's loss."""
    max_tokens: float


class _TransformerTask(TrainingTask[Rows, _Drawn, _Part]):
    """Candidate lists are drawn for each step, and split by whole questions."""

    network: PairNetwork
    recipe: TransformerRecipe

    def __init__(
        self, network: PairNetwork, phase: TransformerPhase, distributed: Distributed
    ) -> None:
        self.network, self.recipe, self._lists = network, phase.recipe, phase.lists
        self._distributed = distributed
        self._device = next(network.parameters()).device

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self._lists) // self.recipe.batch_size)

    def new_optimizer(self) -> Optimizer:
        recipe = self.recipe
        matrices = [p for p in self.network.parameters() if p.ndim > 1]
        others = [p for p in self.network.parameters() if p.ndim <= 1]
        groups = [
            ParameterGroup(matrices, recipe.learning_rate, recipe.weight_decay),
            ParameterGroup(others, recipe.learning_rate),  # biases and norms have no weight decay
        ]
        return AdamW(
            self.network,
            groups,
            max_gradient_norm=recipe.max_gradient_norm,
            epsilon=1e-6,
            distributed=self._distributed,
        )

    def seed_epoch(self, epoch: int) -> np.random.Generator:
        """A generator of its own for each process; the order of questions is the same in all."""
        return np.random.default_rng((self.recipe.seed, epoch, self._distributed.rank))

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[Rows]:
        order = np.random.default_rng((self.recipe.seed, epoch)).permutation(len(self._lists))
        torch.manual_seed(int(random.integers(2**63)))
        size = self.recipe.batch_size
        yield from (order[at : at + size] for at in range(0, len(order), size))

    def prepare(self, batch: Rows, random: np.random.Generator, max_tokens: float) -> _Drawn:
        """Draw the lists of this process's questions; hard negatives are chosen by the network."""
        own = self._distributed.own_share(batch)
        if not len(own):
            return _Drawn(None, len(batch))

        def score(pairs: PairSet) -> NDArray[np.float32]:
            return self._scores(pairs, min(SCORING_TOKENS, 4 * max_tokens))

        return _Drawn(self._lists.draw(own, random, score), len(batch))

    def split(self, batch: _Drawn, max_tokens: float) -> list[_Part]:
        if batch.lists is None:
            return []
        return [
            _Part(batch.lists, rows, len(rows) / batch.questions, max_tokens)
            for rows in _split_questions(batch.lists, max_tokens)
        ]

    def loss(self, part: _Part) -> Tensor:
        lists, rows = part.lists, part.lists.rows(part.questions)
        sizes = np.diff(lists.offsets)[part.questions].tolist()
        labels = torch.from_numpy(lists.labels[rows]).to(self._device)
        scores = pair_scores(self.network, lists, rows, max_tokens=part.max_tokens)
        return self.recipe.objective(scores, labels, sizes) * part.share

    def _scores(self, pairs: PairSet, max_tokens: float) -> NDArray[np.float32]:
        """Scores of the network as it is now, without gradients."""
        self.network.eval()
        with torch.inference_mode():
            rows = np.arange(len(pairs.tokens))
            found = pair_scores(self.network, pairs, rows, max_tokens=max_tokens)
            scores: NDArray[np.float32] = found.cpu().numpy()
        self.network.train()
        return scores


def _split_questions(pairs: PairSet, max_tokens: float) -> list[Rows]:
    """Whole questions together while their tokens fit; at least one question in each part."""
    found: list[list[int]] = []
    room: float = 0
    lengths = pairs.lengths(np.arange(len(pairs.tokens)))
    for question, (start, end) in enumerate(zip(pairs.offsets, pairs.offsets[1:], strict=False)):
        need = int(lengths[start:end].sum())
        if not found or need > room:
            found.append([])
            room = max_tokens
        found[-1].append(question)
        room -= need
    return [np.array(part) for part in found]


def train_transformer(
    network: PairNetwork,
    phases: Sequence[TransformerPhase],
    *,
    dev: TransformerDevSet | None = None,
    checkpoint: Path | None = None,
    distributed: Distributed | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[StepRecord], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train in place; the network ends with the weights of its best epoch.

    That is the best epoch of the last phase on `dev`, or the last epoch without a dev set. Epochs
    are numbered through all phases. `on_step` gets every fiftieth step, and more if fifty steps
    take longer than half a minute. For all else see `run_training`.
    """
    processes = distributed or Distributed()
    return run_training(
        [_TransformerTask(network, phase, processes) for phase in phases],
        settings="; ".join(
            f"{phase.recipe} on {len(phase.lists)} questions of {phase.lists.name}"
            for phase in phases
        ),
        evaluate=None if dev is None else lambda: measure(network, dev.questions, dev.pairs),
        checkpoint=checkpoint,
        distributed=processes,
        on_epoch=on_epoch,
        on_step=StepRecorder(on_step),
        on_note=on_note,
    )


TRANSFER = TransformerRecipe()
ADAPT = TransformerRecipe(
    objective=Objective(point=1.0, list=0.0), epochs=3, learning_rate=3e-5, batch_size=16
)
"""The point loss also learns from the 1,245 questions of WikiQA without an answer: best on dev."""


@dataclass(frozen=True, slots=True)
class TransferAndAdapt:
    """The recipes of both phases, and what becomes of the result."""

    transfer: TransformerRecipe = TRANSFER
    adapt: TransformerRecipe = ADAPT
    share: float = 1.0
    """How far to go from the initial to the trained weights; 0.8 was best for long lists."""
    max_length: int = 256
    """Tokens per (question, candidate) pair."""
    plan: SamplingPlan = field(default_factory=SamplingPlan)
    """Of the transfer lists, if they get negatives from elsewhere."""

    def with_seed(self, seed: int) -> TransferAndAdapt:
        """The same with another seed in both phases."""
        return replace(
            self, transfer=replace(self.transfer, seed=seed), adapt=replace(self.adapt, seed=seed)
        )


def transfer_and_adapt(
    network: PairNetwork,
    tokenizer: Any,
    settings: TransferAndAdapt,
    *,
    transfer: Sequence[QuestionSet] = (),
    adapt: QuestionSet | None = None,
    dev: QuestionSet | None = None,
    negatives: Path | None = None,
    checkpoint: Path | None = None,
    distributed: Distributed | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[StepRecord], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train the network in place on the transfer sets, which count as one, then on the adapt set.

    Either may be left out. The transfer phase uses questions with an answer, the adapt phase all
    questions with candidates. `negatives` is a file of mined negatives, created if it does not
    exist: with it the transfer lists are drawn again for every step (`SampledLists`).
    """
    phases = []
    if transfer:
        joined = tuple(
            question for part in transfer for question in filter_questions(part, "answerable")
        )
        name = " + ".join(part.name for part in transfer)
        if negatives is None:
            pairs = encode_pairs(QuestionSet(name, joined), tokenizer, settings.max_length)
            phases.append(TransformerPhase(pairs, settings.transfer))
        else:
            mined = Negatives.load_or_mine(negatives, joined)
            parts = [SamplingPart(joined, settings.plan)]
            lists = SampledLists(name, parts, mined, tokenizer)
            phases.append(TransformerPhase(lists, settings.transfer))
    if adapt is not None:
        kept = tuple(question for question in adapt if question.candidates)
        pairs = encode_pairs(QuestionSet(adapt.name, kept), tokenizer, settings.max_length)
        phases.append(TransformerPhase(pairs, settings.adapt))
    if not phases:
        raise InputError("Expected a set to transfer from or to adapt to, got neither.")
    dev_set = None
    if dev is not None:
        answerable = filter_questions(dev, "answerable")
        pairs = encode_pairs(answerable, tokenizer, settings.max_length)
        dev_set = TransformerDevSet(answerable, pairs)
    start: Mapping[str, Tensor] = deepcopy(network.state_dict()) if settings.share < 1 else {}
    history = train_transformer(
        network,
        phases,
        dev=dev_set,
        checkpoint=checkpoint,
        distributed=distributed,
        on_epoch=on_epoch,
        on_step=on_step,
        on_note=on_note,
    )
    if settings.share < 1:
        network.load_state_dict(interpolate_weights(start, network.state_dict(), settings.share))
    return history
