"""
The engine beside sentence-transformers' CrossEncoder with the same weights, in one run.

    pip install sentence-transformers
    python -m research.benchmarks.engine CROSS_ENCODER_DIR FLOAT_DIR INT8_DIR [--candidates 400]

FLOAT_DIR and INT8_DIR are exports of CROSS_ENCODER_DIR. All systems rank the same SQuAD sentences,
one after the other in each round, so that other load affects all of them; the best round counts, by
wall clock and by processor time. One padded int8 pass is what small rerankers for CPUs do. `--also`
times whole rankers, `--without` leaves systems out. Writes research/results/engine.json, or
research/results/engine_N.json for N candidates.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import askline
from askline import data
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.engine.graphs import BATCH_AXES
from askline.engine.onnx_writer import OnnxGraph
from askline.engine.quantization import quantize_rows
from askline.engine.sequences import TokenSequences
from askline.engine.sessions import create_session
from askline.models.folder import ModelFolder
from askline.training.cascade.cascade_export import StandardOnnxGraph

from .common import Cost, cost, data_root, save


def padded_pass(
    encoder: OnnxEncoder, question: str, candidates: list[str]
) -> Callable[[], NDArray[np.float32]]:
    """One padded pass of a float encoder, with ONNX Runtime's own threads."""
    import onnxruntime

    session = onnxruntime.InferenceSession(_graph(encoder), providers=["CPUExecutionProvider"])

    def run() -> NDArray[np.float32]:
        windows = TokenSequences.for_question(
            encoder.tokenizer, question, candidates, positions=512
        )
        inputs = padded_inputs(windows, range(len(candidates)))
        found: NDArray[np.float32] = session.run(None, inputs)[0][:, 0]
        return found

    return run


def padded_inputs(windows: TokenSequences, rows: Sequence[int]) -> dict[str, NDArray[np.int64]]:
    """Some of the pairs as one batch, padded to the longest."""
    numbers = np.zeros((len(rows), int(windows.lengths[list(rows)].max())), np.int64)
    mask, kinds = np.zeros_like(numbers), np.zeros_like(numbers)
    for place, row in enumerate(rows):
        head, part = windows.prefixes[row], windows.suffixes[row]
        own = [*head, *part]
        numbers[place, : len(own)], mask[place, : len(own)] = own, 1
        kinds[place, len(head) : len(own)] = 1
    return {"input_ids": numbers, "attention_mask": mask, "token_type_ids": kinds}


