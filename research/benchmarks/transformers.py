"""
Train the general transformer, adapt it to WikiQA and TrecQA, and measure everything.

    python -m research.benchmarks.transformers --data DIR --init DIR --device cuda --work DIR
    python -m research.benchmarks.transformers --join FILE FILE …

Parts (`--parts`): `general` trains three runs and merges them; `plans` selects the plan of lists
and the share on dev sets instead; `adapt` adapts the general model to WikiQA and TrecQA; `cross`
selects the loss for WikiQA by cross-validation; `depths` trains models of 4, 6, 8, 10 and 12
layers; `report` trains the report's baseline. Every choice is made on dev sets; every test set is
scored once per row. Writes research/results/transformers.json after each finished job, and
WORK/model, the folder of the general model. `--few 8` is a trial with eight questions per set.

The second form merges the files of several calls into one; rows of later files replace the same
rows of earlier ones.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from math import inf
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from askline.training.transformer.cross_encoder_folder import load_tokenizer
from askline.training.transformer.sampled_lists import (
    CONVERSATION_PLAN,
    Negatives,
    SampledLists,
    SamplingPart,
    mine_negatives,
)
from askline.training.transformer.transformer_training import TransformerRecipe
from research.recipes.general import SETS, GeneralRecipe, general_parts

from . import transformer_jobs as jobs
from .common import save
from .transformer_jobs import DEV, SEEDS, TEST, Job, Row, Sets, World

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6)
DEPTHS = (4, 6, 8, 10, 12)

_world: World | None = None  # set before the worker processes are forked, which inherit it


def main() -> None:
    global _world
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the datasets")
    parser.add_argument("--init", help="folder of the initial weights")
    parser.add_argument("--work", type=Path, help="folder for trained weights")
    parser.add_argument("--negatives", type=Path, help="mined before  [WORK/negatives-bm25.npz]")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=8, help="number of parallel processes")
    parser.add_argument("--limit", type=float, default=1e9, help="start no job after N seconds")
    parser.add_argument("--seconds", type=float, default=inf, help="training time of each run")
    parser.add_argument("--parts", default="general,adapt,cross,depths,report")
    parser.add_argument("--name", default="transformers", help="name of the result file")
    parser.add_argument("--general", type=Path, help="adapt this model; for parts without general")
    parser.add_argument("--few", type=int, help="number of questions per set, for a trial")
    parser.add_argument("--join", type=Path, nargs="+", help="files of earlier calls, oldest first")
    options = parser.parse_args()
    if options.join:
        print(f"Saved to {save(options.name, joined(options.join), 'torch', 'transformers')}")
        return
    if not (options.data and options.init and options.work):
        parser.error("--data, --init and --work are required, or --join")
    options.parts = options.parts.split(",")
    adapts = "adapt" in options.parts or "cross" in options.parts
    if ("general" in options.parts) == bool(options.general) and adapts:
        parser.error("adapt and cross need either the part general or --general, and not both")
    options.work.mkdir(parents=True, exist_ok=True)
    _world = world(options)
    Scheduler(options).run()


class Scheduler:
    """Runs jobs in order of priority, each when the jobs that it requires are done."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.until = time.monotonic() + options.limit
        self.rows: dict[str, list[Row]] = {}  # by the name of the job
        self.waiting: list[Job] = list(_jobs(options.parts))
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
        label = jobs.label(name, arguments)
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
            **summary(self.rows),
            "parts": self.options.parts,
            "rows": self.rows,
            "left out": [jobs.label(name, arguments) for name, arguments, _ in self.waiting],
        }
        save(self.options.name, figures, "torch", "transformers")


def _device(name: str) -> str:
    """Called in a worker process: a process that has used the GPU cannot be forked."""
    return torch.cuda.get_device_name() if name == "cuda" else "cpu"


def _run(name: str, *arguments: Any) -> Row:
    assert _world is not None
    torch.set_num_threads(1)
    return jobs.timed(getattr(jobs, name), _world, *arguments)


