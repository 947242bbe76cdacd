"""What `research.benchmarks.transformers` trains and measures, each piece a function that a process runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from askline.training.general.card import card
from askline.training.general.fit import GeneralRecipe, general_run, merged, run_file
from askline.training.transformer import (
    PairNetwork,
    Phase,
    TransformerRecipe,
    load_network,
    save_network,
    train_transformer,
)
from askline.training.transformer.averaging import average
from askline.training.transformer.loop import Dev
from askline.training.transformer.objectives import Objective
from askline.training.transformer.sampling import SampledLists
from askline.training.transformer.scoring import list_scores

from .transformer_sets import DEV, TEST, Measured, Sets

Row = dict[str, Any]

POINT, BOTH = Objective(point=1.0, list=0.0), Objective(point=0.5, list=1.0)
LOSSES = {"point": POINT, "both": BOTH, "soft": POINT, "taught": POINT}
"""`soft` learns half the label and half the score of a model that has not seen the question,
`taught` of two such, the second larger."""
FOLDS = 5
UNANSWERABLE = ("squad2:dev", "wikiqa:dev")
"""Sets with questions that have no answer: their scores are kept for `research.benchmarks.calibration`."""


@dataclass(frozen=True, eq=False)
class Teacher:
    """A larger network: where it starts, and everything in its own tokens."""

    init: str
    tokeniser: Any
    lists: SampledLists
    sets: Sets
    wikiqa: Measured
    recipe: TransformerRecipe
    steps: float
    """Of its students, and of those without it."""


@dataclass(frozen=True, eq=False)
class World:
    """What every job needs; made once, and handed on to the processes as they are forked."""

    init: str
    tokeniser: Any
    lists: SampledLists
    others: Mapping[str, SampledLists]
    """The same questions with other negatives: those that the light ranker chose (`cosinet`, for
    the part `negatives`), and by other plans (for the part `plans`)."""
    sets: Sets
    wikiqa: Measured
    trecqa: Measured
    work: Path
    device: str
    recipe: GeneralRecipe
    adapt: TransformerRecipe
    general: Path | None = None
    """A general model made before, which is adapted instead of a new one."""
    teacher: Teacher | None = None

    def start(self, **options: Any) -> PairNetwork:
        return PairNetwork.start(self.init, **options).to(self.device)

    @property
    def share(self) -> float:
        """How far to go to the mean of the runs: the recipe's, or what `plans` has chosen."""
        if not self.choice.is_file():
            return self.recipe.share
        return float(json.loads(self.choice.read_text("utf-8"))["share"])

    @property
    def choice(self) -> Path:
        return self.work / "chosen.json"

    def blended(self, share: float) -> PairNetwork:
        if self.general is not None:
            return load_network(self.general)[0].to(self.device)
        return self.mean_of("bm25", share)

    def mean_of(self, hard: str, share: float) -> PairNetwork:
        """The runs of one kind, their mean, part of the way from the start."""
        network = self.start()
        merged(network, runs_of(self, None, hard), self.recipe.seeds, share)
        return network.eval()


def transfer(
    world: World,
    seed: int,
    depth: int | None = None,
    epochs: int | None = None,
    hard: str = "bm25",
) -> Row:
    """One run of the general model, or of one cut to a depth; `hard` is what chose negatives."""
    lists = world.lists if hard == "bm25" else world.others[hard]
    recipe = world.recipe.transfer
    recipe = replace(recipe, seed=seed, epochs=epochs or recipe.epochs)
    folder = runs_of(world, depth, hard)
    history = general_run(world.init, lists, recipe, folder, device=world.device, depth=depth)
    seconds = sum(epoch.seconds for epoch in history)
    losses = [round(epoch.loss, 4) for epoch in history]
    row = {"depth": depth or "all", "seed": seed, "epochs": recipe.epochs, "hard": hard}
    return row | {"loss": losses, "seconds": round(seconds, 1)}


def runs_of(world: World, depth: int | None, hard: str = "bm25") -> Path:
    """The folder of the runs of one kind."""
    name = f"depth-{depth}" if depth else "general"
    return world.work / (name if hard == "bm25" else f"{name}-{hard}")


def untouched(world: World) -> Row:
    network = world.start().eval()
    return {
        "share": 0.0,
        "dev": world.sets.all(DEV, network),
        "test": world.sets.all(TEST, network),
    }


def single(world: World, seed: int, depth: int | None = None, hard: str = "bm25") -> Row:
    """One run by itself, on dev."""
    network = world.start(depth=depth).eval()
    network.load_state_dict(load_file(run_file(runs_of(world, depth, hard), seed)))
    row = {"seed": seed, "depth": depth or "all", "hard": hard}
    return row | {"dev": world.sets.all(DEV, network)}


def blend_on_dev(world: World, share: float) -> Row:
    return {"share": share, "dev": world.sets.all(DEV, world.blended(share))}


def blend_on_test(world: World) -> Row:
    """The general model: written as a folder, measured on the tests, and its SQuAD 2.0 scores."""
    share = world.share
    network = world.blended(share)
    folder = save_network(network, world.tokeniser, world.work / "model")
    (folder / "README.md").write_text(card(world.init, world.recipe), encoding="utf-8")
    found = {"share": share, "test": world.sets.all(TEST, network)}
    for name in UNANSWERABLE:
        own = world.sets.measured((name, "all", False, None)).pairs
        np.savez_compressed(
            world.work / f"scores-{name.replace(':', '-')}.npz",
            scores=np.concatenate(list(list_scores(network, own))).astype(np.float32),
            labels=own.labels > 0,
            sizes=np.diff(own.offsets),
        )
    return found