def _graph(encoder: OnnxEncoder) -> bytes:
    builder = _Dynamic(encoder.config.encoder, encoder.tensors)
    numbers, mask, kinds = (
        builder.graph.input(name, "int64", BATCH_AXES)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    builder.hide(mask)
    states = builder.embedding(numbers, kinds)
    for layer in range(encoder.layers):
        states = builder.layer(layer, states)
    builder.graph.output(
        builder.classified(encoder.config, encoder.layers, states),
        "logits",
        "float32",
        ("pairs", 1),
    )
    return builder.graph.to_bytes()


@dataclass(slots=True, eq=False)
class _Dynamic(StandardOnnxGraph):
    """Every product in int8 with dynamic quantization."""

    def dense(self, name: str, inputs: str) -> str:
        if not name.startswith("layers."):
            return StandardOnnxGraph.dense(self, name, inputs)
        node, const = self.graph.node, self.graph.constant
        whole, scale = quantize_rows(self.tensors[f"{name}.weight"], 64)
        arguments: list[Any] = [
            inputs,
            const(whole.T),
            const(scale),
            "",
            self.float_constant(f"{name}.bias"),
        ]
        return node("DynamicQuantizeMatMul", *arguments, domain="com.microsoft")


FloatArray = NDArray[np.float32]
PACKAGES = ("onnxruntime", "torch", "transformers", "sentence-transformers")


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cross_encoder")
    parser.add_argument("float32")
    parser.add_argument("int8")
    parser.add_argument("--candidates", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without", nargs="*", default=[], metavar="WAY")
    parser.add_argument(
        "--also", nargs="*", default=[], metavar="SPEC", help="rankers to time as well"
    )
    given = parser.parse_args()
    question, candidates = a_list(given.candidates)
    exact, fast = (
        load_encoder(ModelFolder.open(path, kind="cascade")) for path in (given.float32, given.int8)
    )
    windows = TokenSequences.for_question(fast.tokenizer, question, candidates, positions=512)
    products = int(windows.lengths.sum()) * products_a_token(fast)
    peaks = {kind: peak(kind, fast.workers.threads) for kind in ("float32", "int8")}
    ways: dict[str, Callable[[], FloatArray]] = {
        "CrossEncoder": cross_encoder(given.cross_encoder, question, candidates),
        "one padded int8 pass": padded_pass(exact, question, candidates),
        "engine, float32": lambda: ranked(exact, question, candidates),
        "engine, int8": lambda: ranked(fast, question, candidates),
    }
    ways = {name: way for name, way in ways.items() if name not in given.without}
    ways |= {spec: spec_way(spec, question, candidates) for spec in given.also}
    costs, scores = rounds(ways, given.rounds)
    figures: dict[str, Any] = {
        "candidates": given.candidates,
        "tokens a pair": round(float(windows.lengths.mean()), 1),
        "threads": fast.workers.threads,
        "peak, billion products a second": {kind: round(value, 1) for kind, value in peaks.items()},
        "ways": {name: _row(name, costs, scores) for name in ways},
    }
    for name in ways.keys() - set(given.also):
        figures["ways"][name] |= _beside(costs[name], scores, name, products, peaks)
    _print(figures)
    usual = given.candidates == parser.get_default("candidates")
    save("engine" if usual else f"engine_{given.candidates}", figures, *PACKAGES)


def a_list(count: int) -> tuple[str, list[str]]:
    """A SQuAD question with `count` sentences, its own and others'."""
    padded = data.pad(data.load_dataset("squad1:dev", root=data_root()), to=count)
    question = padded.questions[5]
    return question.text, question.texts[:count]


def products_a_token(encoder: OnnxEncoder) -> int:
    """Multiplications per token of all dense layers; attention adds 2 %."""
    own = encoder.config.encoder
    return own.layers * (4 * own.width**2 + 2 * own.width * own.inner)


def ranked(encoder: OnnxEncoder, question: str, candidates: list[str]) -> FloatArray:
    """All candidates at full depth."""
    run = encoder.begin(question, candidates)
    return run.advance(np.arange(len(candidates)), encoder.layers)


def spec_way(spec: str, question: str, candidates: list[str]) -> Callable[[], FloatArray]:
    """A whole ranker as scores: the negative rank of each candidate."""
    ranker = askline.load(spec)

    def rank() -> FloatArray:
        scores = np.zeros(len(candidates), np.float32)
        for place, hit in enumerate(ranker.rank(question, candidates)):
            scores[hit.index] = -place
        return scores

    return rank


def cross_encoder(path: str, question: str, candidates: list[str]) -> Callable[[], FloatArray]:
    """`predict` with its defaults, float32 weights, and logits as scores."""
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(path, device="cpu", model_kwargs={"torch_dtype": torch.float32})
    pairs = [(question, candidate) for candidate in candidates]
    logits = {"activation_fn": torch.nn.Identity(), "show_progress_bar": False}
    return lambda: np.asarray(model.predict(pairs, **logits), np.float32)


def rounds(
    ways: dict[str, Callable[[], FloatArray]], count: int
) -> tuple[dict[str, Cost], dict[str, FloatArray]]:
    """The best round of each system, by both clocks, after a warm-up round."""
    scores = {name: way() for name, way in ways.items()}
    found: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(count):
        for name, way in ways.items():
            found[name].append(cost(way))
    best = {
        name: Cost(min(one.wall for one in own), min(one.processor for one in own))
        for name, own in found.items()
    }
    return best, scores


def peak(kind: str, threads: int) -> float:
    """Billions of products per second on all cores: the best of several sizes of one product."""
    best = 0.0
    for rows in (256, 512, 1024):
        run, products = _product(kind, rows, 1536, 1536)
        run()
        best = max(best, *(products / cost(run).processor for _ in range(8)))
    return best * threads / 1e9


def _product(kind: str, rows: int, inner: int, columns: int) -> tuple[Callable[[], Any], int]:
    graph, random = OnnxGraph(), np.random.default_rng(0)
    whole = random.integers(-64, 65, (inner, columns))
    if kind == "int8":
        left = random.integers(0, 256, (rows, inner)).astype(np.uint8)
        given = graph.input("left", "uint8", ("rows", inner))
        made = graph.node("MatMulInteger", given, graph.constant(whole.astype(np.int8)))
        graph.output(made, "out", "int32", ("rows", columns))
    else:
        left = random.standard_normal((rows, inner)).astype(np.float32)
        given = graph.input("left", "float32", ("rows", inner))
        made = graph.node("MatMul", given, graph.constant(whole.astype(np.float32)))
        graph.output(made, "out", "float32", ("rows", columns))
    session, times = create_session(graph.to_bytes()), 8
    many = lambda: [session.run(None, {"left": left}) for _ in range(times)]  # noqa: E731
    return many, times * rows * inner * columns


def _row(name: str, costs: dict[str, Cost], scores: dict[str, FloatArray]) -> dict[str, Any]:
    own, base = costs[name], costs["CrossEncoder"]
    return {
        "ms": round(own.wall * 1e3, 1),
        "processor ms": round(own.processor * 1e3, 1),
        "candidates a second": round(len(scores[name]) / own.wall, 1),
        "times as fast": round(base.wall / own.wall, 2),
        "times as fast by processor time": round(base.processor / own.processor, 2),
    }


def _beside(
    own: Cost, scores: dict[str, FloatArray], name: str, products: int, peaks: dict[str, float]
) -> dict[str, Any]:
    """Figures of a system that takes every candidate to full depth."""
    rate = products / own.processor / 1e9 * _threads()
    return {
        "share of peak by processor time": {
            kind: round(rate / value, 3) for kind, value in peaks.items()
        },
        "correlation": round(float(np.corrcoef(scores[name], scores["CrossEncoder"])[0, 1]), 5),
    }


def _threads() -> int:
    import os

    return len(os.sched_getaffinity(0))


def _print(figures: dict[str, Any]) -> None:
    print({key: value for key, value in figures.items() if key != "ways"})
    head = ("ms", "cpu ms", "faster", "by cpu", "peak", "corr")
    print(f"{'way':<30}" + "".join(f"{one:>9}" for one in head))
    for name, row in figures["ways"].items():
        kind = "int8" if "int8" in name else "float32"
        values = [
            *(row[key] for key in ("ms", "processor ms", "times as fast")),
            row["times as fast by processor time"],
            row.get("share of peak by processor time", {}).get(kind, ""),
            row.get("correlation", ""),
        ]
        print(f"{name:<30}" + "".join(f"{value:>9}" for value in values))


if __name__ == "__main__":
    main()