def _jobs(parts: Container[str]) -> Iterator[Job]:
    """The jobs of these parts, most important first."""
    runs = {f"transfer {seed}" for seed in SEEDS} if "general" in parts else set()
    if "plans" in parts:
        yield from jobs.plan_jobs()
        runs = {"choose"}
    elif "general" in parts:
        yield from (("transfer", (seed,), set()) for seed in SEEDS)
        yield from (("blend_on_dev", (share,), runs) for share in SHARES)
    if "general" in parts:
        yield "blend_on_test", (), runs
        yield "untouched", (), set()
    if "depths" in parts:  # the longest first
        yield from (("transfer", (1, depth, 1), set()) for depth in reversed(DEPTHS))
    if "report" in parts:
        yield from (("report_head", (seed,), set()) for seed in SEEDS)
    if "adapt" in parts:
        yield from (("adapt_wikiqa", (x, seed), runs) for x in ("point", "both") for seed in SEEDS)
        yield from (("adapt_trecqa", (x, seed), runs) for x in ("point", "both") for seed in SEEDS)
    if "depths" in parts:
        yield from _depths()
    if "cross" in parts:
        yield from jobs.cross_jobs(runs)
    if "general" in parts and "plans" not in parts:  # with plans, a run has its plan's name
        yield from (("single", (seed,), runs) for seed in SEEDS)


def _depths() -> Iterator[Job]:
    for seed in SEEDS:
        for depth in reversed(DEPTHS):
            yield "adapt_wikiqa", ("point", seed, depth), {f"transfer 1 {depth} 1"}
    for depth in reversed(DEPTHS):
        yield "adapt_trecqa", ("point", 1, depth), {f"transfer 1 {depth} 1"}


def world(options: argparse.Namespace) -> World:
    """Read and tokenize everything before forking, because tokenizer threads do not survive it."""
    start = time.monotonic()
    tokeniser = load_tokenizer(options.init)
    lists, others = _lists(options, tokeniser)
    print(f"{time.monotonic() - start:.1f} s  {len(lists)} questions to transfer from", flush=True)
    sets = Sets(options.data, tokeniser, options.few)
    whole = "general" in options.parts
    tests = TEST.values() if whole else (TEST[name] for name in ("WikiQA", "TrecQA"))
    more = jobs.MORE.values() if "plans" in options.parts else ()
    for line in sets.prepare([*DEV.values(), *more, *tests]):
        print(f"{time.monotonic() - start:.1f} s  {line}", flush=True)
    for name in jobs.UNANSWERABLE if whole else ():
        sets.measured((name, "all", False, None))
    transfer = replace(GeneralRecipe().transfer, max_tokens=32_768, max_seconds=options.seconds)
    return World(
        init=options.init,
        tokeniser=tokeniser,
        lists=lists,
        others=others,
        sets=sets,
        wikiqa=sets.training("wikiqa:train"),
        trecqa=sets.training("trecqa:train-all"),
        work=options.work,
        device=options.device,
        recipe=replace(GeneralRecipe(), transfer=transfer),
        adapt=TransformerRecipe(
            objective=jobs.POINT, epochs=3, learning_rate=3e-5, batch_size=16, max_tokens=32_768
        ),
        general=options.general,
    )


def _lists(
    options: argparse.Namespace, tokeniser: Any
) -> tuple[SampledLists, dict[str, SampledLists]]:
    """Training lists by the recipe's plan and, with the part `plans`, by the other plans."""
    parts: tuple[SamplingPart, ...] = general_parts(options.data)
    if options.few:
        parts = tuple(replace(part, questions=part.questions[: options.few]) for part in parts)
    mined, name = _mined(options, parts), " + ".join(SETS)
    lists = SampledLists(name, parts, mined, tokeniser)
    others = {}
    for label, plan in jobs.COMPARED.items() if "plans" in options.parts else ():
        own = [
            replace(part, plan=plan) if part.plan != CONVERSATION_PLAN else part for part in parts
        ]
        others[label] = SampledLists(name, own, mined, tokeniser)
    return lists, others


def _mined(options: argparse.Namespace, parts: Sequence[SamplingPart]) -> Negatives:
    """BM25 negatives, kept in a file because mining takes half a minute."""
    questions = [question for part in parts for question in part.questions]
    path = options.negatives or options.work / "negatives-bm25.npz"
    if options.few or not path.exists():
        path = options.work / "negatives-bm25.npz"
        mine_negatives(questions).save(path)
    return Negatives.load(path, questions)


