"""
The general transformer and what it adapts to, trained by the project's own recipe and measured.

    python -m research.benchmarks.transformers --data DIR --init DIR --device cuda --work DIR
    python -m research.benchmarks.transformers --join FILE FILE …

Three runs are blended to the general model, which then adapts to WikiQA and TrecQA; models cut to
4, 6, 8, 10 and 12 layers are transferred in one run of one epoch and adapted, the Report's head is
trained on WikiQA alone, hard negatives by BM25 and by Cosinet are compared at 6 layers, and with
`--teacher` students of a larger network are compared with such without. With the part `plans` the
general model is the best of several plans of lists; `cross` chooses how to adapt to WikiQA by
cross-validation, and `topic`, `teach` and `taught` compare lists with more of the own article.
Each choice is made on dev sets; every test set is scored once for each row. Writes
research/results/transformers.json after each finished piece, and WORK/model, the general model's folder.
`--few 8` is a trial with eight questions of each set.

The second form makes one research/results/transformers.json of files that calls with some `--parts` each
wrote: rows of later files stand for those of the same training in earlier ones.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from math import inf
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

import askline
from askline.training.general.fit import GeneralRecipe
from askline.training.general.sets import SETS, TALK, general_parts
from askline.training.transformer import TransformerRecipe
from askline.training.transformer.cross_encoder import load_tokeniser
from askline.training.transformer.negatives import Negatives, mine
from askline.training.transformer.sampling import Part, SampledLists
from askline.types import Question

from . import transformer_cross as crossing
from . import transformer_jobs as jobs
from . import transformer_plans as plans
from . import transformer_teacher as teaching
from . import transformer_topic as topics
from .report import save
from .transformer_jobs import Row, Teacher, World
from .transformer_join import joined, summary
from .transformer_sets import DEV, TEST, Sets

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6)
DEPTHS = (4, 6, 8, 10, 12)
SEEDS = (1, 2, 3)
ROOMS = (jobs, teaching, topics, plans, crossing)
COMPARED = 6  # layers of the runs that compare hard negatives

Job = tuple[str, tuple[Any, ...], set[str]]

_world: World | None = None  # set before the processes are forked, so that they have it


def _device(name: str) -> str:
    """Asked in a process of its own: one that has used the GPU cannot be forked."""
    return torch.cuda.get_device_name() if name == "cuda" else "cpu"


def _run(name: str, *arguments: Any) -> Row:
    assert _world is not None
    torch.set_num_threads(1)
    work = next(getattr(room, name) for room in ROOMS if hasattr(room, name))
    return jobs.timed(work, _world, *arguments)


class Plan:
    """Jobs in the order of their worth, each started when what it needs is done."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.until = time.monotonic() + options.limit
        self.rows: dict[str, list[Row]] = {}  # by the name of the job
        self.waiting: list[Job] = list(_jobs(options.parts, options.ways))
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
            **summary(self.rows),
            "parts": self.options.parts,
            "rows": self.rows,
            "left out": [" ".join(map(str, (job[0], *job[1]))) for job in self.waiting],
        }
        save(self.options.name, figures, "torch", "transformers")


def _jobs(parts: Container[str], ways: Sequence[str]) -> Iterator[Job]:
    """Name, arguments, and the labels of the jobs that must be done before; the worthiest first."""
    runs = {f"transfer {seed}" for seed in SEEDS} if "general" in parts else set()
    if "plans" in parts:
        yield from plans.plan_jobs()
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
        yield from (("fold", (number,), runs) for number in range(jobs.FOLDS))
    if "depths" in parts:
        yield from _depths()
    if "adapt" in parts:
        folds = {f"fold {number}" for number in range(jobs.FOLDS)}
        yield from (("adapt_wikiqa", ("soft", seed), folds) for seed in SEEDS)
        yield from (("adapt_trecqa", ("point", seed), runs) for seed in SEEDS)
        yield from _means()
    if "cross" in parts:
        yield from crossing.cross_jobs(runs, ways)
    if "negatives" in parts:
        yield from _negatives("depths" in parts)
    if "teacher" in parts:
        yield from teaching.teacher_jobs()
        yield from teaching.teller_jobs() if "tellers" in parts else ()
    if "teach" in parts:
        yield "teach", (), set()
        yield "teacher_on_dev", (), {"teach"}
    for kind in ("topic", topics.TAUGHT):
        yield from topics.topic_jobs(kind) if kind in parts else ()
    if "adapt" in parts:
        yield from (("adapt_trecqa", ("both", seed), runs) for seed in SEEDS)
    if "general" in parts and "plans" not in parts:  # there a run has its plan's name
        yield from (("single", (seed,), runs) for seed in SEEDS)


