"""
Recipes of the light rankers side by side, without a look at a test set.

    ASKLINE_DATA=DIR python -m research.benchmarks.light_choosing --vectors FILE --device cuda --jobs 8

For WikiQA: five-fold cross-validation over the answerable questions of its train and dev sets,
where a case may be trained on the SQuAD-like sets first. For SQuAD-sent: P@1 on the part of
SQuADShifts held out. One seed a fold; a mean over the folds moves by about 0.4 with the seed.
It writes research/results/light_choosing.json.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from askline.models.light_config import Layout
from askline.training.light.encoded_questions import encode
from askline.training.light.light_training import DevSet, Recipe, train
from askline.types import QuestionSet

from .light_cases import CASES, Case
from .light_rows import SQUAD_TRAIN
from .light_sets import Source, encoded, questions, word_vectors
from .report import save

FOLDS = 5


@dataclass(frozen=True)
class Job:
    """All recipes of a case."""

    case: Case
    source: Source
    until: float


@cache
def folds(layout: Layout, source: Source) -> tuple[tuple[Any, DevSet], ...]:
    """What to train on and what to measure on, both encoded, for each fold."""
    every = [one for name in ("wikiqa:train", "wikiqa:dev") for one in questions(name)]
    order = np.random.default_rng(1).permutation(len(every)).tolist()

    def numbers(chosen: list[int]) -> DevSet:
        some = QuestionSet("fold", tuple(every[place] for place in sorted(chosen)))
        table = word_vectors(source.vectors)
        return DevSet(some, encode(some, table, layout, device=source.device))

    held = [order[fold::FOLDS] for fold in range(FOLDS)]
    return tuple(
        (numbers([one for one in order if one not in set(part)]).encoded, numbers(part))
        for part in held
    )


def run(job: Job) -> list[dict[str, Any]]:
    """The figures of a case: after the SQuAD-like sets, and of each recipe on WikiQA."""
    if time.time() > job.until:
        return []
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    case, state, done = job.case, None, []
    if case.first is not None:
        numbers = encoded(SQUAD_TRAIN, case.encoding, job.source)
        trained = train(case.layout, numbers, case.first)
        held = questions("squadshifts:dev")
        dev = DevSet(held, encoded(held.name, case.encoding, job.source)).measure(trained.network)
        done.append(_line(case, case.first, "squadshifts:dev", [dev], trained.seconds))
        state = trained.network.state_dict()
    for recipe in case.then:
        results, seconds = [], 0.0
        for fold, (numbers, held_out) in enumerate(folds(case.encoding, job.source)):
            trained = train(case.layout, numbers, replace(recipe, seed=fold), start=state)
            results.append(held_out.measure(trained.network))
            seconds += trained.seconds
        done.append(_line(case, recipe, "wikiqa, cross-validated", results, seconds))
    return done


def _line(
    case: Case, recipe: Recipe, on: str, results: list[dict[str, float]], seconds: float
) -> dict[str, Any]:
    means = {name: round(fmean(one[name] for one in results), 2) for name in results[0]}
    first = str(case.first) if case.first is not None else None
    return {
        "case": case.label,
        "measured on": on,
        "layout": str(case.layout),
        "first": first,
        "recipe": str(recipe),
        **means,
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1] if __doc__ else None)
    parser.add_argument("--vectors", required=True, help="a file that WordVectors.save wrote")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=1, help="cases at once")
    parser.add_argument("--cases", default="", help="only those whose label has this in it")
    parser.add_argument("--limit", type=float, default=1e9, help="start no job after these seconds")
    options = parser.parse_args()
    done: list[dict[str, Any]] = []
    with (
        TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(options.jobs) as pool,
    ):
        source = Source(options.vectors, options.device, folder)
        until = time.time() + options.limit
        jobs = [Job(case, source, until) for case in CASES if options.cases in case.label]
        for lines in pool.imap_unordered(run, jobs):
            done.extend(lines)
            for line in lines:
                print(time.strftime("%T"), {k: v for k, v in line.items() if k != "layout"})
            save("light_choosing", {"lines": sorted(done, key=lambda one: one["case"])}, "torch")


if __name__ == "__main__":
    main()
