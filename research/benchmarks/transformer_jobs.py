"""Training and measuring steps of `research.benchmarks.transformers`, one function per job."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from askline import data
from askline.training.checkpoint import average_weights
from askline.training.losses import Objective
from askline.training.transformer.cross_encoder_folder import load_network, save_network
from askline.training.transformer.pair_network import PairNetwork, list_scores, measure
from askline.training.transformer.pair_sets import PairSet, encode_pairs
from askline.training.transformer.sampled_lists import SampledLists, SamplingPlan
from askline.training.transformer.transformer_training import (
    TransformerDevSet,
    TransformerPhase,
    TransformerRecipe,
    train_transformer,
)
from askline.types import QuestionSet
from research.recipes.general import PLANS, GeneralRecipe, card, general_run, merged, run_file

PADDED_TO = 400

# Name of the row → (set, filter, padded, maximum number of questions sampled with seed 0).
DEV = {
    "WikiQA": ("wikiqa:dev", "answerable", False, None),
    "TrecQA": ("trecqa-clean:dev", "both", False, None),
    "SelQA": ("selqa:dev", "answerable", False, None),
    "SQuADShifts": ("squadshifts:dev", "both", False, 1200),
    "WikiQA 400": ("wikiqa:dev", "answerable", True, None),
    "TrecQA 400": ("trecqa-clean:dev", "both", True, None),
    "SelQA 400": ("selqa:dev", "answerable", True, 150),
    "SQuADShifts 400": ("squadshifts:dev", "both", True, 150),
}
TEST = {
    "WikiQA": ("wikiqa:test", "answerable", False, None),
    "WikiQA 400": ("wikiqa:test", "answerable", True, None),
    "TrecQA": ("trecqa-clean:test", "both", False, None),
    "TrecQA 400": ("trecqa-clean:test", "both", True, None),
    "SQuAD-sent": ("squad1:dev", "answerable", False, None),
    "SQuAD-sent 400": ("squad1:dev", "answerable", True, 500),
}
Spec = tuple[str, str, bool, int | None]
Figures = dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False)
class Measured:
    """A tokenized set."""

    questions: QuestionSet
    pairs: PairSet

    def measure(self, network: PairNetwork) -> dict[str, float]:
        found = measure(network, self.questions, self.pairs)
        return {name: round(value, 2) for name, value in found.items()}


class Sets:
    """Loads and caches sets; `few` limits the questions per set."""

    def __init__(self, root: Path, tokeniser: Any, few: int | None) -> None:
        self.root, self.tokeniser, self.few = root, tokeniser, few
        self._loaded: dict[tuple[str, bool], QuestionSet] = {}
        self._measured: dict[Spec, Measured] = {}

    def measured(self, spec: Spec) -> Measured:
        if spec not in self._measured:
            name, which, padded, most = spec
            questions = data.filter_questions(self._load(name, padded), which)
            if most is not None:
                questions = sample(questions, most)
            self._measured[spec] = self._encoded(questions)
        return self._measured[spec]

    def training(self, name: str) -> Measured:
        """Every question that has candidates."""
        full = self._load(name, padded=False)
        kept = tuple(question for question in full if question.candidates)
        return self._encoded(replace(full, questions=kept))

    def all(self, specs: dict[str, Spec], network: PairNetwork) -> Figures:
        return {name: self.measured(spec).measure(network) for name, spec in specs.items()}

    def prepare(self, specs: Iterable[Spec]) -> Iterator[str]:
        """Load sets and yield a line about each."""
        for spec in specs:
            found = self.measured(spec)
            yield f"{spec}: {len(found.questions)} questions, {len(found.pairs.tokens)} pairs"

    def _load(self, name: str, padded: bool) -> QuestionSet:
        if (name, padded) not in self._loaded:
            if padded:
                # With the same TrecQA series: the harder lists, on which all recipes were chosen.
                to = 10 if self.few else PADDED_TO
                found = data.pad(self._load(name, False), to=to, same_topic=True)
            else:
                found = data.load_dataset(name, root=self.root)
            if self.few and not padded:
                found = replace(found, questions=found.questions[: self.few])
            self._loaded[name, padded] = found
        return self._loaded[name, padded]

    def _encoded(self, questions: QuestionSet) -> Measured:
        return Measured(questions, encode_pairs(questions, self.tokeniser))


def sample(questions: QuestionSet, most: int) -> QuestionSet:
    """At most `most` questions, sampled with seed 0."""
    drawn = list(questions)
    random.Random(0).shuffle(drawn)
    return replace(questions, questions=tuple(drawn[:most]))


Row = dict[str, Any]
Job = tuple[str, tuple[Any, ...], set[str]]
"""Name of the function, its arguments, and the labels of the jobs that must be done before."""

POINT, BOTH = Objective(point=1.0, list=0.0), Objective(point=0.5, list=1.0)
LOSSES = {"point": POINT, "list": Objective(point=0.0, list=1.0), "both": BOTH}
SEEDS = (1, 2, 3)
FOLDS = 5
UNANSWERABLE = ("squad2:dev", "wikiqa:dev")
"""Sets with unanswerable questions; their scores are kept for `research.benchmarks.calibration`."""


@dataclass(frozen=True, eq=False)
class World:
    """What every job needs. It is made once and inherited by the forked worker processes."""

    init: str
    tokeniser: Any
    lists: SampledLists
    others: Mapping[str, SampledLists]
    """The same questions with lists by other plans."""
    sets: Sets
    wikiqa: Measured
    trecqa: Measured
    work: Path
    device: str
    recipe: GeneralRecipe
    adapt: TransformerRecipe
    general: Path | None = None
    """An existing general model, which is adapted instead of a new one."""

    def start(self, **options: Any) -> PairNetwork:
        return PairNetwork.start(self.init, **options).to(self.device)

    @property
    def share(self) -> float:
        """How far to go from the initial weights to the mean: the recipe's or the chosen one."""
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

    def mean_of(self, plan: str, share: float) -> PairNetwork:
        """The mean of the runs with one plan, part of the way from the initial weights."""
        network = self.start()
        merged(network, runs_of(self, None, plan), self.recipe.seeds, share)
        return network.eval()