def _depths() -> Iterator[Job]:
    for seed in SEEDS:
        for depth in reversed(DEPTHS):
            yield "adapt_wikiqa", ("point", seed, depth), {f"transfer 1 {depth} 1"}
    for depth in reversed(DEPTHS):
        yield "adapt_trecqa", ("point", 1, depth), {f"transfer 1 {depth} 1"}


def _means() -> Iterator[Job]:
    for losses in ("point", "both", "soft", "point+both+soft"):
        needs = {f"adapt_wikiqa {loss} {seed}" for loss in losses.split("+") for seed in SEEDS}
        yield "mean_wikiqa", (losses, SEEDS), needs


def _negatives(depths: bool) -> Iterator[Job]:
    """The first run by BM25 is that of the part `depths`, where there is one."""
    for seed in SEEDS:
        for hard in ("cosinet", "bm25"):
            run = (seed, COMPARED, 1) if hard == "bm25" else (seed, COMPARED, 1, hard)
            if not (depths and run == (1, COMPARED, 1)):
                yield "transfer", run, set()
            yield "single", (seed, COMPARED, hard), {f"transfer {' '.join(map(str, run))}"}


def world(options: argparse.Namespace) -> World:
    """Read and tokenise everything before any process is forked: a tokeniser's threads are not."""
    start = time.monotonic()
    tokeniser = load_tokeniser(options.init)
    lists, others = _lists(options, tokeniser)
    print(f"{time.monotonic() - start:.1f} s  {len(lists)} questions to transfer from", flush=True)
    sets = Sets(options.data, tokeniser, options.few)
    whole = bool({"general", "teacher", "topic", "taught"} & set(options.parts))
    tests = TEST.values() if whole else (TEST[name] for name in ("WikiQA", "TrecQA"))
    more = plans.MORE.values() if "plans" in options.parts else ()
    measured = [*DEV.values(), *more, *tests]
    if options.parts == ["teach"]:  # the larger network has tokens of its own
        measured = []
    for line in sets.prepare(measured):
        print(f"{time.monotonic() - start:.1f} s  {line}", flush=True)
    for name in jobs.UNANSWERABLE if "general" in options.parts else ():
        sets.measured((name, "all", False, None))
    if {"topic", "taught"} & set(options.parts):
        topics.prepare(sets)
    transfer = replace(GeneralRecipe().transfer, tokens=32_768, seconds=options.seconds)
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
        adapt=TransformerRecipe(jobs.POINT, epochs=3, rate=3e-5, batch=16, tokens=32_768),
        general=options.general,
        teacher=_teacher(options) if options.teacher else None,
    )


def _teacher(options: argparse.Namespace) -> Teacher:
    tokeniser = load_tokeniser(options.teacher)
    sets = Sets(options.data, tokeniser, options.few)
    list(sets.prepare([*DEV.values(), TEST["WikiQA"]]))
    return Teacher(
        init=options.teacher,
        tokeniser=tokeniser,
        lists=_lists(options, tokeniser)[0],
        sets=sets,
        wikiqa=sets.training("wikiqa:train"),
        recipe=TransformerRecipe(
            keep="last",
            epochs=2 if "teach" in options.parts else 1,
            rate=3e-5,
            tokens=32_768,
            seconds=options.teacher_seconds,
        ),
        steps=options.steps,
    )