def adapt_wikiqa(world: World, loss: str, seed: int, depth: int | None = None) -> Row:
    """From the general model, or from one of a lower depth, to WikiQA."""
    train = world.wikiqa
    tellers = {"soft": ("",), "taught": ("", "teacher-")}.get(loss)
    if tellers:
        labels = _soft_labels(world, tellers)
        train = replace(train, pairs=replace(train.pairs, labels=labels))
    row, network = _adapted(world, train, "WikiQA", loss, seed, depth)
    if depth is None:
        row["dev 400"] = world.sets.measured(DEV["WikiQA 400"]).measure(network)
        state = {name: value.cpu() for name, value in network.state_dict().items()}
        save_file(state, _adapted_file(world, loss, seed))
    return row


def mean_wikiqa(world: World, losses: str, seeds: tuple[int, ...]) -> Row:
    """The mean of adapted weights: of several seeds, and of several losses with `+` between."""
    network = world.blended(world.share)
    states = [
        load_file(_adapted_file(world, loss, seed)) for loss in losses.split("+") for seed in seeds
    ]
    network.load_state_dict(average(states))
    measured = ("dev", DEV["WikiQA"]), ("test", TEST["WikiQA"])
    row: Row = {"start": "general", "loss": losses, "weights": len(states)}
    return row | {part: world.sets.measured(spec).measure(network) for part, spec in measured}


def adapt_trecqa(world: World, loss: str, seed: int, depth: int | None = None) -> Row:
    return _adapted(world, world.trecqa, "TrecQA", loss, seed, depth)[0]


def fold(world: World, number: int) -> Row:
    """Scores of a fifth of WikiQA's train questions by a model that has not seen them."""
    chosen = folds(world)
    rest = world.wikiqa.pairs.take(np.flatnonzero(chosen != number))
    network = world.blended(world.share)
    recipe = replace(world.adapt, objective=POINT, seed=1)
    train_transformer(network, [Phase(rest, recipe)])
    held = world.wikiqa.pairs.take(np.flatnonzero(chosen == number))
    np.save(fold_file(world, number), np.concatenate(list(list_scores(network, held))))
    return {"fold": number}


def report_head(world: World, seed: int) -> Row:
    """The Report's baseline: the first token, a hidden layer, two outputs; WikiQA alone."""
    torch.manual_seed(seed)
    network = world.start(head="first-token")
    recipe = replace(world.adapt, objective=POINT, seed=seed)
    return trained(world, network, world.wikiqa, recipe, "WikiQA") | {"seed": seed}


def _adapted(
    world: World, train: Measured, target: str, loss: str, seed: int, depth: int | None
) -> tuple[Row, PairNetwork]:
    if depth is None:
        network = world.blended(world.share)
    else:
        network = world.start(depth=depth)
        network.load_state_dict(load_file(run_file(runs_of(world, depth), 1)))
    before = {}
    if seed == 1 and loss == "point":
        before = {"transferred": world.sets.measured(TEST[target]).measure(network)}
    recipe = replace(world.adapt, objective=LOSSES[loss], seed=seed)
    start = "one run of one epoch" if depth else "general"
    row = {"start": start, "loss": loss, "seed": seed, "depth": network.depth} | before
    return row | trained(world, network, train, recipe, target), network


def trained(
    world: World, network: PairNetwork, train: Measured, recipe: TransformerRecipe, target: str
) -> Row:
    """Adapted in place, the best epoch by dev; then one look at the test."""
    held = world.sets.measured(DEV[target])
    dev = Dev(held.questions, held.pairs)
    history = train_transformer(network, [Phase(train.pairs, recipe)], dev=dev)
    return {
        "seconds": round(sum(epoch.seconds for epoch in history), 1),
        "epochs": [{name: round(x, 2) for name, x in epoch.dev.items()} for epoch in history],
        "dev": held.measure(network),
        "test": world.sets.measured(TEST[target]).measure(network),
        "parameters": sum(p.numel() for p in network.parameters()),
    }


def folds(world: World) -> NDArray[np.int64]:
    return np.random.default_rng(5).integers(0, FOLDS, len(world.wikiqa.pairs))


def _adapted_file(world: World, loss: str, seed: int) -> Path:
    return world.work / f"adapted-{loss}-{seed}.safetensors"


def fold_file(world: World, number: int, teller: str = "") -> Path:
    return world.work / f"{teller}fold-{number}.npy"


def _soft_labels(world: World, tellers: tuple[str, ...]) -> NDArray[np.float32]:
    pairs, chosen = world.wikiqa.pairs, folds(world)
    soft = pairs.labels / 2
    for number in range(FOLDS):
        rows = pairs.rows(np.flatnonzero(chosen == number))
        logits = np.mean([np.load(fold_file(world, number, own)) for own in tellers], 0)
        soft[rows] += 0.25 * (1 + np.tanh(logits / 2))
    return soft.astype(np.float32)


def timed(work: Callable[..., Row], *arguments: Any) -> Row:
    """A job's row with the wall-clock of all of it."""
    start = time.perf_counter()
    row = work(*arguments)
    return row | {"wall": round(time.perf_counter() - start, 1)}
