"""
Other ways to draw and run the engine's layers, side by side, by processor time.

    python -m research.benchmarks.engine_tries [INT8_DIR] [--pairs 8] [--tokens 48]

Two layers of a cascade (the one that comes with askline), a batch of pairs of one length, one
thread; every way takes its turn in each round, and its best round counts. Billions of products a
second count the dense layers' alone. What one large product reaches by itself is measured beside
them, on one core and on all at once. Ways that change what is computed (other rounding, gelu by
tanh) are measured for their time alone. It writes `research/results/engine_tries.json`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from askline.engine.batching import Crew
from askline.engine.encoder import OnnxEncoder, open_encoder
from askline.models.folder import ModelFolder
from askline.rankers.cascade import shipped_folder

from .engine_graphs import WAYS, Way, float_tensors, large_product
from .report import save

FIRST, LAST = 4, 6  # layers of the encoder
SHAPES = ((1, 32), (1, 48), (1, 96), (2, 48), (4, 48), (10, 48))
OPERATORS = {
    "MatMulIntegerToFloat": "products",
    "MultiHeadAttention": "attention",
    "Gelu": "gelu",
    "QuantizeLinear": "making bytes",
    "Mul": "making bytes",
    "LayerNormalization": "sums and norms",
    "Add": "sums and norms",
}
FloatArray = NDArray[np.float32]
Run = Callable[[], Any]


def main() -> None:
    """Print a line for each way and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=shipped_folder())
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    encoder = open_encoder(ModelFolder.open(given.folder, kind="cascade"))
    states = _states(encoder, given.pairs, given.tokens)
    runs = {name: _runner(encoder, way, states) for name, way in WAYS.items()}
    figures: dict[str, Any] = {"pairs": given.pairs, "tokens": given.tokens}
    rates = _rates(encoder, runs, states, given.rounds)
    figures["ways, billion products a second"] = rates
    base = rates["as it is"]
    figures["times as fast as it is"] = {
        name: round(rate / base, 3) for name, rate in rates.items()
    }
    figures["share of time"] = _shares(encoder, states)
    figures["pairs × tokens, billion products a second"] = _by_shape(encoder, given.rounds)
    figures["one large product, billion products a second a core"] = _peaks(encoder.crew.threads)
    figures["classifier of 20 pairs, processor ms"] = _classifier(encoder)
    figures["both cores, ms"] = _both_cores(encoder, given.tokens)
    print(json.dumps(figures, indent=1, ensure_ascii=False))
    save("engine_tries", figures, "onnxruntime")


def _states(encoder: OnnxEncoder, pairs: int, tokens: int) -> FloatArray:
    """What really stands before those layers, of made-up tokens."""
    random = np.random.default_rng(0)
    numbers = random.integers(1_000, encoder.layout.encoder.vocabulary, (pairs, tokens))
    return encoder.embed(numbers, np.zeros_like(numbers), FIRST)


def _products(encoder: OnnxEncoder, pairs: int, tokens: int) -> int:
    own = encoder.layout.encoder
    layer = 4 * own.width**2 + 2 * own.width * own.inner
    return pairs * tokens * (LAST - FIRST) * layer


def _runner(encoder: OnnxEncoder, way: Way, states: FloatArray, threads: int = 1) -> Run:
    tensors = float_tensors(encoder.tensors) if way.precise else encoder.tensors
    session = _session(way.graph(encoder.layout, tensors, range(FIRST, LAST)), way, threads)
    return lambda: session.run(None, {"states": states})


def _session(graph: bytes, way: Way, threads: int = 1, profile: str = "") -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = way.arena
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, way.level)
    options.log_severity_level = 3
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _rates(
    encoder: OnnxEncoder, runs: dict[str, Run], states: FloatArray, rounds: int
) -> dict[str, float]:
    best = dict.fromkeys(runs, float("inf"))
    for turn in range(rounds + 1):
        for name, run in runs.items():
            seconds = _thread_seconds(run)
            if turn:  # the first does not count
                best[name] = min(best[name], seconds)
    products = _products(encoder, *states.shape[:2])
    return {name: round(products / seconds / 1e9, 1) for name, seconds in best.items()}


