"""
Calibration of the general transformer's scores, and its threshold for "no answer".

    python -m research.benchmarks.calibration --scores DIR
    python -m research.benchmarks.calibration --model DIR --data DIR --device cuda

The first form takes the scores that `research.benchmarks.transformers` wrote to its work folder.
Calibration and threshold are fitted on WikiQA dev and measured on SQuAD v2.0 dev; then fitted on
one half of SQuAD v2.0 dev and measured on the other, both ways. Writes
research/results/calibration.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from askline.evaluation import (
    Abstention,
    IsotonicRegression,
    PlattScaling,
    auroc,
    choose_threshold,
    expected_calibration_error,
)

from .common import save

FITTED_ON, MEASURED_ON = "wikiqa:dev", "squad2:dev"
Figures = dict[str, object]


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of all candidates of a set, in the order of the questions."""

    scores: NDArray[np.float64]
    labels: NDArray[np.bool_]
    sizes: NDArray[np.int64]

    @classmethod
    def load(cls, path: Path) -> Scores:
        with np.load(path) as file:
            return cls(file["scores"].astype(float), file["labels"], file["sizes"])

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


def scored(model: Path, root: Path, device: str) -> dict[str, Scores]:
    from askline import data
    from askline.training.transformer.cross_encoder_folder import load_network
    from askline.training.transformer.pair_network import list_scores
    from askline.training.transformer.pair_sets import encode_pairs

    network, tokeniser = load_network(model)
    found = {}
    for name in (FITTED_ON, MEASURED_ON):
        pairs = encode_pairs(data.load_dataset(name, root=root), tokeniser)
        scores = np.concatenate(list(list_scores(network.to(device), pairs)))
        found[name] = Scores(scores, pairs.labels > 0, np.diff(pairs.offsets))
    return found


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
    parser.add_argument("--scores", type=Path, help="folder of the saved scores")
    parser.add_argument("--model", type=Path, help="or a model folder to compute scores with")
    parser.add_argument("--data", type=Path, help="and the folder of the datasets")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    if options.scores:
        names = (FITTED_ON, MEASURED_ON)
        paths = {name: options.scores / f"scores-{name.replace(':', '-')}.npz" for name in names}
        found = {name: Scores.load(path) for name, path in paths.items()}
    else:
        found = scored(options.model, options.data, options.device)
    result = figures(found)
    for name, row in result.items():
        print(f"{name}: {row}")
    print(f"Saved to {save('calibration', result)}")


if __name__ == "__main__":
    main()
