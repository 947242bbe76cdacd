"""
Training of the light rankers: recipe, dev set, training task, and export to a model folder.

A step holds several questions with all their candidates. On a CPU its two halves are computed by
two threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...data.datasets import data_license
from ...engine.numpy_ops import IntArray
from ...errors import InputError, ModelError, UnknownNameError
from ...evaluation import Run, make_qrels, score_run
from ...evaluation.measures import FloatArray
from ...models.folder import ModelCard, write_folder
from ...models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    FirstStageConfig,
    LightConfig,
)
from ...models.word_vectors import WordVectors
from ...rankers.requests import sort_by_score
from ...text.words import TOKENIZER_NAME
from ...types import QuestionSet
from ..checkpoint import Epoch
from ..loop import TrainingRecipe, TrainingStep, TrainingTask, run_training
from ..losses import LOSSES, Loss, list_loss, point_loss
from ..optimizer import CpuThreads, Optimizer, ThreadedAdam, cpu_threads, split_in_halves
from .encoded_questions import EncodedQuestions
from .light_networks import build_network, parameter_count

__all__ = [
    "DEV_MEASURES",
    "LightDevSet",
    "LightRecipe",
    "TrainedLightRanker",
    "Weights",
    "default_recipe",
    "export_light_ranker",
    "folder_name",
    "initial_weights",
    "network_scores",
    "tensors_of",
    "train_light_ranker",
]


Weights = Mapping[str, Tensor]
"""The state of a network by the names of torch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LightRecipe(TrainingRecipe):
    """
    Adam with a slanted triangular learning rate.

    The authors of Cosinet trained on one question per step, with a peak of 2e-4 for the list loss
    and 2e-3 for the point loss, for three epochs, and kept the last. Steps of several questions at
    a higher rate reach the same accuracy in a third of the time.
    """

    loss: Loss = "list"
    epochs: int = 3
    batch_size: int = 16
    """Questions per step, each with all its candidates."""
    dropout: float = 0.0

    def __post_init__(self) -> None:
        TrainingRecipe.__post_init__(self)
        if self.loss not in LOSSES:
            raise UnknownNameError("loss", self.loss, LOSSES)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}.")


def default_recipe(config: LightConfig, loss: Loss = "list") -> LightRecipe:
    """What cross-validation on the train and dev questions of WikiQA chose for a network."""
    recipe = LightRecipe(loss=loss, batch_size=4)
    if isinstance(config, CosinetConfig):
        if config.list_layer != "none":
            return LightRecipe(loss=loss)
        return replace(recipe, learning_rate=4e-3)
    if isinstance(config, CompareAggregateConfig):
        return replace(recipe, learning_rate=5e-4 if config.list_layer != "none" else 2e-3)
    return recipe


_QUESTIONS_PER_PASS = 16

DEV_MEASURES = ("MAP", "MRR", "P@1")
"""Printed after each epoch; the first one chooses the best epoch."""


@dataclass(frozen=True, slots=True, eq=False)
class LightDevSet:
    """The same questions as text and as numbers."""

    questions: QuestionSet
    encoded: EncodedQuestions
    measures: tuple[str, ...] = DEV_MEASURES

    def values(self, network: nn.Module) -> dict[str, FloatArray]:
        """Measure → a fraction for each question."""
        hits = map(sort_by_score, network_scores(network, self.encoded))
        run = Run.from_hits("network", zip(self.questions, hits, strict=True))
        return score_run(run, make_qrels(self.questions), measures=self.measures)

    def measure(self, network: nn.Module) -> dict[str, float]:
        """Measure → the mean over all questions, in percent."""
        return {name: 100 * float(each.mean()) for name, each in self.values(network).items()}


def network_scores(network: nn.Module, questions: EncodedQuestions) -> Iterator[FloatArray]:
    """The scores of each question's candidates, question after question."""
    network.eval()
    with torch.inference_mode():
        for at in range(0, len(questions), _QUESTIONS_PER_PASS):
            batch = questions.batch(range(at, min(at + _QUESTIONS_PER_PASS, len(questions))))
            found = network(batch).double().cpu()
            yield from (part.numpy() for part in found.split(batch.sizes))


class _Part(NamedTuple):
    """Some questions of a step."""

    rows: IntArray
    random: torch.Generator
    questions: int
    """In the whole step."""
    pairs: int
    """In the whole step."""


