"""
Calibration of the cascade's logits at full depth, and its threshold for "no answer".

    ASKLINE_DATA=DIR python -m research.benchmarks.calibration [--model DIR] [--questions N]

Calibration and threshold are fitted on WikiQA dev and measured on SQuAD v2.0 dev; then fitted on
one half of SQuAD v2.0 dev and measured on the other, both ways. Without --model, the cascade that
ships. Writes research/results/calibration.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

import askline
from askline import data
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.evaluation import (
    Abstention,
    IsotonicRegression,
    PlattScaling,
    auroc,
    choose_threshold,
    expected_calibration_error,
)
from askline.models.folder import ModelFolder
from askline.types import QuestionSet

from .common import data_root, evenly, save

SHIPPED = Path(askline.__file__).parent / "models" / "shipped" / "cascade"
FITTED_ON, MEASURED_ON = "wikiqa:dev", "squad2:dev"
Figures = dict[str, object]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of all candidates of a set, in the order of the questions."""

    scores: NDArray[np.float64]
    labels: NDArray[np.bool_]
    sizes: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    @property
    def best(self) -> NDArray[np.float64]:
        """Of each question."""
        found: NDArray[np.float64] = np.maximum.reduceat(self.scores, self.starts)
        return found

    @property
    def answerable(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.logical_or.reduceat(self.labels, self.starts)
        return found

    def part(self, chosen: NDArray[np.bool_]) -> Scores:
        """Some of the questions."""
        rows = np.repeat(chosen, self.sizes)
        return Scores(self.scores[rows], self.labels[rows], self.sizes[chosen])


def scored(encoder: OnnxEncoder, name: str, most: int | None) -> Scores:
    """The logits of the last classifier; questions without candidates are left out."""
    found = data.load_dataset(name, root=data_root())
    kept = QuestionSet(name, tuple(question for question in found if question.candidates))
    questions = evenly(kept, most).questions
    logits = []
    for question in questions:
        run = encoder.begin(question.text, question.texts)
        logits.append(run.advance(np.arange(len(question.texts)), encoder.depths[-1]))
    labels = [each.is_answer for question in questions for each in question.candidates]
    sizes = [len(question.candidates) for question in questions]
    return Scores(np.concatenate(logits).astype(float), np.array(labels), np.array(sizes))


def abstaining(fit: Scores, test: Scores) -> dict[str, float]:
    """Precision, recall and F1 of "no answer", in percent."""
    threshold = choose_threshold(fit.best, fit.answerable).threshold
    found = Abstention.at(threshold, test.best, test.answerable)
    correct = float(((test.best >= threshold) == test.answerable).mean())
    return {
        "threshold": round(threshold, 3),
        "precision": round(100 * found.precision, 2),
        "recall": round(100 * found.recall, 2),
        "F1": round(100 * found.f1, 2),
        "accuracy": round(100 * correct, 2),
    }


def errors(fit: Scores, test: Scores) -> dict[str, float]:
    """Expected calibration error over all pairs, in percent."""
    calibrators: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
        "as they are": PlattScaling(),
        "temperature": PlattScaling.fit(fit.scores, fit.labels),
        "isotonic": IsotonicRegression.fit(fit.scores, fit.labels),
    }
    return {
        name: round(100 * expected_calibration_error(curve(test.scores), test.labels), 2)
        for name, curve in calibrators.items()
    }


def reliability(fit: Scores, test: Scores) -> dict[str, list[dict[str, float]]]:
    """For each tenth of the probabilities: mean, share of answers, number of pairs."""
    curves: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
        "as they are": PlattScaling(),
        "temperature": PlattScaling.fit(fit.scores, fit.labels),
        "isotonic": IsotonicRegression.fit(fit.scores, fit.labels),
    }
    found: dict[str, list[dict[str, float]]] = {}
    for name, curve in curves.items():
        said = curve(test.scores)
        tenths = np.minimum((10 * said).astype(int), 9)
        found[name] = [
            {
                "said": round(float(said[own].mean()), 4),
                "true": round(float(test.labels[own].mean()), 4),
                "pairs": int(own.sum()),
            }
            for own in (tenths == tenth for tenth in range(10))
            if own.any()
        ]
    return found


def halves(scores: Scores) -> Iterator[tuple[Scores, Scores]]:
    first = np.random.default_rng(0).permutation(len(scores.sizes)) < len(scores.sizes) // 2
    yield scores.part(first), scores.part(~first)
    yield scores.part(~first), scores.part(first)


def mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(fmean(row[name] for row in rows), 2) for name in rows[0]}


def figures(found: dict[str, Scores]) -> Figures:
    dev, test = found[FITTED_ON], found[MEASURED_ON]
    answerable = test.part(test.answerable)
    return {
        "questions": {name: len(own.sizes) for name, own in found.items()},
        "answerable": {name: int(own.answerable.sum()) for name, own in found.items()},
        "AUROC": {n: round(100 * auroc(own.best, own.answerable), 2) for n, own in found.items()},
        f"abstaining on {MEASURED_ON}": {
            f"threshold from {FITTED_ON}": abstaining(dev, test),
            "threshold from the other half": mean([abstaining(*pair) for pair in halves(test)]),
        },
        f"calibration error on {MEASURED_ON}, %": {
            f"all questions, fitted on {FITTED_ON}": errors(dev, test),
            "all questions, fitted on the other half": mean([errors(*p) for p in halves(test)]),
            "answerable questions, fitted on the other half": mean(
                [errors(*pair) for pair in halves(answerable)]
            ),
        },
        "reliability": reliability(dev, test),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--model", type=Path, default=SHIPPED, help="an exported cascade")
    parser.add_argument("--questions", type=int, help="maximum number of questions per set")
    options = parser.parse_args()
    encoder = load_encoder(ModelFolder.open(options.model, kind="cascade"))
    names = (FITTED_ON, MEASURED_ON)
    result = figures({name: scored(encoder, name, options.questions) for name in names})
    for name, row in result.items():
        print(f"{name}: {row}")
    print(f"Saved to {save('calibration', result, 'onnxruntime')}")


if __name__ == "__main__":
    main()
