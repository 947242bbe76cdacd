"""
The part `teacher` of `research.benchmarks.transformers`: a larger network teaches the small one.

A larger encoder learns to select from the general recipe's lists. Students of the general recipe
then learn from its scores as well as from the labels, beside students of the same seeds and steps
without it, so that what differs is the teacher alone. Adapted to WikiQA in five folds, it also
gives soft labels of questions that it has not seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from askline.training.general.fit import general_run, merged, run_file
from askline.training.transformer import (
    PairNetwork,
    Phase,
    TaughtLists,
    TransformerRecipe,
    load_network,
    save_network,
    teacher_scores,
    train_transformer,
)
from askline.training.transformer.journal import Journal
from askline.training.transformer.pairs import PairSet
from askline.training.transformer.sampling import ListSource, Scorer
from askline.training.transformer.scoring import list_scores

from . import transformer_jobs as jobs
from .transformer_jobs import Row, Teacher, World
from .transformer_sets import DEV, TEST, Figures

STUDENTS = (1, 2)
SHARES = (1.0, 0.9, 0.8, 0.7)
KINDS = ("plain", "taught", "joint")
"""Without a teacher, with it, and with the mean of its scores and the general model's."""
WORTH = 88.8
"""The mean dev MAP above which a taught student is measured on the tests: the general model's 88.30
and half a point."""

Job = tuple[str, tuple[Any, ...], set[str]]


def teacher_jobs() -> Iterator[Job]:
    """As `research.benchmarks.transformers` takes them; the worthiest first."""
    yield "teach", (), set()
    for kind in KINDS:
        before = set() if kind == "plain" else {"teach"}
        yield from (("student", (kind, seed), before) for seed in STUDENTS)
    yield "teacher_on_dev", (), {"teach"}
    for kind in KINDS:
        runs = {f"student {kind} {seed}" for seed in STUDENTS}
        yield from (("students_on_dev", (kind, share), runs) for share in SHARES)
    needs = {f"students_on_dev {kind} {share}" for kind in KINDS for share in SHARES}
    yield "taught_on_test", (), needs


def teller_jobs() -> Iterator[Job]:
    """WikiQA with soft labels by the teacher and the general model, each adapted to other folds."""
    yield from (("teacher_fold", (number,), {"teach"}) for number in range(jobs.FOLDS))
    yield from (("fold", (number,), set()) for number in range(jobs.FOLDS))
    folds = {f"{name} {n}" for name in ("teacher_fold", "fold") for n in range(jobs.FOLDS)}
    yield from (("adapt_wikiqa", ("taught", seed), folds) for seed in (1, 2, 3))
    yield "teacher_adapted", (1,), {"teach"}


def teach(world: World) -> Row:
    """The larger network learns to select; one epoch, or what the time allows."""
    own = teacher_of(world)
    network = PairNetwork.start(own.init).to(world.device)
    journal = Journal(world.work / "teacher.jsonl")
    history = train_transformer(
        network,
        [Phase(own.lists, own.recipe)],
        on_step=journal.step,
        on_epoch=journal.epoch,
    )
    save_network(network, own.tokeniser, teacher_folder(world))
    size = sum(p.numel() for p in network.parameters())
    row = {"init": Path(own.init).name, "parameters": size, "recipe": repr(own.recipe)}
    return row | {"seconds allowed": own.recipe.seconds} | spent(history, journal.path)


def teacher_on_dev(world: World) -> Row:
    network = load_network(teacher_folder(world))[0].to(world.device)
    own = teacher_of(world)
    return {"seconds allowed": own.recipe.seconds, "dev": _with_mean(own.sets.all(DEV, network))}


def student(world: World, kind: str, seed: int) -> Row:
    """One run of the general recipe in fewer steps, with the teacher's scores or without."""
    recipe = replace(world.recipe.transfer, seed=seed, epochs=1, steps=teacher_of(world).steps)
    lists: ListSource = world.lists
    if kind != "plain":
        network = load_network(teacher_folder(world))[0].to(world.device)
        lists = TaughtLists(world.lists, teacher_of(world).lists, teacher_scores(network))
        recipe = replace(recipe, objective=replace(recipe.objective, taught=0.5))
    if kind == "joint":
        lists = Joined(lists, teacher_scores(world.blended(world.recipe.share)))
    history = general_run(world.init, lists, recipe, world.work / kind, device=world.device)
    row = {"kind": kind, "seed": seed, "steps": recipe.steps, "recipe": repr(recipe)}
    return row | spent(history, run_file(world.work / kind, seed).with_suffix(".jsonl"))


