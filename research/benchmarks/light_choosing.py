"""
Recipes of the light rankers compared without a test set.

    ASKLINE_DATA=DIR python -m research.benchmarks.light_choosing --vectors FILE --device cuda

WikiQA: five-fold cross-validation over the answerable questions of train and dev, with or without
training on the SQuAD-like sets first. SQuAD-sent: P@1 on held-out SQuADShifts. One seed per fold;
the mean over folds varies by about 0.4 with the seed. Writes research/results/light_choosing.json.
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

from askline.models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    RelationalCNNConfig,
)
from askline.training.light.encoded_questions import encode_questions
from askline.training.light.light_training import LightDevSet, LightRecipe, train_light_ranker
from askline.types import QuestionSet

from .common import save
from .light_rankers import SQUAD_TRAIN, Source, encoded, questions, word_vectors


@dataclass(frozen=True)
class Case:
    """A layout, trained on the SQuAD-like sets with `first` if given, then with each of `then`."""

    label: str
    layout: LightConfig
    first: LightRecipe | None = None
    then: tuple[LightRecipe, ...] = ()

    @property
    def encoding(self) -> LightConfig:
        """The layout for encoding, which does not depend on the list layer."""
        if isinstance(self.layout, (CosinetConfig, CompareAggregateConfig)):
            return replace(self.layout, list_layer="none")
        return self.layout


_ALONE, _CA = CosinetConfig(), CompareAggregateConfig()
_BI, _CA_BI = replace(_ALONE, list_layer="birnn"), replace(_CA, list_layer="birnn")
_RICH = replace(_BI, channels=("related", "exact", "idf"))
_LONG = LightRecipe(learning_rate=1e-3, batch_size=32, epochs=2, dropout=0.2)
_ADAPT = LightRecipe(learning_rate=5e-4, batch_size=16, dropout=0.4)


def _rates(recipe: LightRecipe, *rates: float) -> tuple[LightRecipe, ...]:
    return tuple(replace(recipe, learning_rate=rate) for rate in rates)


CASES: tuple[Case, ...] = (
    Case("Cosinet list + BiRNN, transfer", _BI, _LONG, _rates(_ADAPT, 2.5e-4, 5e-4)),
    Case(
        "CA list + BiRNN, transfer",
        _CA_BI,
        replace(_LONG, learning_rate=5e-4, dropout=0.0),
        _rates(replace(_ADAPT, dropout=0.2), 1e-4, 2e-4, 5e-4),
    ),
    Case(
        "CA list, transfer",
        _CA,
        replace(_LONG, learning_rate=5e-4, dropout=0.2),
        _rates(replace(_ADAPT, dropout=0.2), 2e-4, 5e-4, 1e-3),
    ),
    Case(
        "CA point, transfer",
        _CA,
        replace(_LONG, loss="point", learning_rate=5e-4, dropout=0.2),
        _rates(replace(_ADAPT, loss="point", dropout=0.2), 2e-4, 5e-4, 1e-3),
    ),
    Case(
        "Cosinet list, transfer",
        _ALONE,
        replace(_LONG, learning_rate=2e-3),
        _rates(_ADAPT, 5e-4, 1e-3, 2e-3),
    ),
    Case(
        "Cosinet point, transfer",
        _ALONE,
        replace(_LONG, loss="point", learning_rate=2e-3),
        _rates(replace(_ADAPT, loss="point"), 5e-4, 1e-3, 2e-3),
    ),
    Case(
        "Rel-CNN, transfer",
        RelationalCNNConfig(),
        replace(_LONG, loss="point"),
        _rates(replace(_ADAPT, loss="point"), 5e-4, 1e-3),
    ),
    Case(
        "CA list + BiRNN, rate 1e-3, dropout 0.2",
        _CA_BI,
        _LONG,
        _rates(replace(_ADAPT, dropout=0.2), 2e-4, 5e-4),
    ),
    Case(
        "Cosinet list + BiRNN, dropout 0.4, 4 epochs",
        _BI,
        replace(_LONG, epochs=4, dropout=0.4),
        _rates(_ADAPT, 5e-4),
    ),
    Case(
        "Cosinet list + BiRNN, rate 2e-3",
        _BI,
        replace(_LONG, learning_rate=2e-3),
        _rates(_ADAPT, 5e-4),
    ),
    Case(
        "Cosinet list + BiRNN, rate 5e-4, batch 16",
        _BI,
        replace(_LONG, learning_rate=5e-4, batch_size=16),
        _rates(_ADAPT, 5e-4),
    ),
    Case(
        "Cosinet point, dropout 0.4, 3 epochs",
        _ALONE,
        replace(_LONG, loss="point", learning_rate=2e-3, dropout=0.4, epochs=3),
    ),
    Case("Cosinet list + BiRNN, three channels", _RICH, _LONG, _rates(_ADAPT, 5e-4)),
    Case(
        "Cosinet list + BiRNN, three channels, dropout 0.4, 4 epochs",
        _RICH,
        replace(_LONG, epochs=4, dropout=0.4),
        _rates(_ADAPT, 5e-4),
    ),
    Case("CA point, rate 1e-3", _CA, replace(_LONG, loss="point", dropout=0.2)),
    Case("CA list, rate 1e-3", _CA, _LONG),
    Case(
        "Rel-CNN, rate 2e-3",
        RelationalCNNConfig(),
        replace(_LONG, loss="point", learning_rate=2e-3),
    ),
    Case(
        "Cosinet list + BiRNN, plain",
        _BI,
        None,
        (
            LightRecipe(),
            LightRecipe(learning_rate=2e-4, batch_size=1),
            LightRecipe(dropout=0.2),
            LightRecipe(learning_rate=5e-4, batch_size=8),
        ),
    ),
    Case(
        "Cosinet list + BiRNN, plain, three channels",
        _RICH,
        None,
        (LightRecipe(), LightRecipe(dropout=0.2)),
    ),
    Case(
        "Cosinet list + BiRNN, plain, vectors of length 3",
        replace(_BI, vector_scale=3.0),
        None,
        (LightRecipe(),),
    ),
    Case("Cosinet list, plain", _ALONE, None, _rates(LightRecipe(batch_size=4), 1e-3, 2e-3, 4e-3)),
    Case(
        "Cosinet point, plain",
        _ALONE,
        None,
        _rates(LightRecipe(loss="point", batch_size=4), 1e-3, 2e-3, 4e-3),
    ),
    Case("CA list, plain", _CA, None, _rates(LightRecipe(batch_size=4), 5e-4, 1e-3, 2e-3)),
    Case(
        "CA point, plain",
        _CA,
        None,
        _rates(LightRecipe(loss="point", batch_size=4), 5e-4, 1e-3, 2e-3),
    ),
    Case(
        "CA list + BiRNN, plain",
        _CA_BI,
        None,
        _rates(LightRecipe(batch_size=4), 2.5e-4, 5e-4, 1e-3),
    ),
    Case(
        "CA list + BiRNN, plain, vectors of length 1",
        replace(_CA_BI, vector_scale=1.0),
        None,
        _rates(LightRecipe(batch_size=4), 5e-4),
    ),
    Case(
        "Rel-CNN, plain",
        RelationalCNNConfig(),
        None,
        _rates(LightRecipe(loss="point", batch_size=4), 5e-4, 1e-3, 2e-3),
    ),
)


FOLDS = 5


@dataclass(frozen=True)
class Job:
    """All recipes of a case."""

    case: Case
    source: Source
    until: float


@cache
def folds(layout: LightConfig, source: Source) -> tuple[tuple[Any, LightDevSet], ...]:
    """Encoded training and test questions of each fold."""
    every = [one for name in ("wikiqa:train", "wikiqa:dev") for one in questions(name)]
    order = np.random.default_rng(1).permutation(len(every)).tolist()

    def numbers(chosen: list[int]) -> LightDevSet:
        some = QuestionSet("fold", tuple(every[place] for place in sorted(chosen)))
        table = word_vectors(source.vectors)
        return LightDevSet(some, encode_questions(some, table, layout, device=source.device))

    held = [order[fold::FOLDS] for fold in range(FOLDS)]
    return tuple(
        (numbers([one for one in order if one not in set(part)]).encoded, numbers(part))
        for part in held
    )


def run(job: Job) -> list[dict[str, Any]]:
    """Figures of a case after the SQuAD-like sets and of each recipe on WikiQA."""
    if time.time() > job.until:
        return []
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    case, state, done = job.case, None, []
    if case.first is not None:
        numbers = encoded(SQUAD_TRAIN, case.encoding, job.source)
        trained = train_light_ranker(case.layout, numbers, case.first)
        held = questions("squadshifts:dev")
        dev = LightDevSet(held, encoded(held.name, case.encoding, job.source)).measure(
            trained.network
        )
        done.append(_line(case, case.first, "squadshifts:dev", [dev], trained.seconds))
        state = trained.network.state_dict()
    for recipe in case.then:
        results, seconds = [], 0.0
        for fold, (numbers, held_out) in enumerate(folds(case.encoding, job.source)):
            trained = train_light_ranker(
                case.layout, numbers, replace(recipe, seed=fold), start=state
            )
            results.append(held_out.measure(trained.network))
            seconds += trained.seconds
        done.append(_line(case, recipe, "wikiqa, cross-validated", results, seconds))
    return done


def _line(
    case: Case, recipe: LightRecipe, on: str, results: list[dict[str, float]], seconds: float
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
    parser.add_argument("--vectors", required=True, help="a file written by WordVectors.save")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel processes")
    parser.add_argument("--cases", default="", help="only cases whose label contains this text")
    parser.add_argument("--limit", type=float, default=1e9, help="start no job after N seconds")
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