def _thread_seconds(run: Run, times: int = 3) -> float:
    """Processor time of this thread, which other work on the machine disturbs least."""
    start = time.thread_time()
    for _ in range(times):
        run()
    return (time.thread_time() - start) / times


def _shares(encoder: OnnxEncoder, states: FloatArray) -> dict[str, float]:
    """Of the time of the layers as they are, by kind of operator; the best of each in 60 runs."""
    way = WAYS["as it is"]
    found: dict[str, list[int]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        graph = way.graph(encoder.layout, encoder.tensors, range(FIRST, LAST))
        session = _session(graph, way, profile=str(Path(folder) / "run"))
        for _ in range(60):
            session.run(None, {"states": states})
        events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("kernel_time"):
            found[f"{event['args']['op_name']} {event['name']}"].append(event["dur"])
    total: Counter[str] = Counter()
    for name, durations in found.items():
        total[OPERATORS.get(name.split()[0], "rest")] += min(durations)
    return {name: round(own / total.total(), 3) for name, own in total.most_common()}


def _by_shape(encoder: OnnxEncoder, rounds: int) -> dict[str, float]:
    rates = {}
    for pairs, tokens in SHAPES:
        states = _states(encoder, pairs, tokens)
        runs = {"as it is": _runner(encoder, WAYS["as it is"], states)}
        found = _rates(encoder, runs, states, rounds)
        rates[f"{pairs} × {tokens}"] = found["as it is"]
    return rates


def _peaks(cores: int) -> dict[str, dict[str, float]]:
    """One large product on one core, and one on each of all cores at once."""
    found: dict[str, dict[str, float]] = {}
    for kind in ("float32", "int8"):
        runs, products = zip(*(large_product(kind) for _ in range(cores)), strict=True)
        for run in runs:
            run()
        alone = min(_thread_seconds(runs[0]) for _ in range(12))
        with ThreadPoolExecutor(cores) as pool:
            rounds = [max(pool.map(_thread_seconds, runs)) for _ in range(12)]
        found[kind] = {
            "alone": round(products[0] / alone / 1e9, 1),
            "on all cores at once": round(products[0] / min(rounds) / 1e9, 1),
        }
    return found


def _classifier(encoder: OnnxEncoder, pairs: int = 20) -> dict[str, float]:
    """At the first depth: with each pair's own batch, or once for all."""
    depth = encoder.depths[0]
    pooled = np.zeros((pairs, encoder.layout.encoder.width), np.float32)
    ways = {
        "one by one": lambda: [encoder.logits(pooled[at : at + 1], depth) for at in range(pairs)],
        "at once": lambda: encoder.logits(pooled, depth),
    }
    return {
        name: round(1e3 * min(_thread_seconds(way) for _ in range(12)), 2)
        for name, way in ways.items()
    }


def _both_cores(encoder: OnnxEncoder, tokens: int, pairs: int = 40) -> dict[str, float]:
    """The same pairs by the clock: small batches side by side, or one batch on all threads."""
    crew, way = Crew(), WAYS["as it is"]
    parts = np.array_split(_states(encoder, pairs, tokens), pairs // 4)
    session = _session(way.graph(encoder.layout, encoder.tensors, range(FIRST, LAST)), way)
    whole = np.concatenate(parts)
    shared = _runner(encoder, way, whole, threads=crew.threads)

    def side_by_side() -> None:
        crew.work_off(parts, lambda part: session.run(None, {"states": part}))

    return {
        "batches side by side": _wall(side_by_side),
        "one batch, all threads": _wall(shared),
        "one batch after the other, one thread": _wall(
            lambda: [session.run(None, {"states": part}) for part in parts]
        ),
    }


def _wall(run: Run) -> float:
    times = []
    for _ in range(12):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return round(1e3 * min(times[1:]), 1)


if __name__ == "__main__":
    main()
