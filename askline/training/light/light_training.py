"""
How a network is trained, apart from what it is and on what.

A network on a dev set, measured as rankers are.

One step of training: loss, gradients, and what the optimiser makes of them.

The loop: epochs over shuffled questions, measured on dev, resumable after each.

The way out: a trained network as a model folder that runs without torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...engine.numpy_ops import IntArray
from ...errors import InputError, ModelError, UnknownNameError
from ...evaluation import Run, make_qrels, score_run
from ...evaluation.measures import FloatArray
from ...models.folder import write_folder
from ...models.light_config import CompareAggregateConfig, CosinetConfig, LightConfig
from ...models.word_vectors import WordVectors
from ...rankers.requests import sort_by_score
from ...text.words import TOKENIZER_NAME
from ...types import QuestionSet
from ..checkpoint import Checkpoint, Epoch
from ..losses import LOSSES, Loss, list_loss, point_loss
from ..model_card import LICENCES
from ..optimizer import Adam, Hands, halves, hands, slanted_triangular
from .encoded_questions import EncodedSet
from .light_networks import build, parameter_count

__all__ = [
    "DevSet",
    "Recipe",
    "Stepper",
    "Trained",
    "as_start",
    "export",
    "recipe_for",
    "scores",
    "tensors_of",
    "train",
]


@dataclass(frozen=True, slots=True)
class Recipe:
    """
    Adam under a slanted triangular rate.

    Cosinet's authors took one question a step with a peak of 2e-4 for lists, and 2e-3 for points;
    three epochs, and the last one is kept. Steps of several questions at a higher rate come to the
    same accuracy in a third of the time: `research/notes/light-rankers.md`.
    """

    loss: Loss = "list"
    epochs: int = 3
    rate: float = 1e-3
    """The peak of the learning rate."""
    batch: int = 16
    """Questions a step, each with all its candidates."""
    dropout: float = 0.0
    seed: int = 0
    keep: Literal["last", "best"] = "last"
    """Which epoch's weights come out; the best is by the first dev measure, the first of equals."""

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise UnknownNameError("loss", self.loss, LOSSES)
        if self.keep not in ("last", "best"):
            raise InputError(f"keep must be 'last' or 'best', got {self.keep!r}.")
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if not self.rate > 0:
            raise InputError(f"rate must be above 0, got {self.rate}.")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, got {self.dropout}.")
        if self.seed < 0:
            raise InputError(f"seed must be at least 0, got {self.seed}.")


def recipe_for(layout: LightConfig, loss: Loss = "list") -> Recipe:
    """What cross-validation on WikiQA's train and dev questions chose for a network."""
    if isinstance(layout, CosinetConfig):
        return (
            Recipe(loss=loss) if layout.list_layer != "none" else Recipe(loss, rate=4e-3, batch=4)
        )
    if isinstance(layout, CompareAggregateConfig):
        return Recipe(loss, rate=5e-4 if layout.list_layer != "none" else 2e-3, batch=4)
    return Recipe(loss, rate=1e-3, batch=4)


_QUESTIONS_AT_ONCE = 16


@dataclass(frozen=True, slots=True, eq=False)
class DevSet:
    """The same questions as text and as numbers."""

    questions: QuestionSet
    encoded: EncodedSet
    measures: tuple[str, ...] = ("MAP", "MRR", "P@1")

    def values(self, network: nn.Module) -> dict[str, FloatArray]:
        """Measure → a fraction for each question."""
        hits = map(sort_by_score, scores(network, self.encoded))
        run = Run.from_hits("network", zip(self.questions, hits, strict=True))
        return score_run(run, make_qrels(self.questions), measures=self.measures)

    def measure(self, network: nn.Module) -> dict[str, float]:
        """Measure → the mean over all questions, in percent."""
        return {name: 100 * float(each.mean()) for name, each in self.values(network).items()}


def scores(network: nn.Module, questions: EncodedSet) -> Iterator[FloatArray]:
    """The scores of each question's candidates, question after question."""
    network.eval()
    with torch.inference_mode():
        for at in range(0, len(questions), _QUESTIONS_AT_ONCE):
            batch = questions.batch(range(at, min(at + _QUESTIONS_AT_ONCE, len(questions))))
            found = network(batch).double().cpu()
            yield from (part.numpy() for part in found.split(batch.sizes))


_Part = tuple[IntArray, torch.Generator]