class _LightTask(TrainingTask[IntArray, IntArray, _Part]):
    """Steps over several questions. On a CPU a step has two halves, for two threads."""

    recipe: LightRecipe

    def __init__(
        self,
        network: nn.Module,
        questions: EncodedQuestions,
        recipe: LightRecipe,
        threads: CpuThreads,
    ) -> None:
        self.network, self.recipe = network, recipe
        self._questions, self._threads = questions, threads
        self._device = questions.vectors.device
        self._words = questions.words if self._device.type == "cpu" else None
        self._generators: list[torch.Generator] = []

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self._questions) // self.recipe.batch_size)

    def new_optimizer(self) -> Optimizer:
        parameters = list(self.network.parameters())
        return ThreadedAdam(parameters, self.recipe.learning_rate, self._threads)

    def seed_epoch(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng((self.recipe.seed, epoch + 1))

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[IntArray]:  # noqa: ARG002
        order = random.permutation(len(self._questions))
        # Dropout draws from one generator per half: threads run in no fixed order.
        seeds = random.integers(2**63, size=2).tolist()
        self._generators = [torch.Generator(self._device).manual_seed(seed) for seed in seeds]
        size = self.recipe.batch_size
        yield from (order[at : at + size] for at in range(0, len(order), size))

    def prepare(
        self,
        batch: IntArray,
        random: np.random.Generator,  # noqa: ARG002
        max_tokens: float,  # noqa: ARG002
    ) -> IntArray:
        return batch

    def split(self, batch: IntArray, max_tokens: float) -> list[_Part]:  # noqa: ARG002
        parts = [batch] if self._words is None else split_in_halves(batch, self._words)
        pairs = int(self._questions.sizes[batch].sum())
        return [
            _Part(rows, generator, len(batch), pairs)
            for rows, generator in zip(parts, self._generators, strict=False)
        ]

    def loss(self, part: _Part) -> Tensor:
        batch = self._questions.batch(part.rows, part.random)
        scores = self.network(batch)
        if self.recipe.loss == "list":
            share = len(batch.sizes) / part.questions
            return list_loss(scores, batch.labels, batch.sizes) * share
        return point_loss(scores, batch.labels) * (len(scores) / part.pairs)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedLightRanker:
    """A trained network with the weights of its last or best epoch, and its history."""

    network: nn.Module
    config: LightConfig | FirstStageConfig
    recipe: TrainingRecipe
    trained_on: str
    """The name of the training set."""
    history: tuple[Epoch, ...]

    @property
    def seconds(self) -> float:
        """Training time over all epochs."""
        return sum(epoch.seconds for epoch in self.history)


def train_light_ranker(
    config: LightConfig,
    questions: EncodedQuestions,
    recipe: LightRecipe,
    *,
    dev: LightDevSet | None = None,
    start: Weights | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[TrainingStep], None] = lambda _: None,
) -> TrainedLightRanker:
    """
    Train a network of this config. The caller's random state is left as it was.

    `start` are weights of an earlier training to continue from (transfer, then adapt). If the file
    `checkpoint` exists, training resumes after the epochs it holds. On a CPU the same seed gives
    the same weights, interrupted or not; on a GPU the order of sums is not fixed.
    """
    if recipe.keep == "best" and dev is None:
        raise InputError("keep='best' needs a dev set to choose the best epoch.")
    device = questions.vectors.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(recipe.seed)
        network = build_network(config, dropout=recipe.dropout).to(device)
    if start is not None:
        network.load_state_dict(start)
    with cpu_threads(device) as threads:
        history = run_training(
            [_LightTask(network, questions, recipe, threads)],
            settings=f"{config} {recipe} on {len(questions)} questions of {questions.name}",
            evaluate=None if dev is None else lambda: dev.measure(network),
            checkpoint=checkpoint,
            on_epoch=on_epoch,
            on_step=on_step,
        )
    return TrainedLightRanker(network, config, recipe, questions.name, history)


def export_light_ranker(
    trained: TrainedLightRanker,
    folder: str | PathLike[str],
    *,
    vectors: WordVectors,
    dev: str | None = None,
    command: str = "",
) -> Path:
    """
    Write the model folder: config, weights, word vectors, card.

    `dev` is the name of the set that the history was measured on, `command` trains the same weights
    again; both are for the card.
    """
    card = _card(trained, dev=dev, command=command, vectors=str(vectors))
    return write_folder(
        folder,
        config=trained.config.to_config() | {"tokeniser": TOKENIZER_NAME},
        tensors=tensors_of(trained.network),
        card=card.to_markdown(),
        vectors=vectors,
    )


def tensors_of(network: nn.Module) -> dict[str, NDArray[np.float32]]:
    """The weights by the names that model folders use, with torch's shapes."""
    return {
        folder_name(name): np.ascontiguousarray(value.detach().cpu().numpy())
        for name, value in network.state_dict().items()
    }


def initial_weights(tensors: Mapping[str, NDArray[np.float32]], config: LightConfig) -> Weights:
    """Weights of a model folder, for `train_light_ranker(start=…)` with the same config."""
    network = build_network(config)
    own = {folder_name(name): (name, value) for name, value in network.state_dict().items()}
    shapes = {name: tuple(value.shape) for name, (_, value) in own.items()}
    found = {name: value.shape for name, value in tensors.items()}
    if shapes != found:
        unlike = sorted(
            name for name in shapes.keys() | found.keys() if shapes.get(name) != found.get(name)
        )
        raise ModelError(
            f"The weights to start from do not fit {config}: {', '.join(unlike)} differ. Use the "
            "list layer, channels and word vectors that they were trained with."
        )
    return {own[name][0]: torch.tensor(value) for name, value in tensors.items()}


def folder_name(name: str) -> str:
    """The name of a tensor in a model folder, by its name in torch."""
    if name in ("mean", "scale"):  # of the features of the first stage
        return f"features.{name}"
    return name.replace("list.reader.", "list.")


def _card(trained: TrainedLightRanker, *, dev: str | None, command: str, vectors: str) -> ModelCard:
    """The license is that of the data, if the name of the data is known."""
    of_data = data_license(trained.trained_on, default="that of the data it was trained on")
    size = parameter_count(trained.network)
    facts = [
        f"Network: `{trained.config}`, {size:,} parameters",
        f"Trained on: {trained.trained_on}, {trained.seconds:.1f} s",
        f"License of that data: {of_data}",
        f"Word vectors (frozen): {vectors}",
        f"Recipe: `{trained.recipe}`",
    ]
    table = _measures(trained.history, dev)
    return ModelCard(trained.config.kind, facts, command=command, table=table)


def _measures(history: Sequence[Epoch], dev: str | None) -> list[list[str]]:
    names = list(history[-1].dev) if history else []
    if not names:
        return []
    header = ["epoch", "loss", *(f"{name} on {dev or 'dev'}" for name in names)]
    return [
        header,
        *(
            [str(epoch.number), f"{epoch.loss:.4f}", *(f"{epoch.dev[name]:.2f}" for name in names)]
            for epoch in history
        ),
    ]
