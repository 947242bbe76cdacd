"""
What fine-tuning the shipped `cosinet` on a small set gains there, and what it loses elsewhere.

    python -m research.benchmarks.fine_tuning

Fine-tunes on the 873 answerable questions of WikiQA train with the settings of
`askline train cosinet --init cosinet`, three seeds, and measures WikiQA dev, the same padded to 200
candidates per question, and SelQA dev, a set that was not trained on. One minute on a CPU.
"""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.resources import files

from askline import data
from askline.evaluation import evaluate
from askline.models.folder import ModelFolder
from askline.models.light_config import FirstStageConfig
from askline.rankers.cosinet import Cosinet, FirstStageNetwork
from askline.training.light.first_stage import (
    FINE_TUNING,
    Vocabulary,
    first_stage_examples,
    train_first_stage,
)
from askline.training.light.light_training import tensors_of
from askline.types import QuestionSet

from .common import data_root, save

SEEDS = (0, 1, 2)
MEASURES = ("MAP", "P@1")


def _answerable(name: str) -> QuestionSet:
    return data.filter_questions(data.load_dataset(name, root=data_root()), "answerable")


def main() -> None:
    """Measure the shipped model and the three fine-tuned ones."""
    train, dev, other = map(_answerable, ("wikiqa:train", "wikiqa:dev", "selqa:dev"))
    sets = {"wikiqa:dev": dev, "wikiqa:dev, 200 candidates": data.pad(dev, 200), "selqa:dev": other}
    folder = ModelFolder.open(
        str(files("askline.models") / "shipped" / "cosinet"), kind=FirstStageConfig.kind
    )
    config, vectors, start = (
        FirstStageConfig.from_config(folder.config),
        folder.vectors(),
        folder.tensors(),
    )

    def measure(network: FirstStageNetwork) -> dict[str, dict[str, float]]:
        ranker = Cosinet(None, network, vectors)
        return {
            name: {
                measure: round(value, 2)
                for measure, value in evaluate(ranker, each, measures=MEASURES).percent.items()
            }
            for name, each in sets.items()
        }

    shipped = measure(FirstStageNetwork(config, start))
    print("shipped", shipped, flush=True)
    runs: list[dict[str, dict[str, float]]] = []
    seconds: list[float] = []
    for seed in SEEDS:
        begin = time.process_time()
        vocabulary = Vocabulary()
        lists = list(first_stage_examples([train], vectors, vocabulary, seed=seed))
        recipe = replace(FINE_TUNING, seed=seed)
        trained = train_first_stage(
            lists, vocabulary, vectors, config, recipe, name=train.name, start=start
        )
        seconds.append(round(time.process_time() - begin, 1))
        runs.append(measure(FirstStageNetwork(config, tensors_of(trained.network))))
        print(f"seed {seed}, {seconds[-1]} s", runs[-1], flush=True)
    mean = {
        name: {
            measure: round(sum(run[name][measure] for run in runs) / len(runs), 2)
            for measure in MEASURES
        }
        for name in sets
    }
    figures = {"shipped": shipped, "fine_tuned": mean, "runs": runs, "processor_seconds": seconds}
    print(save("fine_tuning", {"questions": len(train), **figures}, "torch"))


if __name__ == "__main__":
    main()