def timed(work: Callable[..., Row], *arguments: Any) -> Row:
    """Return the row of a job with its wall-clock time."""
    start = time.perf_counter()
    row = work(*arguments)
    return row | {"wall": round(time.perf_counter() - start, 1)}


# --- the general model


def transfer(
    world: World,
    seed: int,
    depth: int | None = None,
    epochs: int | None = None,
    hard: str = "bm25",
) -> Row:
    """One run of the general model, or of its lowest `depth` layers; `hard` names the plan."""
    lists = world.lists if hard == "bm25" else world.others[hard]
    recipe = world.recipe.transfer
    recipe = replace(recipe, seed=seed, epochs=epochs or recipe.epochs)
    folder = runs_of(world, depth, hard)
    history = general_run(world.init, lists, recipe, folder, device=world.device, depth=depth)
    seconds = sum(epoch.seconds for epoch in history)
    losses = [round(epoch.loss, 4) for epoch in history]
    row = {"depth": depth or "all", "seed": seed, "epochs": recipe.epochs, "hard": hard}
    return row | {"loss": losses, "seconds": round(seconds, 1)}


def runs_of(world: World, depth: int | None, plan: str = "bm25") -> Path:
    """The folder of the runs with one plan."""
    name = f"depth-{depth}" if depth else "general"
    return world.work / (name if plan == "bm25" else f"{name}-{plan}")


def untouched(world: World) -> Row:
    """The initial weights on dev and test sets."""
    network = world.start().eval()
    return {
        "share": 0.0,
        "dev": world.sets.all(DEV, network),
        "test": world.sets.all(TEST, network),
    }


def single(world: World, seed: int, depth: int | None = None) -> Row:
    """One run on dev sets."""
    network = world.start(depth=depth).eval()
    network.load_state_dict(load_file(run_file(runs_of(world, depth), seed)))
    return {"seed": seed, "depth": depth or "all", "dev": world.sets.all(DEV, network)}


def blend_on_dev(world: World, share: float) -> Row:
    """The mean of the runs, part of the way from the initial weights, on dev sets."""
    return {"share": share, "dev": world.sets.all(DEV, world.blended(share))}


def blend_on_test(world: World) -> Row:
    """Write the general model as a folder, measure it on the test sets, keep SQuAD 2.0 scores."""
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


# --- the choice of plan and share

COMPARED = {
    "chosen": PLANS["chosen"],
    "elsewhere": SamplingPlan(elsewhere=5, drawn=48),
}
"""The network selects among all kinds of negatives, or among more random sentences."""
SHARES = (1.0, 0.9, 0.8, 0.7)
MORE: Mapping[str, Spec] = {
    "WikiQA train": ("wikiqa:train", "answerable", False, 400),
    "WikiQA train 400": ("wikiqa:train", "answerable", True, 400),
}
"""Measured together with the dev sets; no run is trained on WikiQA."""
TOLERANCE = 0.2
"""Points of mean MAP within which plans and shares count as equal."""
PADDED = ("WikiQA", "WikiQA train", "TrecQA")


