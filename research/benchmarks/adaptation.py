"""
The shipped cascade adapted to WikiQA and TrecQA, trained on one GPU in a few minutes.

    ASKLINE_DATA=DIR python -m research.benchmarks.adaptation pack --out FOLDER
    python -m research.benchmarks.adaptation train --packed FOLDER --out FOLDER --seconds 390
    ASKLINE_DATA=DIR python -m research.benchmarks.adaptation measure --scores FOLDER

`pack` writes the weights and all texts as tokens (under 40 MB, with a copy of the code), so that
`train` needs only torch, transformers and this folder. `train` writes scores and no weights:

- `fit`: a classifier at layer 12, which does not ship, on the frozen encoder.
- `joint`, `drawn`, `trecqa`: all classifiers adapted to WikiQA with both losses, and to TrecQA.
- `long`: ten layers trained further on the transfer sets, without an anchor.
- `fold`: ten layers adapted to WikiQA from `shipped` or `long` with several recipes, by
  cross-validation. The best by MAP on held-out questions of train and on dev is trained on all of
  train with nine seeds (`final`); `soup` has the mean weights of three of them.
- `times`: seconds per question on the idle GPU.

`measure` needs no GPU. It scores the test set only for the start and the recipe that were chosen.
Writes research/results/adaptation.json.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import pickle
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median, stdev
from tempfile import gettempdir
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

from askline import data
from askline.evaluation import Run, make_qrels, score_run
from askline.models.folder import ModelFolder
from askline.rankers.requests import sort_by_score
from askline.training.cascade.cascade_examples import (
    CandidateList,
    SampledCandidateLists,
    TrainingLists,
    WholeCandidateLists,
    load_transfer_sets,
)
from askline.training.cascade.cascade_network import CascadeDevSet, CascadeNetwork, score_pairs
from askline.training.cascade.cascade_training import (
    ADAPT,
    FIT,
    TRANSFER,
    CascadePhase,
    CascadeRecipe,
    train_cascade,
)
from askline.training.checkpoint import average_weights
from askline.training.losses import CascadeObjective
from askline.training.packing import PairTemplate, Rows, TokenTable
from askline.types import QuestionSet
from research.recipes.general import SETS

from . import common
from .cascade_gpu import torch_network, torch_tokenizer
from .shallow_encoders import in_sequence
from .transformer_jobs import PADDED_TO

SHIPPED = common.ROOT / "askline" / "models" / "shipped" / "cascade"
ALL_DEPTHS = (2, 3, 4, 6, 8, 10, 12)
PAPER_DEPTHS = (4, 6, 8, 10, 12)
LAST = 10
"""The depth of the single classifier that is adapted alone: the deepest that ships."""
ALPHAS = (0.3, 0.4, 0.5)
MEASURES = ("MAP", "MRR", "P@1", "nDCG@10")
SEEDS = (1, 2, 3)
FINAL_SEEDS = tuple(range(1, 10))
FOLDS, TRIED_FOLDS = 5, 3
LABELS_ONLY = CascadeObjective(teach=0.0, from_teacher=0.0, reading=0.0)
ALONE = replace(ADAPT, objective=replace(ADAPT.objective, point=0.5))
RECIPES: Mapping[str, CascadeRecipe] = {
    "3e-5, 3 epochs": ALONE,
    "1.5e-5, 3 epochs": replace(ALONE, learning_rate=1.5e-5),
    "5e-5, 3 epochs": replace(ALONE, learning_rate=5e-5),
    "3e-5, 5 epochs": replace(ALONE, epochs=5),
}
LONG = replace(TRANSFER, objective=LABELS_ONLY, learning_rate=6e-5, paragraphs=0)
TIMED = (100, PADDED_TO, 1_300)
SCORED = {
    "wikiqa-dev": ("wikiqa:dev", "answerable", 0),
    "wikiqa-test": ("wikiqa:test", "answerable", 0),
    "wikiqa-train": ("wikiqa:train", "answerable", 0),
    "trecqa-dev": ("trecqa-clean:dev", "both", 0),
    "trecqa-test": ("trecqa-clean:test", "both", 0),
    "wikiqa-test-400": ("wikiqa:test", "answerable", PADDED_TO),
    "trecqa-test-400": ("trecqa-clean:test", "both", PADDED_TO),
}
"""Name → (set, filter, number of candidates that it is padded to; 0 for none)."""

Scores = NDArray[np.float32]
Row = dict[str, Any]


def questions_of(name: str) -> QuestionSet:
    """A set of `SCORED`."""
    source, which, to = SCORED[name]
    found = data.load_dataset(source, root=common.data_root())
    return data.filter_questions(data.pad(found, to=to) if to else found, which)


# --- packing


@dataclass(frozen=True)
class Scored:
    """The pairs of a set as tokens, with labels and the number of candidates per question."""

    table: TokenTable
    template: PairTemplate
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    labels: NDArray[np.bool_]
    sizes: NDArray[np.int32]

    @classmethod
    def of(cls, questions: QuestionSet, tokenizer: Any) -> Scored:
        found = CascadeDevSet.of(questions, tokenizer)
        labels = [each.is_answer for question in questions for each in question.candidates]
        sizes = [len(question.candidates) for question in questions]
        return cls(
            found.table,
            found.template,
            found.first.astype(np.int32),
            found.second.astype(np.int32),
            np.array(labels),
            np.array(sizes, np.int32),
        )

    def scores(self, network: CascadeNetwork) -> Scores:
        """(depths, pairs)."""
        pairs = self.first.astype(np.int64), self.second.astype(np.int64)
        return score_pairs(network, self.table, self.template, *pairs)

    def mean_average_precision(self, scores: Scores) -> float:
        """For choices between trainings; figures are computed by trec_eval in `measure`."""
        cuts = np.cumsum(self.sizes)[:-1]
        found = []
        for own, right in zip(np.split(scores, cuts), np.split(self.labels, cuts), strict=True):
            ranked = right[np.argsort(-own, kind="stable")]
            places = np.flatnonzero(ranked) + 1
            found.append(float((np.arange(1, len(places) + 1) / places).mean()))
        return 100 * fmean(found)

    def part(self, questions: Rows) -> Scored:
        """Only these questions."""
        ends = np.cumsum(self.sizes)
        rows = np.concatenate(
            [np.arange(ends[each] - self.sizes[each], ends[each]) for each in questions]
        )
        return replace(
            self,
            first=self.first[rows],
            second=self.second[rows],
            labels=self.labels[rows],
            sizes=self.sizes[questions],
        )


@dataclass(frozen=True)
class Packed:
    """Everything that `train` reads besides the weights."""

    sets: Mapping[str, Scored]
    transfer: SampledCandidateLists
    wikiqa: WholeCandidateLists
    answerable: NDArray[np.bool_]
    """Which questions of WikiQA train have an answer, in the order of `wikiqa`."""
    trecqa: WholeCandidateLists


def pack(options: argparse.Namespace) -> None:
    """Write FOLDER: model, sets and code."""
    root, out = common.data_root(), options.out
    tokenizer = torch_tokenizer(SHIPPED)
    out.mkdir(parents=True, exist_ok=True)
    sets = {name: Scored.of(questions_of(name), tokenizer) for name in SCORED}
    transfer, _ = load_transfer_sets(SETS, tokenizer, out.parent / "negatives.npz", root=root)
    train = data.load_dataset("wikiqa:train", root=root)
    asked = [question for question in train if question.candidates]
    packed = Packed(
        sets,
        transfer,
        WholeCandidateLists(train, tokenizer),
        np.array([question.answerable for question in asked]),
        WholeCandidateLists(data.load_dataset("trecqa:train-all", root=root), tokenizer),
    )
    with lzma.open(out / "sets.pickle.xz", "wb", preset=6) as stream:
        pickle.dump(packed, stream, protocol=5)
    model = out / "model"
    model.mkdir(exist_ok=True)
    shutil.copy(SHIPPED / "config.json", model)
    stored = ModelFolder.open(SHIPPED, kind="cascade").stored_tensors()
    kept = {
        name: np.array(value)
        for name, value in stored.items()
        if not name.startswith(("adapter.", "context.", "reader."))
    }
    save_arrays(kept, model / "weights.safetensors")
    weights = (model / "weights.safetensors").read_bytes()
    (model / "weights.safetensors").unlink()
    (model / "weights.xz").write_bytes(lzma.compress(weights, preset=6))
    with ZipFile(out / "code.zip", "w", ZIP_DEFLATED) as code:
        for package in ("askline", "research"):
            for path in sorted((common.ROOT / package).rglob("*.py")):
                code.write(path, path.relative_to(common.ROOT))
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"Wrote {out}: {size / 1e6:.1f} MB")


# --- training


class Part:
    """Some questions of a training set."""

    def __init__(self, whole: TrainingLists, rows: Rows) -> None:
        self.name = f"{len(rows)} questions of {whole.name}"
        self.table, self.template = whole.table, whole.template
        self.whole, self.rows = whole, rows

    def __len__(self) -> int:
        return len(self.rows)

    def draw(self, place: int, random: np.random.Generator) -> CandidateList:
        return self.whole.draw(int(self.rows[place]), random)


@dataclass(frozen=True)
class World:
    """Inherited by the worker processes, which are forked."""

    packed: Packed
    model: Path
    work: Path
    device: str
    quick: bool
    """A trial on few questions."""
    until: float
    """When the last long training ends, by time.time()."""

    def network(self, depths: Sequence[int], state: str = "") -> CascadeNetwork:
        """The shipped weights, or those that a job saved, with classifiers at these depths."""
        torch.manual_seed(1)
        network = torch_network(self.model, tuple(depths))
        if state:
            network.load_state_dict(load_file(self.work / f"{state}.safetensors"))
        return network.to(self.device)

    def keep(self, name: str, network: CascadeNetwork) -> None:
        found = {key: value.cpu().contiguous() for key, value in network.state_dict().items()}
        save_file(found, self.work / f"{name}.safetensors")

    def train(self, network: CascadeNetwork, lists: TrainingLists, recipe: CascadeRecipe) -> Row:
        """Train in place; seconds, steps and memory."""
        if self.quick:
            lists, recipe = Part(lists, np.arange(8)), replace(recipe, epochs=1, batch_size=4)
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        begun, steps = time.perf_counter(), []
        train_cascade(
            network, [CascadePhase(lists, recipe)], on_step=lambda step: steps.append(step.total)
        )
        row: Row = {"steps": len(steps), "seconds": round(time.perf_counter() - begun, 1)}
        if self.device == "cuda":
            row["MiB"] = round(torch.cuda.max_memory_allocated() / 2**20)
        return row

    def scores(self, network: CascadeNetwork, *names: str) -> dict[str, Scores]:
        return {name: self.packed.sets[name].scores(network) for name in names}

    def folds(self) -> NDArray[np.int64]:
        """The fold of each question of WikiQA train."""
        return np.random.default_rng(5).integers(0, FOLDS, len(self.packed.wikiqa))


Outcome = tuple[Row, dict[str, Scores]]


def fit(world: World) -> Outcome:
    """A classifier at layer 12 on the frozen encoder, then the cascade with all classifiers."""
    only = world.network(ALL_DEPTHS[-1:])
    recipe = replace(FIT, objective=LABELS_ONLY, paragraphs=0, max_seconds=60.0, seed=1)
    row = world.train(only, world.packed.transfer, recipe)
    network = world.network(ALL_DEPTHS)
    network.classifiers[str(ALL_DEPTHS[-1])].load_state_dict(
        only.classifiers[str(ALL_DEPTHS[-1])].state_dict()
    )
    world.keep("fit", network)
    names = ("wikiqa-dev", "wikiqa-test", "trecqa-test", "wikiqa-test-400", "trecqa-test-400")
    return row, world.scores(network, *names)


def cascade(world: World, kind: str, seed: int) -> Outcome:
    """All classifiers adapted to WikiQA, jointly or one per batch, or jointly to TrecQA."""
    network = world.network(ALL_DEPTHS, "fit")
    objective = replace(ADAPT.objective, kind="drawn" if kind == "drawn" else "joint")
    lists = world.packed.trecqa if kind == "trecqa" else world.packed.wikiqa
    row = world.train(network, lists, replace(ADAPT, objective=objective, seed=seed))
    to = "trecqa" if kind == "trecqa" else "wikiqa"
    return row, world.scores(network, f"{to}-dev", f"{to}-test")


def long(world: World, seed: int) -> Outcome:
    """Ten layers trained further on the transfer sets."""
    network = world.network((LAST,))
    left = max(20.0, world.until - time.time())
    row = world.train(network, world.packed.transfer, replace(LONG, seed=seed, max_seconds=left))
    world.keep(f"long-{seed}", network)
    return row, world.scores(network, "wikiqa-dev")


def long_mean(world: World) -> Outcome:
    """The mean of the long trainings."""
    states = [load_file(path) for path in sorted(world.work.glob("long-[0-9].safetensors"))]
    save_file(average_weights(states), world.work / "long.safetensors")
    return {"runs": len(states)}, world.scores(world.network((LAST,), "long"), "wikiqa-dev")


def _adapted(
    world: World, start: str, recipe: str, rows: Rows, seed: int
) -> tuple[Row, CascadeNetwork]:
    network = world.network((LAST,), "" if start == "shipped" else start)
    lists = Part(world.packed.wikiqa, rows)
    return world.train(network, lists, replace(RECIPES[recipe], seed=seed)), network


def fold(world: World, start: str, recipe: str, number: int) -> Outcome:
    """Train without one fold; MAP on its questions and on dev."""
    folds, answerable = world.folds(), world.packed.answerable
    row, network = _adapted(world, start, recipe, np.flatnonzero(folds != number), 1)
    own = np.flatnonzero(folds[answerable] == number)[: 3 if world.quick else None]
    held = world.packed.sets["wikiqa-train"].part(own)
    dev = world.packed.sets["wikiqa-dev"]
    scores = held.scores(network)[-1], dev.scores(network)[-1]
    row |= {"start": start, "recipe": recipe, "fold": number, "held out": len(held.sizes)}
    for name, used, found in zip(("MAP", "dev MAP"), (held, dev), scores, strict=True):
        row[name] = round(used.mean_average_precision(found), 3)
    return row, {"held": scores[0], "dev": scores[1]}


def choose(rows: Sequence[Row]) -> Row:
    """Start and recipe with the best MAP over the held-out questions and dev, by questions."""
    means: dict[tuple[str, str], float] = {}
    dev_questions = 126
    for key in dict.fromkeys((row["start"], row["recipe"]) for row in rows):
        own = [row for row in rows if (row["start"], row["recipe"]) == key]
        if len(own) < TRIED_FOLDS:
            continue
        held = sum(row["held out"] for row in own)
        total = sum(row["held out"] * row["MAP"] for row in own)
        means[key] = (total + dev_questions * fmean(row["dev MAP"] for row in own)) / (
            held + dev_questions
        )
    start, recipe = max(means, key=lambda key: means[key])
    return {
        "start": start,
        "recipe": recipe,
        "MAP": {" / ".join(key): round(value, 2) for key, value in means.items()},
    }


def final(world: World, start: str, recipe: str, seed: int) -> Outcome:
    """The chosen start and recipe on all of WikiQA train."""
    every = np.arange(len(world.packed.wikiqa))
    row, network = _adapted(world, start, recipe, every, seed)
    world.keep(f"final-{seed}", network)
    return row | {"start": start, "recipe": recipe}, world.scores(
        network, "wikiqa-dev", "wikiqa-test"
    )


def soup(world: World, first: int) -> Outcome:
    """The mean of three final weights."""
    seeds = range(first, first + len(SEEDS))
    states = [load_file(world.work / f"final-{seed}.safetensors") for seed in seeds]
    save_file(average_weights(states), world.work / f"soup-{first}.safetensors")
    network = world.network((LAST,), f"soup-{first}")
    return {"seeds": [*seeds]}, world.scores(network, "wikiqa-dev", "wikiqa-test")


def times(world: World) -> Outcome:
    """Seconds per question at full depth in bfloat16, tokenized before; other jobs are done."""
    network, own = world.network((LAST,)), world.packed.sets["wikiqa-test-400"]
    row: Row = {}
    for count in TIMED:
        taken = []
        for at in range(3 if world.quick else 40):
            rows = (np.arange(count) + at * PADDED_TO) % len(own.first)
            first = np.repeat(own.first[at * PADDED_TO % len(own.first)], count).astype(np.int64)
            second = own.second[rows].astype(np.int64)
            begun = time.perf_counter()
            score_pairs(network, own.table, own.template, first, second)
            taken.append(time.perf_counter() - begun)
        row[str(count)] = {"seconds": round(median(taken[len(taken) // 4 :]), 5)}
    return row, {}


_world: World | None = None  # set before the worker processes are forked, which inherit it
_WORK: Mapping[str, Callable[..., Outcome]] = {
    each.__name__: each for each in (fit, cascade, long, long_mean, fold, final, soup, times)
}
Job = tuple[str, tuple[Any, ...], set[str]]
"""Function, arguments, and the labels of the jobs that must be done before."""


def _run(name: str, *arguments: Any) -> Outcome:
    assert _world is not None
    torch.set_num_threads(1)
    return _WORK[name](_world, *arguments)


def _first_jobs() -> Iterator[Job]:
    """Most important first; `final` and `soup` follow when the folds are done."""
    longs = {f"long {seed}" for seed in SEEDS}
    yield from (("long", (seed,), set()) for seed in SEEDS)
    yield "fit", (), set()
    recipes = [(recipe, number) for number in range(TRIED_FOLDS) for recipe in RECIPES]
    yield from (("fold", ("shipped", *each), set()) for each in recipes)
    yield "long_mean", (), longs
    yield from (("fold", ("long", *each), {"long_mean"}) for each in recipes)
    for seed in SEEDS:
        yield from (("cascade", (kind, seed), {"fit"}) for kind in ("joint", "drawn", "trecqa"))


def _last_jobs(chosen: Row) -> Iterator[Job]:
    for seed in FINAL_SEEDS:
        yield "final", (chosen["start"], chosen["recipe"], seed), set()
    for first in FINAL_SEEDS[:: len(SEEDS)]:
        seeds = range(first, first + len(SEEDS))
        yield (
            "soup",
            (first,),
            {_label("final", (chosen["start"], chosen["recipe"], seed)) for seed in seeds},
        )


def _label(name: str, arguments: Sequence[Any]) -> str:
    return " ".join(map(str, (name, *arguments)))


class Scheduler:
    """Runs jobs in order of priority, each when the jobs that it requires are done."""

    def __init__(self, options: argparse.Namespace, begun: float) -> None:
        self.options, self.begun = options, begun
        self.rows: dict[str, Row] = {}
        self.scores: dict[str, Scores] = {}
        self.about: Row = {}

    def run(self) -> None:
        with ProcessPoolExecutor(self.options.jobs, mp_context=get_context("fork")) as pool:
            self.about = pool.submit(_about, self.options.device).result()
            self._work_through(pool, list(_first_jobs()), self.options.seconds - 90)
            folds = [row for label, row in self.rows.items() if label.startswith("fold ")]
            self.about["chosen"] = choose(folds)
            print(self.about["chosen"], flush=True)
            self._work_through(pool, list(_last_jobs(self.about["chosen"])), self.options.seconds)
            self._work_through(pool, [("times", (), set())], self.options.seconds + 30)

    def _work_through(self, pool: ProcessPoolExecutor, waiting: list[Job], limit: float) -> None:
        """Start no job after `limit` seconds."""
        running: dict[Future[Outcome], str] = {}
        while waiting or running:
            late = time.time() - self.begun > limit
            for job in [] if late else list(waiting):
                name, arguments, needs = job
                if len(running) < self.options.jobs and needs <= self.rows.keys():
                    waiting.remove(job)
                    running[pool.submit(_run, name, *arguments)] = _label(name, arguments)
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED, timeout=5).done:
                self._finish(future, running.pop(future))
        left = [_label(name, arguments) for name, arguments, _ in waiting]
        self.about["left out"] = [*self.about.get("left out", ()), *left]
        self._write()

    def _finish(self, future: Future[Outcome], label: str) -> None:
        try:
            row, scores = future.result()
        except Exception as error:  # one failed job must not lose the others
            traceback.print_exception(error)
            self.about[f"failed: {label}"] = repr(error)
            return
        self.rows[label] = row
        self.scores |= {f"{label}|{name}": value for name, value in scores.items()}
        print(f"{time.time() - self.begun:6.1f} s  {label}: {row}", flush=True)
        self._write()

    def _write(self) -> None:
        out: Path = self.options.out
        record = self.about | {"wall": round(time.time() - self.begun, 1), "rows": self.rows}
        (out / "adaptation.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
        half = out / "half"
        with half.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **self.scores)
        half.replace(out / "adaptation.npz")


def _about(device: str) -> Row:
    """Called in a worker process: a process that has used the GPU cannot be forked."""
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return {"device": name, "torch": torch.__version__, "cores": os.cpu_count()}


def train(options: argparse.Namespace) -> None:
    """Run all trainings and write their scores to OUT."""
    global _world
    begun = time.time()
    options.out.mkdir(parents=True, exist_ok=True)
    options.work.mkdir(parents=True, exist_ok=True)
    shutil.copytree(options.packed / "model", options.work / "model", dirs_exist_ok=True)
    packed_weights = (options.work / "model" / "weights.xz").read_bytes()
    (options.work / "model" / "weights.safetensors").write_bytes(lzma.decompress(packed_weights))
    with lzma.open(options.packed / "sets.pickle.xz") as stream:
        packed: Packed = pickle.load(stream)
    if options.quick:
        few = {
            name: own.part(np.arange(3))
            for name, own in packed.sets.items()
            if "-train" not in name
        }
        packed = replace(packed, sets=dict(packed.sets) | few)
    until = begun + options.seconds * 0.38
    _world = World(
        packed, options.work / "model", options.work, options.device, options.quick, until
    )
    print(f"{time.time() - begun:.1f} s  read {options.packed}", flush=True)
    Scheduler(options, begun).run()
    print(f"{time.time() - begun:.1f} s  done", flush=True)


# --- measuring


class Measured:
    """Scores of `train`, measured by trec_eval."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / "adaptation.npz") as stored:
            self.scores = dict(stored)
        self.record: Row = json.loads((folder / "adaptation.json").read_text("utf-8"))
        self._sets: dict[str, QuestionSet] = {}

    def questions(self, name: str) -> QuestionSet:
        if name not in self._sets:
            self._sets[name] = questions_of(name)
        return self._sets[name]

    def row(self, name: str, scores: NDArray[np.floating]) -> Row:
        """The means of all measures, in percent."""
        questions = self.questions(name)
        cuts = np.cumsum([len(question.candidates) for question in questions])[:-1]
        hits = map(sort_by_score, np.split(scores.astype(np.float64), cuts))
        run = Run.from_hits("scores", zip(questions, hits, strict=True))
        found = score_run(run, make_qrels(questions), measures=MEASURES)
        return {each: round(100 * float(found[each].mean()), 2) for each in MEASURES}

    def by_depth(self, label: str, name: str) -> dict[str, Row]:
        """A row per classifier, and two per α: at the depths of the paper, and at all that ship."""
        scores = self.scores[f"{label}|{name}"]
        by_depth = dict(zip(ALL_DEPTHS, scores.astype(np.float64), strict=True))
        rows = {
            str(depth): self.row(name, own) | {"cost": round(depth / ALL_DEPTHS[-1], 3)}
            for depth, own in by_depth.items()
        }
        sizes = [len(question.candidates) for question in self.questions(name)]
        for label, depths in (("", PAPER_DEPTHS), (", all that ship", ALL_DEPTHS[:-1])):
            chosen = {depth: by_depth[depth] for depth in depths}
            for alpha in ALPHAS:
                made, cost = in_sequence(chosen, sizes, alpha, sharing=True)
                rows[f"alpha {alpha}{label}"] = self.row(name, made) | {"cost": round(cost, 3)}
        return rows

    def labels(self, prefix: str) -> list[str]:
        """Finished jobs whose label has this prefix."""
        return sorted(label for label in self.record["rows"] if label.startswith(prefix))


