"""
The general transformer and what it adapts to, trained by the project's own recipe and measured.

    python -m benchmarks.transformers --data DIR --init DIR --device cuda --work DIR

Three runs are blended to the general model, which then adapts to WikiQA and TrecQA; models cut to
4, 6, 8, 10 and 12 layers are transferred in one run of one epoch and adapted, and the Report's head
is trained on WikiQA alone. Each choice is made on dev sets; every test set is scored once for each
row. Writes results/transformers.json after each finished piece, and WORK/model, the general model's
folder. `--few 8` is a trial with eight questions of each set.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Container, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from math import inf
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from askline.training.general.fit import GeneralRecipe
from askline.training.general.sets import general_lists, general_parts
from askline.training.transformer import TransformerRecipe
from askline.training.transformer.cross_encoder import load_tokeniser
from askline.training.transformer.negatives import mine
from askline.training.transformer.sampling import SampledLists

from . import transformer_jobs as jobs
from .report import save
from .transformer_jobs import Row, World
from .transformer_sets import Sets

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6)
DEPTHS = (4, 6, 8, 10, 12)
SEEDS = (1, 2, 3)

_world: World | None = None  # set before the processes are forked, so that they have it


def _device(name: str) -> str:
    """Asked in a process of its own: one that has used the GPU cannot be forked."""
    return torch.cuda.get_device_name() if name == "cuda" else "cpu"


def _run(name: str, *arguments: Any) -> Row:
    assert _world is not None
    torch.set_num_threads(1)
    return jobs.timed(getattr(jobs, name), _world, *arguments)


class Plan:
    """Jobs in the order of their worth, each started when what it needs is done."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.until = time.monotonic() + options.limit
        self.rows: dict[str, list[Row]] = {}  # by the name of the job
        self.waiting: list[tuple[str, tuple[Any, ...], set[str]]] = list(_jobs(options.parts))
        self.done: set[str] = set()
        self.started = time.monotonic()

    def run(self) -> None:
        context = get_context("fork")
        with ProcessPoolExecutor(self.options.jobs, mp_context=context) as pool:
            self.device = pool.submit(_device, self.options.device).result()
            running: dict[Future[Row], tuple[str, tuple[Any, ...]]] = {}
            while self.waiting or running:
                self._start(pool, running)
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    self._finish(future, *running.pop(future))

    def _start(self, pool: ProcessPoolExecutor, running: dict[Any, Any]) -> None:
        late = time.monotonic() > self.until
        for job in list(self.waiting):
            name, arguments, needs = job
            if late or len(running) >= self.options.jobs:
                break
            if needs <= self.done:
                self.waiting.remove(job)
                running[pool.submit(_run, name, *arguments)] = (name, arguments)

    def _finish(self, future: Future[Row], name: str, arguments: tuple[Any, ...]) -> None:
        label = " ".join(map(str, (name, *arguments)))
        at = time.monotonic() - self.started
        try:
            row = future.result()
        except Exception as error:
            row = {"failed": repr(error)}
            traceback.print_exception(error)
        self.done.add(label)
        self.rows.setdefault(name, []).append(row)
        print(f"{at:6.1f} s  {label}: {row}", flush=True)
        self._report()

    def _report(self) -> None:
        assert _world is not None
        figures = {
            "device": self.device,
            "processes at once": self.options.jobs,
            "recipe": repr(_world.recipe),
            "adapt recipe": repr(_world.adapt),
            "by loss": _by_loss(self.rows),
            "parts": self.options.parts,
            "rows": self.rows,
            "left out": [" ".join(map(str, (job[0], *job[1]))) for job in self.waiting],
        }
        save(self.options.name, figures, "torch", "transformers")