def plan_jobs() -> Iterator[Job]:
    """Jobs of the part `plans`: three runs per plan, each share on dev sets, then the choice."""
    for seed in SEEDS:
        yield from (("transfer", (seed, None, None, plan), set()) for plan in COMPARED)
    for plan in COMPARED:
        runs = {f"transfer {seed} None None {plan}" for seed in SEEDS}
        yield from (("plan_on_dev", (plan, share), runs) for share in SHARES)
    yield "choose", (), {f"plan_on_dev {plan} {share}" for plan in COMPARED for share in SHARES}


def plan_on_dev(world: World, plan: str, share: float) -> Row:
    """One plan and share on dev sets."""
    network = world.mean_of(plan, share)
    row = {"hard": plan, "share": share, "dev": world.sets.all({**DEV, **MORE}, network)}
    (world.work / f"plan-{plan}-{share}.json").write_text(json.dumps(row), encoding="utf-8")
    return row


def choose(world: World) -> Row:
    """
    Select plan and share of the general model; its runs become those of the recipe.

    Of all rows within `TOLERANCE` of the best mean MAP, the one that loses least P@1 by padding.
    """
    found = [json.loads(path.read_text("utf-8")) for path in world.work.glob("plan-*.json")]
    best = max(mean_map(row["dev"]) for row in found)
    equal = [row for row in found if mean_map(row["dev"]) >= best - TOLERANCE]
    row = min(equal, key=lambda row: padding_loss(row["dev"]))
    for seed in SEEDS:
        new = run_file(runs_of(world, None), seed)
        new.parent.mkdir(exist_ok=True)
        shutil.copy(run_file(runs_of(world, None, row["hard"]), seed), new)
    chosen = {"hard": row["hard"], "share": row["share"], "plan": repr(COMPARED[row["hard"]])}
    world.choice.write_text(json.dumps(chosen), encoding="utf-8")
    return chosen | {
        "mean MAP": round(mean_map(row["dev"]), 2),
        "P@1 lost by padding": round(padding_loss(row["dev"]), 2),
    }


def mean_map(dev: Figures) -> float:
    """Mean MAP over the eight dev sets."""
    return fmean(dev[name]["MAP"] for name in DEV)


def padding_loss(dev: Figures) -> float:
    """Points of P@1 lost by padding, over the sets with the same questions padded and not."""
    return fmean(dev[name]["P@1"] - dev[f"{name} 400"]["P@1"] for name in PADDED)


# --- adapted to one set


def adapt_wikiqa(world: World, loss: str, seed: int, depth: int | None = None) -> Row:
    """Adapt the general model, or one of fewer layers, to WikiQA."""
    row, network = _adapted(world, world.wikiqa, "WikiQA", loss, seed, depth)
    if depth is None:
        row["dev 400"] = world.sets.measured(DEV["WikiQA 400"]).measure(network)
    return row


def adapt_trecqa(world: World, loss: str, seed: int, depth: int | None = None) -> Row:
    """Adapt the general model, or one of fewer layers, to TrecQA."""
    return _adapted(world, world.trecqa, "TrecQA", loss, seed, depth)[0]


def report_head(world: World, seed: int) -> Row:
    """The report's baseline: first token, one hidden layer, two outputs, trained on WikiQA."""
    torch.manual_seed(seed)
    network = world.start(head="first-token")
    recipe = replace(world.adapt, objective=POINT, seed=seed)
    return _trained(world, network, world.wikiqa, recipe, "WikiQA") | {"seed": seed}


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
    return row | _trained(world, network, train, recipe, target), network


def _trained(
    world: World, network: PairNetwork, train: Measured, recipe: TransformerRecipe, target: str
) -> Row:
    """Adapt in place, keep the best epoch on dev, then measure once on the test set."""
    held = world.sets.measured(DEV[target])
    dev = TransformerDevSet(held.questions, held.pairs)
    history = train_transformer(network, [TransformerPhase(train.pairs, recipe)], dev=dev)
    return {
        "seconds": round(sum(epoch.seconds for epoch in history), 1),
        "epochs": [{name: round(x, 2) for name, x in epoch.dev.items()} for epoch in history],
        "dev": held.measure(network),
        "test": world.sets.measured(TEST[target]).measure(network),
        "parameters": sum(p.numel() for p in network.parameters()),
    }


# --- the choice of loss for WikiQA, by cross-validation
#
# Dev has 126 questions with an answer; losses that differ by a point on it change places on the
# test set. Each loss is trained on four fifths of train, five times, and measured on the held-out
# fifth and on dev: 999 questions. The best is trained on all of train with three seeds, to its
# last epoch, and measured on the test set.