def over_seeds(runs: Sequence[Mapping[str, Row]]) -> dict[str, Row]:
    """Means and standard deviations of each measure of each row."""
    found: dict[str, Row] = {}
    for row in runs[0]:
        found[row] = {"seeds": len(runs)}
        for name in runs[0][row]:
            values = [run[row][name] for run in runs]
            found[row][name] = round(fmean(values), 2 if name != "cost" else 3)
            if len(values) > 1:
                found[row][f"{name} ±"] = round(stdev(values), 2)
    return found


def measure(options: argparse.Namespace) -> None:
    """Measure the scores, choose on dev, and save."""
    own = Measured(options.scores)
    rows = dict(own.record["rows"])
    seconds = {count: row["seconds"] for count, row in rows.pop("times", {}).items()}
    figures: Row = {
        **{name: own.record[name] for name in ("device", "torch", "chosen", "wall", "left out")},
        "seconds per question": seconds,
        "runs": rows,
        "layer 12 fitted": {
            name: own.by_depth("fit", name)
            for name in ("wikiqa-test", "trecqa-test", "wikiqa-test-400", "trecqa-test-400")
        },
    }
    for kind, name in (("joint", "wikiqa"), ("drawn", "wikiqa"), ("trecqa", "trecqa")):
        labels = own.labels(f"cascade {kind} ")
        if labels:
            figures[f"adapted, {kind}"] = {
                part: over_seeds([own.by_depth(label, f"{name}-{part}") for label in labels])
                for part in ("dev", "test")
            }
    figures["adapted alone"] = adapted_alone(own)
    print(json.dumps({key: figures[key] for key in ("chosen", "adapted alone")}, indent=1))
    print(f"Saved to {common.save('adaptation', figures)}")