class Joined:
    """Taught lists on which a second teacher, who reads the learner's tokens, has a say as well."""

    def __init__(self, lists: ListSource, second: Scorer) -> None:
        self.name, self._lists, self._second = f"{lists.name}, twice", lists, second

    def __len__(self) -> int:
        return len(self._lists)

    def draw(self, chosen: Any, random: Any, score: Scorer) -> PairSet:
        drawn = self._lists.draw(chosen, random, score)
        assert drawn.taught is not None
        return replace(drawn, taught=((drawn.taught + self._second(drawn)) / 2).astype(np.float32))


def students_on_dev(world: World, kind: str, share: float) -> Row:
    """The mean of a kind's students, that far from the start."""
    figures = _with_mean(world.sets.all(DEV, _students(world, kind, share)))
    _dev_file(world, kind, share).write_text(json.dumps(figures), encoding="utf-8")
    row = {"kind": kind, "share": share, "steps": teacher_of(world).steps}
    return row | {"weights": len(STUDENTS), "dev": figures}


def taught_on_test(world: World) -> Row:
    """The tests, and a folder, only where dev says that the teacher was clearly worth it."""
    found = {
        (kind, share): json.loads(_dev_file(world, kind, share).read_text("utf-8"))["mean"]["MAP"]
        for kind in KINDS[1:]
        for share in SHARES
    }
    best = max(found, key=lambda each: float(found[each]))
    row: Row = {"kind": best[0], "share": best[1], "steps": teacher_of(world).steps}
    row |= {"dev mean MAP": found[best], "worth": WORTH}
    if found[best] <= WORTH:
        return row
    network = _students(world, *best)
    save_network(network, world.tokeniser, world.work / "model")
    return row | {"test": world.sets.all(TEST, network)}


def teacher_fold(world: World, number: int) -> Row:
    """The teacher's scores of a fifth of WikiQA's train questions, adapted to the rest."""
    own = teacher_of(world)
    chosen = jobs.folds(world)
    network = load_network(teacher_folder(world))[0].to(world.device)
    rest = own.wikiqa.pairs.take(np.flatnonzero(chosen != number))
    train_transformer(network, [Phase(rest, _adapting(world, 1))])
    held = own.wikiqa.pairs.take(np.flatnonzero(chosen == number))
    np.save(
        jobs.fold_file(world, number, "teacher-"), np.concatenate([*list_scores(network, held)])
    )
    return {"fold": number}


def teacher_adapted(world: World, seed: int) -> Row:
    """What the larger network itself reaches on WikiQA."""
    network = load_network(teacher_folder(world))[0].to(world.device)
    own = teacher_of(world)
    recipe = _adapting(world, seed)
    row = jobs.trained(replace(world, sets=own.sets), network, own.wikiqa, recipe, "WikiQA")
    return {"start": "teacher", "loss": "point", "seed": seed} | row


def _adapting(world: World, seed: int) -> TransformerRecipe:
    return replace(world.adapt, objective=jobs.POINT, seed=seed, rate=2e-5)


def _students(world: World, kind: str, share: float) -> PairNetwork:
    network = world.start()
    merged(network, world.work / kind, STUDENTS, share)
    return network.eval()


def teacher_of(world: World) -> Teacher:
    assert world.teacher is not None  # made for the part `teacher`
    return world.teacher


def teacher_folder(world: World) -> Path:
    return world.work / "teacher"


def _dev_file(world: World, kind: str, share: float) -> Path:
    return world.work / f"dev-{kind}-{share}.json"


def spent(history: Any, journal: Path) -> Row:
    """Seconds, the loss, and the steps as the journal has them."""
    steps = [json.loads(line).get("step", 0) for line in journal.read_text("utf-8").splitlines()]
    return {
        "loss": [round(epoch.loss, 4) for epoch in history],
        "seconds": round(sum(epoch.seconds for epoch in history), 1),
        "steps, by fifties": max(steps, default=0),
    }


def _with_mean(figures: Figures) -> Figures:
    """And the mean over all sets, of each measure."""
    names = next(iter(figures.values()))
    return figures | {
        "mean": {name: round(fmean(own[name] for own in figures.values()), 2) for name in names}
    }