def cross_jobs(runs: set[str]) -> Iterator[Job]:
    """Jobs of the part `cross`."""
    trials = [(loss, fold) for loss in LOSSES for fold in range(FOLDS)]
    yield from (("cross", each, runs) for each in trials)
    yield "cross_choose", (), {f"cross {loss} {fold}" for loss, fold in trials}
    yield from (("cross_adapt", (seed,), {"cross_choose"}) for seed in SEEDS)
    yield "cross_mean", (), {f"cross_adapt {seed}" for seed in SEEDS}


def cross(world: World, way: str, fold: int) -> Row:
    """Train one loss on four fifths of train; MAP on the last fifth and on dev."""
    chosen = np.random.default_rng(5).integers(0, FOLDS, len(world.wikiqa.pairs))
    network = _to_last_epoch(world, way, np.flatnonzero(chosen != fold), seed=1)
    answered = np.array([question.answerable for question in world.wikiqa.questions])
    held = _part(world.wikiqa, np.flatnonzero((chosen == fold) & answered))
    row = {
        "way": way,
        "fold": fold,
        "held": len(held.questions),
        "held MAP": held.measure(network)["MAP"],
        "dev MAP": world.sets.measured(DEV["WikiQA"]).measure(network)["MAP"],
    }
    name = f"cross-{way}-{fold}.json"
    (world.work / name).write_text(json.dumps(row), encoding="utf-8")
    return row


def cross_choose(world: World) -> Row:
    """Select the loss with the best MAP over all held-out questions of train and dev."""
    found = [json.loads(path.read_text("utf-8")) for path in world.work.glob("cross-*-*.json")]
    dev = len(world.sets.measured(DEV["WikiQA"]).questions)
    rows = {}
    for way in dict.fromkeys(row["way"] for row in found):
        own = [row for row in found if row["way"] == way]
        held = sum(row["held"] for row in own)
        train = sum(row["held"] * row["held MAP"] for row in own) / held
        on_dev = fmean(row["dev MAP"] for row in own)
        rows[way] = {
            "train, held out": round(train, 2),
            "dev": round(on_dev, 2),
            "all": round((held * train + dev * on_dev) / (held + dev), 2),
        }
    best = max(rows, key=lambda way: rows[way]["all"])
    (world.work / "cross.json").write_text(json.dumps({"way": best}), encoding="utf-8")
    return {"ways": rows, "chosen": best, "questions": held + dev}


def cross_adapt(world: World, seed: int) -> Row:
    """Train the selected loss on all of train; measure once on the test set."""
    way = _choice(world)
    network = _to_last_epoch(world, way, np.arange(len(world.wikiqa.pairs)), seed=seed)
    state = {name: value.cpu() for name, value in network.state_dict().items()}
    save_file(state, world.work / f"cross-adapted-{seed}.safetensors")
    return {"way": way, "seed": seed} | _measures(world, network)


def cross_mean(world: World) -> Row:
    """The mean of the three adapted weights."""
    network = world.blended(world.share)
    states = [load_file(world.work / f"cross-adapted-{seed}.safetensors") for seed in SEEDS]
    network.load_state_dict(average_weights(states))
    return {"way": _choice(world), "weights": len(SEEDS)} | _measures(world, network.eval())


def _choice(world: World) -> str:
    return str(json.loads((world.work / "cross.json").read_text("utf-8"))["way"])


def _measures(world: World, network: PairNetwork) -> Row:
    measured = {"dev": DEV["WikiQA"], "dev 400": DEV["WikiQA 400"], "test": TEST["WikiQA"]}
    return {part: world.sets.measured(spec).measure(network) for part, spec in measured.items()}


def _to_last_epoch(world: World, loss: str, rows: NDArray[np.int64], *, seed: int) -> PairNetwork:
    recipe = replace(world.adapt, objective=LOSSES[loss], seed=seed, keep="last")
    network = world.blended(world.share)
    train_transformer(network, [TransformerPhase(world.wikiqa.pairs.take(rows), recipe)])
    return network.eval()


def _part(measured: Measured, rows: NDArray[np.int64]) -> Measured:
    kept = tuple(measured.questions.questions[row] for row in rows)
    return Measured(QuestionSet(measured.questions.name, kept), measured.pairs.take(rows))


def label(name: str, arguments: Sequence[Any]) -> str:
    """The name of a job among the requirements of others."""
    return " ".join(map(str, (name, *arguments)))