_IDENTITY = (
    *("start", "loss", "seed", "depth", "epochs", "hard", "share", "fold", "weights"),
    *("kind", "steps", "seconds allowed", "compared", "way"),
)
"""Keys that identify a row of a job. Values that are lists are results and not compared."""
_DEFAULTS = {"start": "general", "hard": "bm25"}
"""Values that rows of the first calls do not contain."""
_CALL = ("environment", "device", "processes at once", "parts", "recipe", "adapt recipe")


def joined(paths: Sequence[Path]) -> dict[str, Any]:
    """
    Merge the rows of all files; a later row replaces an earlier one. The environment is the last's.

    The first file may itself be a merged one.
    """
    rows: dict[str, dict[tuple[Any, ...], Row]] = {}
    calls: list[dict[str, Any]] = []
    for path in paths:
        found = json.loads(path.read_text("utf-8"))
        for name, own in found["rows"].items():
            kept = rows.setdefault(name, {})
            new = [{"call": len(calls) + 1} | _DEFAULTS | row for row in own if "failed" not in row]
            kept.update({_key(row): row for row in new})
        calls += found.get("calls") or [{name: found[name] for name in _CALL}]
    merged = {name: list(own.values()) for name, own in rows.items()}
    return {**calls[-1], "calls": calls, **summary(merged), "rows": merged}


def _key(row: Row) -> tuple[Any, ...]:
    values = (row.get(name) for name in _IDENTITY)
    return tuple("…" if isinstance(value, list) else value for value in values)


def summary(rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Means over seeds."""
    adapted = {name: rows.get(name, []) for name in ("adapt_wikiqa", "adapt_trecqa")}
    return {
        "by loss": {name: _by_loss(own) for name, own in adapted.items()},
        "by depth": {name: _by_depth(own) for name, own in adapted.items()},
        "report head": _means([row for row in rows.get("report_head", []) if "dev" in row]),
        "plans": [
            {key: row[key] for key in ("hard", "share", "dev")}
            | {"mean MAP": round(jobs.mean_map(row["dev"]), 2)}
            | {"P@1 lost by padding": round(jobs.padding_loss(row["dev"]), 2)}
            for row in sorted(rows.get("plan_on_dev", []), key=_plan)
        ],
        "ways, by cross-validation": {
            name: row[name]
            for row in rows.get("cross_choose", [])
            for name in ("questions", "ways", "chosen")
        },
        "adapted the chosen way": _means(rows.get("cross_adapt", [])),
    }


def _plan(row: Row) -> tuple[str, float]:
    return row["hard"], -row["share"]


def _by_loss(rows: Sequence[Row]) -> dict[str, Row]:
    """Rows that start from the general model; the loss with the best dev MAP is marked."""
    own = [row for row in rows if row.get("start") == "general"]
    means = {loss: _means(group) for loss, group in _groups(own, "loss").items()}
    best = max(means, key=lambda each: float(means[each]["dev"]["MAP"]), default="")
    return {loss: row | {"chosen": loss == best} for loss, row in means.items()}


def _by_depth(rows: Sequence[Row]) -> dict[str, Row]:
    own = [row for row in rows if "test" in row and row.get("start") != "general"]
    groups = sorted(_groups(own, "depth").items())
    return {str(depth): _means(group) for depth, group in groups}


def _means(rows: Sequence[Row]) -> Row:
    """Means of dev and test measures, with the standard deviation of the test measures."""
    if not rows:
        return {}
    found: Row = {part: _mean([row[part] for row in rows]) for part in ("dev", "test")}
    if len(rows) > 1:
        found["test ±"] = {
            name: round(stdev(row["test"][name] for row in rows), 2) for name in rows[0]["test"]
        }
    seconds = [row["seconds"] for row in rows if "seconds" in row]
    if seconds:
        found["seconds"] = round(fmean(seconds), 1)
    return found | {"seeds": len(rows)}


def _groups(rows: Sequence[Row], name: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found


def _mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: round(fmean(row[name] for row in rows), 2) for name in rows[0]}


if __name__ == "__main__":
    main()