def adapted_alone(own: Measured) -> Row:
    """
    Ten layers adapted to WikiQA: single runs, and means of the weights of three.

    `chosen` is the better of the two on dev; the other one is reported beside it.
    """
    kinds = {"single": own.labels("final "), "mean of three": own.labels("soup ")}
    found: Row = {}
    for part in ("dev", "test"):
        name = f"wikiqa-{part}"
        found[part] = {
            kind: over_seeds([{name: own.row(name, own.scores[f"{label}|{name}"][-1])}
                              for label in labels])[name]
            for kind, labels in kinds.items() if labels
        }  # fmt: skip
    return {"chosen": max(found["dev"], key=lambda kind: found["dev"][kind]["MAP"]), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("part", choices=["pack", "train", "measure"])
    parser.add_argument("--out", type=Path, help="folder to write, for `pack` and `train`")
    parser.add_argument("--packed", type=Path, help="folder that `pack` wrote, for `train`")
    parser.add_argument("--scores", type=Path, help="folder that `train` wrote, for `measure`")
    parser.add_argument(
        "--work", type=Path, default=Path(gettempdir()) / "adaptation", help="for weights"
    )
    parser.add_argument("--seconds", type=float, default=390.0, help="start no job later")
    parser.add_argument("--jobs", type=int, default=12, help="number of parallel processes")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--quick", action="store_true", help="a trial on few questions")
    options = parser.parse_args()
    {"pack": pack, "train": train, "measure": measure}[options.part](options)


if __name__ == "__main__":
    main()