def _jobs(parts: Container[str]) -> Iterator[tuple[str, tuple[Any, ...], set[str]]]:
    """Name, arguments, and the labels of the jobs that must be done before; the worthiest first."""
    runs = {f"transfer {seed}" for seed in SEEDS} if "general" in parts else set()
    if "general" in parts:
        yield from (("transfer", (seed,), set()) for seed in SEEDS)
        yield "blend_on_test", (GeneralRecipe().share,), runs
        yield from (("blend_on_dev", (share,), runs) for share in SHARES)
        yield "untouched", (), set()
    if "depths" in parts:  # the longest first
        yield from (("transfer", (1, depth, 1), set()) for depth in reversed(DEPTHS))
    if "adapt" in parts:
        yield from (("adapt_wikiqa", (x, seed), runs) for x in ("point", "both") for seed in SEEDS)
        yield from (("fold", (number,), runs) for number in range(jobs.FOLDS))
        folds = {f"fold {number}" for number in range(jobs.FOLDS)}
        yield from (("adapt_wikiqa", ("soft", seed), folds) for seed in SEEDS)
        yield from (("adapt_trecqa", (x, seed), runs) for x in ("point", "both") for seed in SEEDS)
    if "report" in parts:
        yield from (("report_head", (seed,), set()) for seed in SEEDS)
    for depth in reversed(DEPTHS) if "depths" in parts else ():
        needs = {f"transfer 1 {depth} 1"}
        yield "adapt_wikiqa", ("point", 1, depth), needs
        yield "adapt_trecqa", ("point", 1, depth), needs
    if "general" in parts:
        yield from (("single", (seed,), runs) for seed in SEEDS)
    for depth in DEPTHS if "depths" in parts else ():
        for seed in SEEDS[1:]:
            yield "adapt_wikiqa", ("point", seed, depth), {f"transfer 1 {depth} 1"}


def _by_loss(rows: dict[str, list[Row]]) -> dict[str, dict[str, Row]]:
    """For each target the means over seeds of each loss; the one with the best dev is chosen."""
    found: dict[str, dict[str, Row]] = {}
    for name in ("adapt_wikiqa", "adapt_trecqa"):
        own = [row for row in rows.get(name, []) if row.get("start") == "general"]
        means = found.setdefault(name, {})
        for loss in dict.fromkeys(row["loss"] for row in own):
            group = [row for row in own if row["loss"] == loss]
            means[loss] = {part: _mean([row[part] for row in group]) for part in ("dev", "test")}
            means[loss]["seeds"] = len(group)
        for loss in means:
            best = max(means, key=lambda each: float(means[each]["dev"]["MAP"]))
            means[loss]["chosen"] = loss == best
    return found


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(fmean(row[name] for row in rows), 2) for name in rows[0]}


def world(options: argparse.Namespace) -> World:
    """Read and tokenise everything, on the CPU and before any process is forked."""
    start = time.monotonic()
    tokeniser = load_tokeniser(options.init)
    if options.few:
        parts = tuple(
            replace(part, questions=part.questions[: options.few])
            for part in general_parts(options.data)
        )
        mined = mine([question for part in parts for question in part.questions])
        lists = SampledLists("a few", parts, mined, tokeniser)
    else:
        path = options.negatives or options.work / "negatives.npz"
        lists = general_lists(tokeniser, path, root=options.data)
    print(f"{time.monotonic() - start:.1f} s  {len(lists)} questions to transfer from", flush=True)
    sets = Sets(options.data, tokeniser, options.few)
    for line in sets.prepare():
        print(f"{time.monotonic() - start:.1f} s  {line}", flush=True)
    for name in jobs.UNANSWERABLE:
        sets.measured((name, "all", False, None))
    usual = GeneralRecipe()
    return World(
        init=options.init,
        tokeniser=tokeniser,
        lists=lists,
        sets=sets,
        wikiqa=sets.training("wikiqa:train"),
        trecqa=sets.training("trecqa:train-all"),
        work=options.work,
        device=options.device,
        recipe=replace(
            usual, transfer=replace(usual.transfer, tokens=32_768, seconds=options.seconds)
        ),
        adapt=TransformerRecipe(jobs.POINT, epochs=3, rate=3e-5, batch=16, tokens=32_768),
        general=options.general,
    )


def main() -> None:
    global _world
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder with the datasets")
    parser.add_argument("--init", required=True, help="the folder of the weights to start from")
    parser.add_argument("--work", type=Path, required=True, help="where weights are written")
    parser.add_argument("--negatives", type=Path, help="mined before  [WORK/negatives.npz]")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=8, help="processes at once")
    parser.add_argument("--limit", type=float, default=1e9, help="start no job after these seconds")
    parser.add_argument("--seconds", type=float, default=inf, help="of training, for each run")
    parser.add_argument("--parts", default="general,adapt,depths,report", help="some of these")
    parser.add_argument("--name", default="transformers", help="of the file in results/")
    parser.add_argument("--general", type=Path, help="adapt this model; for parts without general")
    parser.add_argument("--few", type=int, help="so many questions of each set, for a trial")
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    if ("general" in options.parts) == bool(options.general) and "adapt" in options.parts:
        parser.error("adapt needs either the part general or --general, and not both")
    options.work.mkdir(parents=True, exist_ok=True)
    _world = world(options)
    Plan(options).run()


if __name__ == "__main__":
    main()
