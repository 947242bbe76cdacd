"""
How reliable the default ranker's probability for its first sentence is.

    ASKLINE_DATA=DIR python -m research.benchmarks.confidence [--ranker SPEC]

For questions with and without an answer: how often the first sentence is an answer, by its
probability; how well the probability separates the two kinds of question; and the effect of the
ranker's own threshold. WikiQA test (633 questions), TrecQA test (100) and 2,000 questions of SQuAD
v2.0 dev; nothing was fitted on them. Writes research/results/confidence.json.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import askline
from askline import data
from askline.evaluation import Abstention, auroc, expected_calibration_error
from askline.rankers.base import Ranker
from askline.rankers.registry import DEFAULT_SPEC
from askline.types import QuestionSet

from . import common
from .common import evenly

SETS = ("wikiqa:test", "trecqa:test", "squad2:dev")
MOST = 2_000
EDGES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Said:
    """Of each question."""

    chance: NDArray[np.float64]
    right: NDArray[np.bool_]
    answerable: NDArray[np.bool_]


def said(ranker: Ranker, questions: QuestionSet) -> Said:
    """The first sentence of each ranking."""
    rows = []
    for question in questions:
        first = ranker.rank(question.text, question.texts)[0]
        is_right = question.candidates[first.index].is_answer
        rows.append((first.score, is_right, question.answerable))
    chance, right, answerable = map(np.array, zip(*rows, strict=True))
    return Said(chance, right, answerable)


def figures(found: Said, threshold: float) -> Row:
    """A share in percent."""
    silent = found.chance < threshold
    abstaining = Abstention.at(threshold, found.chance, found.answerable)
    treated = np.where(silent, ~found.answerable, found.right)
    return {
        "questions": len(found.chance),
        "with an answer": int(found.answerable.sum()),
        "first is right, of those": _percent(found.right[found.answerable].mean()),
        "calibration error of the first": _percent(
            expected_calibration_error(found.chance, found.right)
        ),
        "AUROC": _percent(auroc(found.chance, found.answerable)),
        "giving no answer: precision": _percent(abstaining.precision),
        "giving no answer: recall": _percent(abstaining.recall),
        "giving no answer: F1": _percent(abstaining.f1),
        "treated right": _percent(treated.mean()),
        "right, of what is given": _percent(found.right[~silent].mean()),
        "by chance": _bins(found),
    }


def _bins(found: Said) -> list[Row]:
    rows = []
    for low, high in pairwise(EDGES):
        inside = (found.chance > low) & (found.chance <= high)
        if inside.any():
            mean, right = found.chance[inside].mean(), found.right[inside].mean()
            rows.append({"to": high, "questions": int(inside.sum()), "said": _percent(mean)})
            rows[-1]["right"] = _percent(right)
    return rows


def _percent(share: float) -> float:
    return round(100 * float(share), 2)


def _questions(name: str) -> QuestionSet:
    found = data.load_dataset(name, root=common.data_root())
    kept = tuple(question for question in found if question.candidates)
    return evenly(QuestionSet(name, kept), MOST)


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--ranker", default=DEFAULT_SPEC)
    ranker = askline.load(parser.parse_args().ranker)
    threshold = ranker.threshold
    if threshold is None:
        raise SystemExit(f"{ranker} has no calibrated probabilities.")
    rows = {}
    for name in SETS:
        rows[name] = figures(said(ranker, _questions(name)), threshold)
        print(name, rows[name], flush=True)
    common.save("confidence", {"ranker": str(ranker), "threshold": threshold, "sets": rows})


if __name__ == "__main__":
    main()
