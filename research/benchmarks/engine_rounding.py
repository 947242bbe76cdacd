"""
What each step of the int8 export gains: logits beside float32, one more step each time.

    ASKLINE_DATA=DIR python -m research.benchmarks.engine_rounding FLOAT_DIR [--fit SET] [--on SET]

FLOAT_DIR is a cascade in float32 (`askline export --precision float32`). The steps are fitted to
pairs of one set and compared on questions of another, at full depth. Writes
research/results/engine_rounding.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from askline import data
from askline.engine import quantization
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.models.folder import ModelFolder
from askline.training import post_training_quantization
from askline.training.post_training_quantization import sample_pairs
from askline.types import Question

from .common import data_root, evenly, save

FloatArray = NDArray[np.float32]
PAIRS, FEWER = 100, 20
_PLAIN: dict[str, Any] = {"_SMOOTH_STRENGTHS": (0.0,), "_INPUT_CLIPS": (1.0,)}
_CLIPPED: dict[str, Any] = {"_SMOOTH_STRENGTHS": (0.0,)}


def _nearest(weight: FloatArray, _: FloatArray) -> tuple[NDArray[np.int8], FloatArray]:
    return quantization.quantize_rows(weight, quantization._MAX_WEIGHT)


# Parts of the export that are disabled in each step, and the number of calibration pairs.
STEPS: dict[str, tuple[Mapping[str, Any], bool, int]] = {
    "whole range of each input, weights to the nearest": (_PLAIN, False, PAIRS),
    "+ ranges clipped where that helps": (_CLIPPED, False, PAIRS),
    "+ large channels evened out": ({}, False, PAIRS),
    f"+ weights rounded with error correction, on {FEWER} pairs": ({}, True, FEWER),
    f"+ the same on {PAIRS} pairs: as it is": ({}, True, PAIRS),
}


def main() -> None:
    """Measure, print a line per step, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("float32")
    parser.add_argument("--fit", default="squadshifts:dev")
    parser.add_argument("--on", default="wikiqa:dev")
    parser.add_argument("--questions", type=int, default=40)
    given = parser.parse_args()
    exact = load_encoder(ModelFolder.open(given.float32, kind="cascade"))
    kept = data.filter_questions(data.load_dataset(given.on, root=data_root()), "answerable")
    questions = evenly(kept, given.questions).questions
    source = data.load_dataset(given.fit, root=data_root())
    pairs = sample_pairs(source, PAIRS)
    wanted = _logits(exact, questions)
    figures: dict[str, Any] = {
        "fitted to": given.fit,
        "compared on": given.on,
        "questions": len(questions),
        "candidates": len(wanted),
        "spread of the logits": round(float(wanted.std()), 2),
        "steps": {},
    }
    for name, (left_out, corrected, count) in STEPS.items():
        found = _logits(_made(exact, pairs[:count], left_out, corrected=corrected), questions)
        row = {
            "correlation": round(float(np.corrcoef(found, wanted)[0, 1]), 5),
            "difference": round(float(np.sqrt(np.square(found - wanted).mean())), 3),
        }
        figures["steps"][name] = row
        print(name, json.dumps(row), flush=True)
    save("engine_rounding", figures, "onnxruntime")


def _made(
    exact: OnnxEncoder,
    pairs: Sequence[tuple[str, str]],
    left_out: Mapping[str, Any],
    *,
    corrected: bool,
) -> OnnxEncoder:
    floats = {name: value.astype(np.float32) for name, value in exact.tensors.items()}
    with ExitStack() as stack:
        for name, value in left_out.items():
            stack.enter_context(patch.object(quantization, name, value))
        if not corrected:
            stack.enter_context(
                patch.object(post_training_quantization, "quantize_rows_gptq", _nearest)
            )
        layout, tensors = post_training_quantization.quantize_cascade(
            exact.config, floats, exact.tokenizer, pairs
        )
    return OnnxEncoder(layout, tensors, exact.tokenizer, exact.workers)


def _logits(encoder: OnnxEncoder, questions: Sequence[Question]) -> FloatArray:
    found = []
    for question in questions:
        run = encoder.begin(question.text, question.texts)
        found.append(run.advance(np.arange(len(question.texts)), encoder.layers))
    return np.concatenate(found)


if __name__ == "__main__":
    main()
