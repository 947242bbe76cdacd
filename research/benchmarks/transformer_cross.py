"""
The part `cross` of `research.benchmarks.transformers`: how to adapt to WikiQA, by cross-validation.

Dev has 126 questions with an answer, and losses that differ by a point on it change places on the
test set. Here each way of adapting is trained on four fifths of the train set, five times, and
measured on the fifth left out and on dev: 999 questions. The best is then trained on all of train
with three seeds, to its last epoch, and measured on the test set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from askline.training.transformer import PairNetwork, Phase, train_transformer
from askline.training.transformer.averaging import average
from askline.training.transformer.objectives import Objective
from askline.training.transformer.pairs import PairSet
from askline.training.transformer.sampling import ListSource, SampledLists, Scorer
from askline.types import QuestionSet

from .transformer_jobs import BOTH, FOLDS, POINT, Row, World, folds
from .transformer_sets import DEV, TEST, Measured


@dataclass(frozen=True)
class Way:
    """How to adapt."""

    objective: Objective
    epochs: int = 3
    rate: float = 3e-5
    mixed: int = 0
    """Questions of the transfer sets beside the sixteen of each step."""


WAYS = {
    "point": Way(POINT),
    "list": Way(Objective(point=0.0, list=1.0)),
    "both": Way(BOTH),
    "both, 5 epochs": Way(BOTH, epochs=5),
    "both, rate 6e-5": Way(BOTH, rate=6e-5),
    "both, rate 1.5e-5": Way(BOTH, rate=1.5e-5),
    "both, mixed": Way(BOTH, mixed=4),
    "point, mixed": Way(POINT, mixed=4),
}
SEEDS = (1, 2, 3)

Job = tuple[str, tuple[Any, ...], set[str]]


def cross_jobs(runs: set[str], ways: Sequence[str]) -> Iterator[Job]:
    """As `research.benchmarks.transformers` takes them; those that take longest first."""
    tries = [(way, fold) for way in reversed(WAYS) if way in ways for fold in range(FOLDS)]
    yield from (("cross", each, runs) for each in tries)
    yield "cross_choose", (), {f"cross {way} {fold}" for way, fold in tries}
    yield from (("cross_adapt", (seed,), {"cross_choose"}) for seed in SEEDS)
    yield "cross_mean", (), {f"cross_adapt {seed}" for seed in SEEDS}


def cross(world: World, way: str, fold: int) -> Row:
    """One way, four fifths of train; MAP on the last fifth and on dev."""
    chosen = folds(world)
    network = _trained(world, way, np.flatnonzero(chosen != fold), seed=1)
    answered = np.array([question.answerable for question in world.wikiqa.questions])
    held = _part(world.wikiqa, np.flatnonzero((chosen == fold) & answered))
    row = {
        "way": way,
        "fold": fold,
        "held": len(held.questions),
        "held MAP": held.measure(network)["MAP"],
        "dev MAP": world.sets.measured(DEV["WikiQA"]).measure(network)["MAP"],
    }
    name = f"cross-{[*WAYS].index(way)}-{fold}.json"
    (world.work / name).write_text(json.dumps(row), encoding="utf-8")
    return row


def cross_choose(world: World) -> Row:
    """The way with the best MAP over all questions held out, train's and dev's."""
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
    """The chosen way on all of train; one look at the test set."""
    way = _choice(world)
    network = _trained(world, way, np.arange(len(world.wikiqa.pairs)), seed=seed)
    state = {name: value.cpu() for name, value in network.state_dict().items()}
    save_file(state, world.work / f"cross-adapted-{seed}.safetensors")
    return {"way": way, "seed": seed} | _measures(world, network)


def cross_mean(world: World) -> Row:
    """The mean of the three weights."""
    network = world.blended(world.share)
    states = [load_file(world.work / f"cross-adapted-{seed}.safetensors") for seed in SEEDS]
    network.load_state_dict(average(states))
    return {"way": _choice(world), "weights": len(SEEDS)} | _measures(world, network.eval())


def _choice(world: World) -> str:
    return str(json.loads((world.work / "cross.json").read_text("utf-8"))["way"])


def _measures(world: World, network: PairNetwork) -> Row:
    measured = {"dev": DEV["WikiQA"], "dev 400": DEV["WikiQA 400"], "test": TEST["WikiQA"]}
    return {part: world.sets.measured(spec).measure(network) for part, spec in measured.items()}


def _trained(world: World, name: str, rows: NDArray[np.int64], *, seed: int) -> PairNetwork:
    way = WAYS[name]
    recipe = replace(
        world.adapt,
        objective=way.objective,
        epochs=way.epochs,
        rate=way.rate,
        seed=seed,
        keep="last",
    )
    lists: ListSource = world.wikiqa.pairs.take(rows)
    if way.mixed:
        lists = Mixed(world.wikiqa.pairs.take(rows), world.lists, way.mixed)
    network = world.blended(world.share)
    train_transformer(network, [Phase(lists, recipe)])
    return network.eval()


def _part(measured: Measured, rows: NDArray[np.int64]) -> Measured:
    kept = tuple(measured.questions.questions[row] for row in rows)
    return Measured(QuestionSet(measured.questions.name, kept), measured.pairs.take(rows))


class Mixed:
    """A `ListSource`: a set's own lists, and beside those of each step a few of another source."""

    def __init__(self, own: PairSet, others: SampledLists, count: int) -> None:
        self.name = f"{own.name} and {count} a step of {others.name}"
        self.own, self.others, self.count = own, others, count

    def __len__(self) -> int:
        return len(self.own)

    def draw(
        self, chosen: NDArray[np.int64], random: np.random.Generator, score: Scorer
    ) -> PairSet:
        own = self.own.take(chosen)
        more = self.others.draw(random.integers(len(self.others), size=self.count), random, score)
        assert own.segments is not None  # both are of one tokeniser, which tells segments apart
        assert more.segments is not None
        return replace(
            own,
            tokens=own.tokens + more.tokens,
            segments=own.segments + more.segments,
            labels=np.concatenate([own.labels, more.labels]),
            offsets=np.concatenate([own.offsets, own.offsets[-1] + more.offsets[1:]]),
        )
