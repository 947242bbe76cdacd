"""
What a classifier costs beside its candidates: the overhead of a stage, in layers of one candidate.

    ASKLINE_DATA=DIR python -m research.benchmarks.stage_cost [--model DIR]

Short lists of WikiQA dev at full depth, once with one look at the end and once with a look at every
depth, where nothing is dropped: the same layers, so that the difference is what the looks cost. The
two are timed in turn, question by question. `askline tune cascade --stage` takes the figure. Writes
research/results/stage_cost.json.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from askline import data
from askline.engine.encoder import open_encoder
from askline.engine.protocols import StagedEncoder
from askline.models.folder import ModelFolder
from askline.rankers.cascade import shipped_folder
from askline.types import Question

from . import report

COUNTS = (5, 10, 20)
QUESTIONS, ROUNDS = 6, 4


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--model", type=Path, default=shipped_folder())
    encoder = open_encoder(ModelFolder.open(parser.parse_args().model, kind="cascade"))
    padded = data.pad(data.load("wikiqa:dev", root=report.data_root()), max(COUNTS))
    questions = data.select(padded, "answerable").questions[:QUESTIONS]
    figures = {str(count): measured(encoder, questions, count) for count in COUNTS}
    for count, row in figures.items():
        print(f"{count:>3} candidates: {row}")
    print(f"Kept in {report.save('stage_cost', {'candidates': figures}, 'onnxruntime')}")


def measured(encoder: StagedEncoder, questions: tuple[Question, ...], count: int) -> dict[str, Any]:
    """Medians over the questions of the fastest of some rounds."""
    ways = {"one": encoder.depths[-1:], "all": encoder.depths}
    fastest = {name: np.full(len(questions), np.inf) for name in ways}
    for place in np.tile(np.arange(len(questions)), ROUNDS).tolist():
        for name, depths in ways.items():
            taken = _seconds(encoder, questions[place], count, depths)
            fastest[name][place] = min(fastest[name][place], taken)
    one, every = (1000 * float(np.median(fastest[name])) for name in ways)
    stage, layer = (every - one) / (len(encoder.depths) - 1), one / (encoder.layers * count)
    return {
        "ms, one look": round(one, 2),
        "ms, a look at every depth": round(every, 2),
        "ms a look": round(stage, 3),
        "layers of one candidate": round(stage / layer, 2),
    }


def _seconds(
    encoder: StagedEncoder, question: Question, count: int, depths: tuple[int, ...]
) -> float:
    rows = np.arange(count)
    start = time.perf_counter()
    run = encoder.begin(question.text, question.texts[:count])
    for depth in depths:
        run.advance(rows, depth)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
