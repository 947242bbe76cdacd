"""
The parts `topic`, `teach` and `taught` of `research.benchmarks.transformers`: more of the own article.

Lists get more sentences of the question's own article than the recipe has, of which the network
chooses. The part `topic` trains three runs on them. The part `teach` trains a larger network on
them, and the part `taught` three students, who learn half from the labels and half from the mean
score of that network and of the general model. The mean of the three is measured on dev sets at
several shares of the way from the untouched weights, beside the general model.

What is chosen is fixed before: of all that are near the best mean MAP over the eight dev sets, the
one that loses the least P@1 by padding (`steadiest`), with sentences of TrecQA's own series among
what is added. The tests are scored only where that is not the general model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from askline import data
from askline.training.general.fit import general_run, merged, run_file
from askline.training.transformer import (
    PairNetwork,
    TaughtLists,
    encode_pairs,
    load_network,
    save_network,
    teacher_scores,
)
from askline.training.transformer.sampling import ListSource, Plan
from askline.training.transformer.scoring import list_scores, measure_scores
from askline.types import QuestionSet

from .padded_losses import losses, of_padding, precision, united
from .transformer_jobs import Row, World
from .transformer_plans import mean_map, steadiest
from .transformer_sets import DEV, PADDED_TO, TEST, Sets, sample
from .transformer_teacher import Joined, spent, teacher_folder, teacher_of

PARTS = {"topic", "teach", "taught"}
NEAREST = 24
"""Sentences of the own article that are mined for a question, from which sixteen are drawn."""
TOPIC = Plan(hard=3, hard_drawn=8, near=4, near_drawn=16, elsewhere=3, drawn=24)
SEEDS = (1, 2, 3)
SHARES = (1.0, 0.9, 0.8, 0.7)
GENERAL = "general"
TAUGHT = "taught"
PADDINGS = range(5)
PADDED = {
    "wikiqa:dev": ("answerable", None),
    "wikiqa:train": ("answerable", 150),
    "trecqa-clean:dev": ("both", None),
}
"""Set → filter and the most questions; nothing is trained on any of them here."""

Job = tuple[str, tuple[Any, ...], set[str]]
Padded = tuple[QuestionSet, list[QuestionSet], Any]


def topic_jobs(kind: str) -> Iterator[Job]:
    """As `research.benchmarks.transformers` takes them; taught by the network of the part `teach`."""
    yield from (("topic_run", (kind, seed), set()) for seed in SEEDS)
    if kind == TAUGHT:
        yield "tellers_on_dev", (), set()
    yield "topic_dev", (kind, GENERAL), set()
    runs = {f"topic_run {kind} {seed}" for seed in SEEDS}
    yield from (("topic_dev", (kind, share), runs) for share in SHARES)
    yield "topic_choice", (kind,), {f"topic_dev {kind} {own}" for own in (GENERAL, *SHARES)}


def topic_run(world: World, kind: str, seed: int) -> Row:
    """One run, as long as the recipe's or as the time allows."""
    recipe = replace(world.recipe.transfer, seed=seed)
    lists: ListSource = world.lists
    if kind == TAUGHT:
        teacher = teacher_scores(load_network(teacher_folder(world))[0].to(world.device))
        recipe = replace(recipe, objective=replace(recipe.objective, taught=0.5))
        lists = Joined(
            TaughtLists(world.lists, teacher_of(world).lists, teacher),
            teacher_scores(world.blended(world.recipe.share)),
        )
    history = general_run(world.init, lists, recipe, world.work / kind, device=world.device)
    row = {"kind": kind, "seed": seed, "recipe": repr(recipe), "plan": repr(TOPIC)}
    return row | spent(history, run_file(world.work / kind, seed).with_suffix(".jsonl"))


def tellers_on_dev(world: World) -> Row:
    """The mean score of both, which the students learn from."""
    larger = load_network(teacher_folder(world))[0].to(world.device)
    general = world.blended(world.recipe.share)
    found = {}
    for name, spec in DEV.items():
        own, theirs = world.sets.measured(spec), teacher_of(world).sets.measured(spec)
        scores = zip(
            list_scores(general, own.pairs), list_scores(larger, theirs.pairs), strict=True
        )
        values = measure_scores(own.questions, [(a + b) / 2 for a, b in scores])
        found[name] = {measure: round(value, 2) for measure, value in values.items()}
    return {"dev": found, "mean MAP": round(mean_map(found), 2)}


def topic_dev(world: World, kind: str, own: str | float) -> Row:
    """The mean of the runs that far from the start, or the general model; what padding costs."""
    network = _contender(world, kind, own)
    dev = world.sets.all(DEV, network)
    lost = {name: losses_on(world, name, network) for name in PADDED}
    row: Row = {
        "kind": kind,
        "share": own,
        "dev": dev,
        "mean MAP": round(mean_map(dev), 2),
        "lost": lost,
    }
    row["P@1 lost by padding"] = round(fmean(each["P@1 lost, mean"] for each in lost.values()), 2)
    _dev_file(world, kind, own).write_text(json.dumps(row), encoding="utf-8")
    return row


def losses_on(world: World, name: str, network: PairNetwork) -> Row:
    """What five paddings cost on a set, each candidate scored once."""
    whole, paddings, pairs = _padded(world.sets, name)
    scores = np.concatenate(list(list_scores(network, pairs))).astype(np.float32)
    return losses([precision(each, of_padding(each, whole, scores)) for each in paddings])


def prepare(sets: Sets) -> None:
    """Read and tokenise what `losses_on` takes before any process is forked."""
    for name in PADDED:
        _padded(sets, name)


def topic_choice(world: World, kind: str) -> Row:
    """The best by the rule; its figures on the tests, and its folder, where it is a new one."""
    files = [_dev_file(world, kind, own) for own in (GENERAL, *SHARES)]
    rows = [json.loads(path.read_text("utf-8")) for path in files]
    won = steadiest(rows, lambda row: float(row["P@1 lost by padding"]))
    row: Row = {key: won[key] for key in ("kind", "share", "mean MAP", "P@1 lost by padding")}
    if won["share"] == GENERAL:
        return row
    network = _contender(world, kind, won["share"])
    save_network(network, world.tokeniser, world.work / "model")
    return row | {"test": world.sets.all(TEST, network)}


@cache
def _padded(sets: Sets, name: str) -> Padded:
    which, most = PADDED[name]
    plain = data.load(name, root=sets.root)
    if sets.few:
        plain = replace(plain, questions=plain.questions[: sets.few])
    size = 10 if sets.few else PADDED_TO
    paddings = [_cut(data.pad(plain, size, seed=s, same_topic=True), which, most) for s in PADDINGS]
    whole = united(paddings)
    return whole, paddings, encode_pairs(whole, sets.tokeniser)


def _cut(questions: QuestionSet, which: str, most: int | None) -> QuestionSet:
    found = data.select(questions, which)
    return sample(found, most) if most else found


def _contender(world: World, kind: str, own: str | float) -> PairNetwork:
    if own == GENERAL:
        return world.blended(world.recipe.share).eval()
    network = world.start()
    merged(network, world.work / kind, SEEDS, float(own))
    return network.eval()


def _dev_file(world: World, kind: str, own: str | float) -> Path:
    return world.work / f"dev-{kind}-{own}.json"
