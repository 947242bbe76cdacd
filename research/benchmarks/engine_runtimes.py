"""
The engine beside OpenVINO on the same work, in one run.

    pip install openvino nncf
    python -m research.benchmarks.engine_runtimes ONNX_FLOAT_DIR ONNX_INT8_DIR INT8_DIR

The folders are exports of one model: `--format onnx --precision float32`, `--format onnx`, and the
default. All systems rank the same SQuAD sentences at full depth on all cores, one after the other
in each round; the best round counts. OpenVINO gets two streams and batches sorted by length,
padded or of equal length, whichever is faster. Its int8 is made by NNCF from 95 pairs of
SQuADShifts; our int8 file on OpenVINO is measured too. Writes
research/results/engine_runtimes.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askline import data
from askline.engine.encoder import load_encoder
from askline.engine.sequences import TokenSequences
from askline.engine.tokenizer import WordPiece
from askline.models.folder import ModelFolder

from .common import data_root, save
from .engine import FloatArray, a_list, padded_inputs, ranked, rounds

PACKAGES = ("onnxruntime", "openvino", "nncf")
BATCH = 8
Inputs = dict[str, NDArray[np.int64]]


def main() -> None:
    """Measure, print, save."""
    given = _arguments()
    question, candidates = a_list(given.candidates)
    fast = load_encoder(ModelFolder.open(given.int8, kind="cascade"))
    models = {
        "OpenVINO, float32": _compiled(_read(given.onnx_float), INFERENCE_PRECISION_HINT="f32"),
        "OpenVINO, bfloat16": _compiled(_read(given.onnx_float), INFERENCE_PRECISION_HINT="bf16"),
        "OpenVINO, int8 by NNCF": _compiled(_quantised(given.onnx_float, fast.tokenizer)),
        "OpenVINO, our int8 file": _compiled(_read(given.onnx_int8)),
    }
    ways: dict[str, Callable[[], FloatArray]] = {
        "engine, int8": lambda: ranked(fast, question, candidates)
    }
    for name, model in models.items():
        for padded in (True, False):
            kind = "padded" if padded else "one length"
            ways[f"{name}, {kind}"] = _way(model, fast.tokenizer, question, candidates, padded)
    costs, scores = rounds(ways, given.rounds)
    true = scores["OpenVINO, float32, one length"]
    rows = {
        name: {
            "ms": round(1e3 * own.wall, 1),
            "processor ms": round(1e3 * own.processor, 1),
            "candidates a second": round(len(candidates) / own.wall, 1),
            "engine is times as fast": round(own.wall / costs["engine, int8"].wall, 2),
            "correlation": round(float(np.corrcoef(scores[name], true)[0, 1]), 5),
        }
        for name, own in costs.items()
    }
    for name, row in rows.items():
        print(f"{name:36}", "  ".join(f"{key} {value}" for key, value in row.items()))
    print(save("engine_runtimes", {"candidates": len(candidates), "ways": rows}, *PACKAGES))


def _read(folder: Path) -> Any:
    import openvino

    return openvino.Core().read_model(folder / "model.onnx")


def _quantised(folder: Path, tokeniser: WordPiece) -> Any:
    import nncf

    fitting = data.load_dataset("squadshifts:dev", root=data_root()).questions[:20]
    pairs = [
        batch
        for one in fitting
        for batch, _ in _batches(tokeniser, one.text, one.texts[:5], 1, padded=False)
    ]
    kind = nncf.ModelType.TRANSFORMER
    return nncf.quantize(_read(folder), nncf.Dataset(pairs), model_type=kind, subset_size=95)


def _compiled(model: Any, **more: str) -> Any:
    """Compile for two streams. OpenVINO may compute float parts in bfloat16."""
    import openvino

    options = {"PERFORMANCE_HINT": "THROUGHPUT", "NUM_STREAMS": "2", **more}
    return openvino.Core().compile_model(model, "CPU", options)


def _way(
    model: Any, tokeniser: WordPiece, question: str, candidates: list[str], padded: bool
) -> Callable[[], FloatArray]:
    import openvino

    queue = openvino.AsyncInferQueue(model, 4)
    scores = np.zeros(len(candidates), np.float32)

    def take(request: Any, rows: NDArray[np.int64]) -> None:
        scores[rows] = request.get_output_tensor(0).data[:, 0]

    def run() -> FloatArray:
        queue.set_callback(take)
        for inputs, rows in _batches(tokeniser, question, candidates, BATCH, padded=padded):
            queue.start_async(inputs, rows)
        queue.wait_all()
        found: FloatArray = scores.copy()
        return found

    return run


def _batches(
    tokeniser: WordPiece, question: str, candidates: list[str], most: int, *, padded: bool
) -> Iterator[tuple[Inputs, NDArray[np.int64]]]:
    """Batches of pairs sorted by length, longest first, with the candidates' indexes."""
    windows = TokenSequences.for_question(tokeniser, question, candidates, positions=512)
    order = np.argsort(-windows.lengths, kind="stable")
    lengths = windows.lengths[order]
    start = 0
    while start < len(order):
        end = min(start + most, len(order))
        if not padded:
            end = start + int((lengths[start:end] == lengths[start]).sum())
        rows = order[start:end]
        yield padded_inputs(windows, rows.tolist()), rows
        start = end


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("onnx_float", type=Path)
    parser.add_argument("onnx_int8", type=Path)
    parser.add_argument("int8", type=Path)
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
