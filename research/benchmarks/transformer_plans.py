"""
The part `plans` of `research.benchmarks.transformers`: which sentences from elsewhere a list gets.

The general model is trained with each plan's lists, three seeds each, and their means are measured
on dev sets at several shares of the way from the untouched weights. The best is then the general
model of the parts that follow, which measure it on the tests and adapt it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from askline.training.general.fit import run_file
from askline.training.general.sets import PLANS
from askline.training.transformer.sampling import Plan

from .transformer_jobs import Row, World, runs_of
from .transformer_sets import DEV, Figures, Spec

COMPARED = {
    "chosen": PLANS["chosen"],
    "elsewhere": Plan(elsewhere=5, drawn=48),
}
"""The network chooses from all that comes from elsewhere, or from more random sentences."""
SEEDS = (1, 2, 3)
SHARES = (1.0, 0.9, 0.8, 0.7)
MORE: Mapping[str, Spec] = {
    "WikiQA train": ("wikiqa:train", "answerable", False, 400),
    "WikiQA train 400": ("wikiqa:train", "answerable", True, 400),
}
"""Measured beside the dev sets: nothing is trained on WikiQA here."""
NEAR = 0.2
"""Points of mean MAP in which plans and shares count as equal."""
PADDED = ("WikiQA", "WikiQA train", "TrecQA")

Job = tuple[str, tuple[Any, ...], set[str]]


def plan_jobs() -> Iterator[Job]:
    """As `research.benchmarks.transformers` takes them."""
    for seed in SEEDS:
        yield from (("transfer", (seed, None, None, plan), set()) for plan in COMPARED)
    for plan in COMPARED:
        runs = {f"transfer {seed} None None {plan}" for seed in SEEDS}
        yield from (("plan_on_dev", (plan, share), runs) for share in SHARES)
    yield "choose", (), {f"plan_on_dev {plan} {share}" for plan in COMPARED for share in SHARES}


def plan_on_dev(world: World, plan: str, share: float) -> Row:
    network = world.mean_of(plan, share)
    row = {"hard": plan, "share": share, "dev": world.sets.all({**DEV, **MORE}, network)}
    (world.work / f"plan-{plan}-{share}.json").write_text(json.dumps(row), encoding="utf-8")
    return row


def choose(world: World) -> Row:
    """
    The plan and the share of the general model; its runs become those of the recipe.

    Of all that are near the best in mean MAP over the dev sets, as they are and padded, the one
    that loses the least P@1 by padding.
    """
    found = [json.loads(path.read_text("utf-8")) for path in world.work.glob("plan-*.json")]
    row = steadiest(found, lambda row: padding_loss(row["dev"]))
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


def steadiest(rows: Sequence[Row], loss: Callable[[Row], float]) -> Row:
    """Of the rows that are near the best in mean MAP on dev, the one that loses the least."""
    best = max(mean_map(row["dev"]) for row in rows)
    return min((row for row in rows if mean_map(row["dev"]) >= best - NEAR), key=loss)


def mean_map(dev: Figures) -> float:
    """Over the eight dev sets."""
    return fmean(dev[name]["MAP"] for name in DEV)


def padding_loss(dev: Figures) -> float:
    """Points of P@1, over the sets whose questions are the same padded and not."""
    return fmean(dev[name]["P@1"] - dev[f"{name} 400"]["P@1"] for name in PADDED)
