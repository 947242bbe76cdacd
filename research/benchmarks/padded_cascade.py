"""
What padding to 400 candidates costs the cascade that ships, run as `askline.load("cascade")` runs.

    ASKLINE_DATA=DIR python -m research.benchmarks.padded_cascade [--seeds 3]

The sets and the seeds are those of `research.benchmarks.padded_losses`, some of the seeds. Every list is
ranked by the stored schedule, which drops most of a long one at its first classifiers. TrecQA is
padded with sentences of the question's own series as well. Nothing is chosen by this. Writes
research/results/padded_cascade.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import askline
from askline.types import QuestionSet, Ranker

from .padded_losses import PADDED_TO, SETS, WITH_OWN, Precision, is_added, losses, padded
from .report import data_root, save


def measured(ranker: Ranker, padding: QuestionSet) -> Precision:
    """P@1 of the own candidates and of all."""
    right = []
    for question in padding:
        own = question.candidates
        before = [each for each, more in zip(own, is_added(question), strict=True) if not more]
        texts = [each.text for each in before]
        alone = before[ranker.rank(question.text, texts)[0].index]
        first = own[ranker.rank(question.text, question.texts)[0].index]
        right.append([alone.is_answer, first.is_answer])
    return Precision(*(100 * np.mean(right, axis=0)).tolist())


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--ranker", default="cascade", help="a name or a pipeline  [cascade]")
    parser.add_argument("--seeds", type=int, default=3, help="How many paddings.")
    given = parser.parse_args()
    ranker, root = askline.load(given.ranker), data_root()
    figures: dict[str, Any] = {}
    for name in SETS:
        paddings = [padded(name, root, seed) for seed in range(given.seeds)]
        figures[name] = losses([measured(ranker, padding) for padding in paddings])
        if any(question.topic for question in paddings[0]):
            paddings = [padded(name, root, seed, same_topic=True) for seed in range(given.seeds)]
            figures[name][WITH_OWN] = losses([measured(ranker, each) for each in paddings])
        print(name, figures[name], flush=True)
        save("padded_cascade", {"padded to": PADDED_TO, "sets": figures}, "onnxruntime")


if __name__ == "__main__":
    main()
