"""
Quality of int8: an exported cascade beside the same one in float32, at every depth.

    python -m research.benchmarks.engine_quality INT8_DIR FLOAT_DIR [--on SET …] [--questions N]

Lists are those of the sets, without padding. Writes research/results/engine_quality.json, or
another name with `--name`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askline import data
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.evaluation.measures import score_run
from askline.evaluation.runs import Run
from askline.models.folder import ModelFolder
from askline.rankers.requests import sort_by_score
from askline.types import Question

from .common import data_root, evenly, save

DEV = ("wikiqa:dev", "trecqa-clean:dev", "selqa:dev")
MEASURES = ("MAP", "P@1")


def main() -> None:
    """Measure, print a table per set, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("int8")
    parser.add_argument("float32")
    parser.add_argument("--on", nargs="+", default=list(DEV))
    parser.add_argument(
        "--questions", type=int, default=300, help="maximum number of questions per set"
    )
    parser.add_argument("--name", default="engine_quality")
    given = parser.parse_args()
    encoders = {
        name: load_encoder(ModelFolder.open(getattr(given, name), kind="cascade"))
        for name in ("float32", "int8")
    }
    found: dict[str, Any] = {}
    for name in given.on:
        found[name] = _set(name, given.questions, encoders)
        save(given.name, {"sets": found}, "onnxruntime")


def _set(name: str, most: int, encoders: dict[str, OnnxEncoder]) -> dict[str, Any]:
    kept = data.filter_questions(data.load_dataset(name, root=data_root()), "answerable")
    questions = evenly(kept, most).questions
    logits, cpu = {}, {}
    for precision, encoder in encoders.items():
        before = time.process_time()
        logits[precision] = [_logits(encoder, question) for question in questions]
        cpu[precision] = round(time.process_time() - before, 1)
    depths = encoders["int8"].depths
    rows = {str(depth): _row(at, questions, logits) for at, depth in enumerate(depths)}
    print(f"\n{name}: {len(questions)} questions; CPU seconds {cpu}")
    print(f"{'depth':>5} {'MAP float':>10} {'int8':>7} {'P@1 float':>10} {'int8':>7} {'corr':>8}")
    for depth, row in rows.items():
        print(
            f"{depth:>5} {row['float32']['MAP']:>10.2f} {row['int8']['MAP']:>7.2f} "
            f"{row['float32']['P@1']:>10.2f} {row['int8']['P@1']:>7.2f} {row['correlation']:>8.5f}"
        )
    return {"questions": len(questions), "cpu seconds": cpu, "depths": rows}


def _logits(encoder: OnnxEncoder, question: Question) -> NDArray[np.float32]:
    """(depths, candidates)"""
    run, rows = encoder.begin(question.text, question.texts), np.arange(len(question.candidates))
    return np.stack([run.advance(rows, depth) for depth in encoder.depths])


def _row(
    at: int, questions: tuple[Question, ...], logits: dict[str, list[NDArray[np.float32]]]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        precision: _measured(questions, [one[at] for one in found])
        for precision, found in logits.items()
    }
    flat = [np.concatenate([one[at] for one in found]) for found in logits.values()]
    row["correlation"] = round(float(np.corrcoef(flat[0], flat[1])[0, 1]), 5)
    row["mean difference"] = round(float(np.abs(flat[0] - flat[1]).mean()), 4)
    return row


def _measured(
    questions: tuple[Question, ...], scores: list[NDArray[np.float32]]
) -> dict[str, float]:
    hits = [sort_by_score(own) for own in scores]
    run = Run.from_hits("cascade", zip(questions, hits, strict=True))
    answers = {
        question.id: {one.id: 1 for one in question.candidates if one.is_answer}
        for question in questions
    }
    values = score_run(run, answers, measures=MEASURES)
    return {name: round(100 * float(value.mean()), 2) for name, value in values.items()}


if __name__ == "__main__":
    main()
