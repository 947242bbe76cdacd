"""
Encoders of 4 to 12 layers on lists padded to 400: alone, in sequence (SR), and the cascade.

    python -m research.benchmarks.shallow_encoders train --data DIR --init DIR --work DIR
    ASKLINE_DATA=DIR python -m research.benchmarks.shallow_encoders measure --work DIR --scores DIR

Table 3 of the Cascade Transformer on WikiQA test. `train` keeps the lowest 4, 6, 8, 10 or 12 layers
of the initial weights, trains each encoder by itself on the data of the general transformer, all at
once on one GPU (`--seconds`), and writes the scores of all pairs to WORK. `measure` needs no GPU:
it ranks by the scores of each encoder, and by those of all encoders in sequence, of which each
drops a share α of the candidates. DIR of `--scores` has the score table of the shipped cascade
(`research.benchmarks.cascade_cost` makes it). Writes research/results/shallow_encoders.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askline import data
from askline.evaluation import Run, make_qrels, score_run
from askline.rankers.requests import sort_by_score
from askline.training.transformer.cross_encoder_folder import load_tokenizer
from askline.training.transformer.pair_network import PairNetwork, list_scores
from askline.training.transformer.pair_sets import PairSet, encode_pairs
from askline.training.transformer.sampled_lists import SampledLists
from askline.training.transformer.transformer_training import TransformerPhase, train_transformer
from askline.tuning import ScoreTable
from askline.types import QuestionSet
from research.recipes.general import GeneralRecipe, general_lists

from . import common
from .cascade_runs import together
from .transformer_jobs import PADDED_TO

DEPTHS = (4, 6, 8, 10, 12)
ALPHAS = (0.3, 0.4, 0.5)
MEASURES = ("MAP", "nDCG@10", "P@1", "MRR")
SEED = 1
TOKENS_PER_BATCH = 32_768
Scores = NDArray[np.float64]


def padded(root: Path) -> QuestionSet:
    """WikiQA test, the questions with an answer, each with 400 candidates."""
    found = data.pad(data.load_dataset("wikiqa:test", root=root), to=PADDED_TO)
    return data.filter_questions(found, "answerable")


def train(depth: int, options: argparse.Namespace, lists: SampledLists, test: PairSet) -> None:
    """One encoder of `depth` layers, trained for one epoch or some seconds, and its scores."""
    torch.set_num_threads(1)
    recipe = replace(
        GeneralRecipe().transfer,
        seed=SEED,
        epochs=1,
        max_tokens=TOKENS_PER_BATCH,
        max_seconds=options.seconds,
    )
    network = PairNetwork.start(options.init, depth=depth).to(options.device)
    steps: list[int] = []
    history = train_transformer(
        network, [TransformerPhase(lists, recipe)], on_step=lambda step: steps.append(step.step)
    )
    scores = np.concatenate(list(list_scores(network, test)))
    np.save(options.work / f"scores-{depth}.npy", scores.astype(np.float32))
    row = {
        "steps": steps[-1] if steps else 0,
        "loss": [round(epoch.loss, 4) for epoch in history],
        "seconds": round(sum(epoch.seconds for epoch in history), 1),
    }
    (options.work / f"train-{depth}.json").write_text(json.dumps(row), encoding="utf-8")
    print(depth, row, flush=True)


def in_sequence(
    scores: Mapping[int, Scores], sizes: Sequence[int], alpha: float, *, sharing: bool = False
) -> tuple[Scores, float]:
    """
    Scores that rank dropped candidates below kept ones, and the cost relative to the last depth.

    With `sharing`, a depth costs only the layers above the one before it, as in a cascade.
    """
    ends = np.cumsum(sizes)
    made, layers = np.empty(ends[-1]), 0
    for end, size in zip(ends, sizes, strict=True):
        rows, before = np.arange(end - size, end), 0
        for depth, found in scores.items():
            layers += len(rows) * (depth - before)
            before, own = depth if sharing else 0, found[rows]
            made[rows] = depth * 1000.0 + own
            rows = rows[np.argsort(-own, kind="stable")[: len(rows) - int(alpha * len(rows))]]
    return made, layers / (ends[-1] * max(scores))


def measured(questions: QuestionSet, scores: Scores) -> dict[str, float]:
    """The means of all measures, in percent."""
    cuts = np.cumsum([len(question.candidates) for question in questions])[:-1]
    hits = map(sort_by_score, np.split(scores, cuts))
    run = Run.from_hits("scores", zip(questions, hits, strict=True))
    found = score_run(run, make_qrels(questions), measures=MEASURES)
    return {name: round(100 * float(found[name].mean()), 2) for name in MEASURES}


def rows_of(
    questions: QuestionSet, scores: Mapping[int, Scores], *, sharing: bool
) -> dict[str, dict[str, float]]:
    """A row per depth, and one per α."""
    sizes = [len(question.candidates) for question in questions]
    rows = {str(depth): measured(questions, own) for depth, own in scores.items()}
    for alpha in ALPHAS:
        made, cost = in_sequence(scores, sizes, alpha, sharing=sharing)
        rows[f"alpha {alpha}"] = measured(questions, made) | {"cost": round(float(cost), 3)}
    return rows


def _train(options: argparse.Namespace) -> None:
    begun = time.monotonic()
    options.work.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(options.init)
    lists = general_lists(tokenizer, options.work / "negatives.npz", root=options.data)
    test = encode_pairs(padded(options.data), tokenizer)
    print(f"{time.monotonic() - begun:.0f} s, {len(lists)} questions", flush=True)
    together([(train, (depth, options, lists, test)) for depth in DEPTHS])


def _measure(options: argparse.Namespace) -> None:
    questions = padded(common.data_root())
    own = {depth: np.load(options.work / f"scores-{depth}.npy").astype(float) for depth in DEPTHS}
    figures: dict[str, Any] = {
        "set": f"wikiqa:test padded to {PADDED_TO}",
        "questions": len(questions),
        "training": {
            str(depth): json.loads((options.work / f"train-{depth}.json").read_text("utf-8"))
            for depth in DEPTHS
        },
        "encoders": rows_of(questions, own, sharing=False),
    }
    if options.scores:
        table = ScoreTable.load(options.scores / f"scores.wikiqa_test.{PADDED_TO}.npz")
        if table.questions != tuple(question.id for question in questions):
            raise SystemExit("The score table has other questions.")
        shipped = {
            depth: table.scores[at].astype(float)
            for at, depth in enumerate(table.depths)
            if depth in DEPTHS
        }
        figures["shipped cascade"] = rows_of(questions, shipped, sharing=True)
    for name in ("encoders", "shipped cascade"):
        for row, values in figures.get(name, {}).items():
            print(f"{name:16} {row:10} {values}")
    print(f"Saved to {common.save('shallow_encoders', figures, 'onnxruntime')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("part", choices=["train", "measure"])
    parser.add_argument("--data", type=Path, help="folder of the datasets, for `train`")
    parser.add_argument("--init", help="folder of the initial weights, for `train`")
    parser.add_argument("--work", type=Path, required=True, help="folder of the scores")
    parser.add_argument("--seconds", type=float, default=100.0, help="of each training")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scores", type=Path, help="folder of the cascade's score tables")
    options = parser.parse_args()
    (_train if options.part == "train" else _measure)(options)


if __name__ == "__main__":
    main()