def _lists(
    options: argparse.Namespace, tokeniser: Any
) -> tuple[SampledLists, dict[str, SampledLists]]:
    """What is transferred from by the recipe's plan and, where asked for, with other negatives."""
    parts: tuple[Part, ...] = general_parts(options.data)
    if topics.PARTS & set(options.parts):
        parts = (replace(parts[0], plan=topics.TOPIC), *parts[1:])
    if options.few:
        parts = tuple(replace(part, questions=part.questions[: options.few]) for part in parts)
    questions = [question for part in parts for question in part.questions]
    mined, name = _mined(options, "bm25", questions), " + ".join(SETS)
    lists = SampledLists(name, parts, mined, tokeniser)
    others = {}
    if "negatives" in options.parts:
        others["cosinet"] = lists.with_negatives(_mined(options, "cosinet", questions))
    for label, plan in plans.COMPARED.items() if "plans" in options.parts else ():
        own = [replace(part, plan=plan) if part.plan != TALK else part for part in parts]
        others[label] = SampledLists(name, own, mined, tokeniser)
    return lists, others


def _mined(options: argparse.Namespace, hard: str, questions: list[Question]) -> Negatives:
    """Kept in a file, for the light ranker takes minutes to choose."""
    given = options.negatives if hard == "bm25" else options.light_negatives
    path = given or options.work / f"negatives-{hard}.npz"
    if options.few or not path.exists():
        ranker = None if hard == "bm25" else askline.load(hard)
        path = options.work / f"negatives-{hard}.npz"
        near = {"near": topics.NEAREST} if topics.PARTS & set(options.parts) else {}
        mine(questions, ranker=ranker, **near).save(path)
    return Negatives.load(path, questions)


def main() -> None:
    global _world
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder with the datasets")
    parser.add_argument("--init", help="the folder of the weights to start from")
    parser.add_argument("--work", type=Path, help="where weights are written")
    parser.add_argument("--negatives", type=Path, help="mined before  [WORK/negatives-bm25.npz]")
    parser.add_argument("--light-negatives", type=Path, help="  [WORK/negatives-cosinet.npz]")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=8, help="processes at once")
    parser.add_argument("--limit", type=float, default=1e9, help="start no job after these seconds")
    parser.add_argument("--seconds", type=float, default=inf, help="of training, for each run")
    parser.add_argument("--parts", default="general,adapt,cross,depths,report,negatives")
    parser.add_argument("--name", default="transformers", help="of the file in research/results/")
    parser.add_argument("--general", type=Path, help="adapt this model; for parts without general")
    parser.add_argument(
        "--teacher", help="the folder of a larger encoder; for the parts teach,\ntaught and teacher"
    )
    parser.add_argument("--teacher-seconds", type=float, default=inf, help="of its training")
    parser.add_argument(
        "--way",
        action="append",
        dest="ways",
        choices=[*crossing.WAYS],
        help="to adapt, for the part cross; may be given several times  [all]",
    )
    parser.add_argument("--steps", type=float, default=inf, help="of each student beside it")
    parser.add_argument("--few", type=int, help="so many questions of each set, for a trial")
    parser.add_argument("--join", type=Path, nargs="+", help="files of earlier calls, oldest first")
    options = parser.parse_args()
    if options.join:
        print(f"Kept in {save(options.name, joined(options.join), 'torch', 'transformers')}")
        return
    if not (options.data and options.init and options.work):
        parser.error("--data, --init and --work are needed, or --join")
    options.parts = options.parts.split(",")
    options.ways = options.ways or [*crossing.WAYS]
    adapts = "adapt" in options.parts or "cross" in options.parts
    if ("general" in options.parts) == bool(options.general) and adapts:
        parser.error("adapt and cross need either the part general or --general, and not both")
    taught_by = {"teach", "taught", "teacher"} & set(options.parts)
    if bool(taught_by) != bool(options.teacher):
        parser.error("--teacher is for the parts teach, taught and teacher, which need it")
    if {"topic", "taught", "teacher"} & set(options.parts) and not options.general:
        parser.error("the parts topic, taught and teacher need --general; tellers needs teacher")
    options.work.mkdir(parents=True, exist_ok=True)
    _world = world(options)
    Plan(options).run()


if __name__ == "__main__":
    main()