class Stepper:
    """Steps over some questions at a time. On a CPU a step has two halves, for two threads."""

    def __init__(self, network: nn.Module, questions: EncodedSet, recipe: Recipe) -> None:
        self._network, self._questions, self._recipe = network, questions, recipe
        self._weights = list(network.parameters())
        self._work = questions.words if questions.vectors.device.type == "cpu" else None
        self._gradients = [torch.empty_like(weight) for weight in self._weights]
        self.optimiser = Adam(self._weights)

    def generators(self, seeds: Sequence[int]) -> list[torch.Generator]:
        """What dropout draws from, for each half its own: threads come in no fixed order."""
        device = self._questions.vectors.device
        return [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def step(
        self, chosen: IntArray, rate: float, both: Hands, draws: Sequence[torch.Generator]
    ) -> Tensor:
        """Returns the loss."""
        parts = [chosen] if self._work is None else halves(chosen, self._work)
        pairs = int(self._questions.sizes[chosen].sum())

        def of(part: _Part) -> tuple[Tensor, tuple[Tensor, ...]]:
            loss = self._loss(part, len(chosen), pairs)
            return loss.detach(), torch.autograd.grad(loss, self._weights)

        done = both.each(of, list(zip(parts, draws, strict=False)))
        self._sum([gradients for _, gradients in done])
        self.optimiser.step(self._gradients, rate)
        return torch.stack([loss for loss, _ in done]).sum()

    def _loss(self, part: _Part, questions: int, pairs: int) -> Tensor:
        """The share that a part has in the loss of a step of so many questions and pairs."""
        batch = self._questions.batch(*part)
        scores = self._network(batch)
        if self._recipe.loss == "list":
            share = len(batch.sizes) / questions
            return list_loss(scores, batch.labels, batch.sizes) * share
        return point_loss(scores, batch.labels) * (len(scores) / pairs)

    def _sum(self, parts: Sequence[tuple[Tensor, ...]]) -> None:
        """In a fixed order."""
        for gradient, first, *second in zip(self._gradients, *parts, strict=True):
            if second:
                torch.add(first, *second, out=gradient)
            else:
                gradient.copy_(first)


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A network after its last epoch (or with its best one's weights), and how it got there."""

    network: nn.Module
    layout: LightConfig
    recipe: Recipe
    on: str
    """The name of the set it was trained on."""
    history: tuple[Epoch, ...]

    @property
    def seconds(self) -> float:
        """Of training, over all epochs."""
        return sum(epoch.seconds for epoch in self.history)


def train(
    layout: LightConfig,
    questions: EncodedSet,
    recipe: Recipe,
    *,
    dev: DevSet | None = None,
    start: Mapping[str, Tensor] | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[], None] = lambda: None,
) -> Trained:
    """
    Train a network of this layout. The caller's random state is left as it was.

    `start` are weights to go on from, as another training left them (transfer, then adapt). Where
    the file `checkpoint` exists, training goes on after the epochs it holds. On a CPU the same
    seed gives the same weights, broken off or not; on a GPU sums come out in no fixed order.
    """
    if recipe.keep == "best" and dev is None:
        raise InputError("keep='best' needs a dev set to tell the best epoch by.")
    device = questions.vectors.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(recipe.seed)
        network = build(layout, dropout=recipe.dropout).to(device)
        if start is not None:
            network.load_state_dict(start)
        loop = _Loop(network, questions, recipe, dev, _settings(layout, questions, recipe))
        if checkpoint is not None and checkpoint.exists():
            loop.restore(checkpoint)
        for number in range(len(loop.history) + 1, recipe.epochs + 1):
            with hands(device) as both:
                loop.epoch(number, both, on_step)
            if checkpoint is not None:
                loop.state().save(checkpoint)
            on_epoch(loop.history[-1])
    if loop.best is not None:
        network.load_state_dict(loop.best)
    return Trained(network.eval(), layout, recipe, questions.name, tuple(loop.history))


def _settings(layout: LightConfig, questions: EncodedSet, recipe: Recipe) -> str:
    return f"{layout} {recipe} on {len(questions)} questions of {questions.name}"


class _Loop:
    """What changes from epoch to epoch."""

    def __init__(
        self,
        network: nn.Module,
        questions: EncodedSet,
        recipe: Recipe,
        dev: DevSet | None,
        settings: str,
    ) -> None:
        self.network, self.questions, self.recipe, self.dev = network, questions, recipe, dev
        self.settings = settings
        self.stepper = Stepper(network, questions, recipe)
        self.history: list[Epoch] = []
        self.best: dict[str, Tensor] | None = None

    def epoch(self, number: int, both: Hands, on_step: Callable[[], None]) -> None:
        """One pass over the questions in an order of its own, then the dev measures."""
        # Seeded here, not once for all: see Checkpoint.
        random = np.random.default_rng((self.recipe.seed, number))
        order = random.permutation(len(self.questions))
        draws = self.stepper.generators(random.integers(2**63, size=2).tolist())
        start = time.perf_counter()
        self.network.train()
        steps = [
            order[at : at + self.recipe.batch] for at in range(0, len(order), self.recipe.batch)
        ]
        losses = []
        for step, chosen in enumerate(steps):
            done = (number - 1) * len(steps) + step
            rate = self.recipe.rate * slanted_triangular(done, self.recipe.epochs * len(steps))
            losses.append(self.stepper.step(chosen, rate, both, draws))
            on_step()
        loss = float(torch.stack(losses).mean())
        seconds = time.perf_counter() - start
        measured = self.dev.measure(self.network) if self.dev else {}
        self.history.append(Epoch(number, loss, seconds, measured))
        if self.recipe.keep == "best" and self._is_best():
            self.best = deepcopy(self.network.state_dict())

    def _is_best(self) -> bool:
        values = [next(iter(epoch.dev.values())) for epoch in self.history]
        return values.index(max(values)) == len(values) - 1

    def state(self) -> Checkpoint:
        """All that the next epoch depends on."""
        return Checkpoint(
            self.settings,
            self.network.state_dict(),
            self.stepper.optimiser.state(),
            tuple(self.history),
            self.best,
        )

    def restore(self, path: Path) -> None:
        """Go back to where `state` was taken."""
        found = Checkpoint.load(path, settings=self.settings)
        self.network.load_state_dict(found.network)
        self.stepper.optimiser.restore(found.optimiser)
        self.history = list(found.history)
        self.best = None if found.best is None else dict(found.best)


def export(
    trained: Trained,
    folder: str | PathLike[str],
    *,
    vectors: WordVectors,
    dev: str | None = None,
    command: str = "",
) -> Path:
    """
    Write the folder: config, weights, word vectors, card.

    `dev` is the name of the set that the history was measured on, `command` what to run to get the
    same weights again; both are for the card.
    """
    config = trained.layout.as_config() | {"tokeniser": TOKENIZER_NAME}
    text = card(trained, dev=dev, command=command, vectors=str(vectors))
    tensors = tensors_of(trained.network)
    return write_folder(folder, config=config, tensors=tensors, card=text, vectors=vectors)


def tensors_of(network: nn.Module) -> dict[str, NDArray[np.float32]]:
    """The weights by the names that folders use, shapes as torch has them."""
    return {
        _folder_name(name): np.ascontiguousarray(value.detach().cpu().numpy())
        for name, value in network.state_dict().items()
    }


def as_start(tensors: Mapping[str, NDArray[np.float32]], layout: LightConfig) -> dict[str, Tensor]:
    """Weights out of a folder, for `train(start=…)` with a network of the same layout."""
    own = {_folder_name(name): (name, value) for name, value in build(layout).state_dict().items()}
    shapes = {name: tuple(value.shape) for name, (_, value) in own.items()}
    found = {name: value.shape for name, value in tensors.items()}
    if shapes != found:
        unlike = sorted(
            name for name in shapes.keys() | found.keys() if shapes.get(name) != found.get(name)
        )
        raise ModelError(
            f"The weights to start from are not those of {layout}: {', '.join(unlike)} differ. "
            "Take the list layer, channels and word vectors that they were trained with."
        )
    return {own[name][0]: torch.tensor(value) for name, value in tensors.items()}


def _folder_name(name: str) -> str:
    return name.replace("list.reader.", "list.")


def card(trained: Trained, *, dev: str | None, command: str, vectors: str) -> str:
    """Markdown. The licence is that of the data, where the data's name is known."""
    licence = LICENCES.get(trained.on.partition(":")[0], "that of the data it was trained on")
    lines = [
        f"# {trained.layout.kind}",
        "",
        f"- Network: `{trained.layout}`, {parameter_count(trained.network):,} parameters",
        f"- Trained on: {trained.on}, {trained.seconds:.1f} s",
        f"- Licence of that data: {licence}",
        f"- Word vectors (frozen): {vectors}",
        f"- Recipe: `{trained.recipe}`",
    ]
    if command:
        lines += ["", "```", command, "```"]
    return "\n".join([*lines, "", *_measures(trained, dev)])


def _measures(trained: Trained, dev: str | None) -> list[str]:
    names = list(trained.history[-1].dev) if trained.history else []
    if not names:
        return []
    rows = [
        [str(epoch.number), f"{epoch.loss:.4f}", *(f"{epoch.dev[name]:.2f}" for name in names)]
        for epoch in trained.history
    ]
    header = ["epoch", "loss", *(f"{name} on {dev or 'dev'}" for name in names)]
    rule = ["---"] * len(header)
    return [f"| {' | '.join(row)} |" for row in [header, rule, *rows]] + [""]
