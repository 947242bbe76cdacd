"""
askline and what people use instead: the same questions, candidates and cores, in one table.

    python -m benchmarks.peers --data DIR --model DIR --onnx FILE [--cascade DIR]

--model is a cross-encoder as Hugging Face stores it, --onnx its graph, which is made int8 where the
package onnx is installed. WikiQA test questions padded to 100 candidates and, fewer of them, to 400
and 1,300. Question by question every system ranks in turn, so that what else the machine does falls
on all alike; the first question warms up and is not timed. A system whose package is not installed
is left out and named. Writes results/peers.json.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import askline
from askline import data
from askline.evaluation import bootstrap_interval, markdown_table
from askline.types import Question

from . import report
from .peer_systems import bm25s_scores, cross_encoder, onnx_pass, quantised

Scores = Callable[[str, Sequence[str]], Any]
Row = dict[str, Any]
SET = "wikiqa:test"
SHIPPED = Path(askline.__file__).parent / "models" / "shipped"
QUESTIONS = {100: 60, 400: 12, 1_300: 4}


class System:
    """A name, a way to score a list, and the megabytes that its weights take on disk."""

    def __init__(self, name: str, scores: Scores, size: float, *, most: int = 1_300) -> None:
        self.name, self.scores, self.size, self.most = name, scores, size, most
        self.seconds: dict[int, list[float]] = {}
        self.right: dict[int, list[float]] = {}
        self.precision: dict[int, list[float]] = {}

    def ask(self, question: Question, count: int, *, timed: bool) -> None:
        texts = list(question.texts)
        begun = time.perf_counter()
        scores = np.asarray(self.scores(question.text, texts), float)
        seconds = time.perf_counter() - begun
        if not timed:
            return
        self.seconds.setdefault(count, []).append(seconds)
        labels = np.array([candidate.is_answer for candidate in question.candidates])
        ranked = labels[np.argsort(-scores, kind="stable")]
        self.right.setdefault(count, []).append(float(ranked[0]))
        places = np.flatnonzero(ranked) + 1
        found = np.arange(1, len(places) + 1) / places
        self.precision.setdefault(count, []).append(float(found.mean()))

    def rows(self) -> list[Row]:
        return [self._row(count) for count in self.seconds]

    def _row(self, count: int) -> Row:
        right = np.array(self.right[count])
        interval = bootstrap_interval(100 * right)
        times = 1000 * np.array(self.seconds[count])
        return {
            "system": self.name,
            "candidates": count,
            "questions": len(right),
            "P@1": round(100 * float(right.mean()), 2),
            "P@1 95 %": [round(interval.low, 2), round(interval.high, 2)],
            "MAP": round(100 * float(np.mean(self.precision[count])), 2),
            "ms p50": round(median(times), 2),
            "ms p95": round(float(np.percentile(times, 95)), 2),
            "MB": round(self.size, 1),
        }


def ranked_by(spec: str) -> Scores:
    """An askline ranker as scores: places counted from the end."""
    ranker = askline.load(spec)

    def scores(question: str, candidates: Sequence[str]) -> Any:
        hits = ranker.rank(question, candidates)
        found = np.empty(len(hits))
        found[[hit.index for hit in hits]] = np.arange(len(hits), 0, -1)
        return found

    return scores


def systems(options: argparse.Namespace) -> tuple[list[System], dict[str, str]]:
    """Those that can be had, and why others cannot."""
    light = _megabytes(SHIPPED / "cosinet") + (SHIPPED / "vectors.safetensors").stat().st_size / 1e6
    found = [
        System("bm25", ranked_by("bm25"), 0.0),
        System("bm25s", bm25s_scores, 0.0),
        System("jaccard", ranked_by("jaccard"), 0.0),
        System("cosinet", ranked_by("cosinet"), light),
    ]
    left_out: dict[str, str] = {}
    if options.cascade.is_dir():
        own = f"cascade({str(options.cascade)!r}"
        size = _megabytes(options.cascade)
        specs = {
            "cosinet % 50 >> cascade": f"cosinet % 50 >> {own})",
            "cosinet % 100 >> cascade": f"cosinet % 100 >> {own})",
            "jaccard % 100 >> cascade": f"jaccard % 100 >> {own})",
            "cascade": f"{own})",
            "cascade, full depth": f"{own}, depth={options.depth})",
        }
        found += [
            System(name, ranked_by(spec), size + light * ("cosinet" in name))
            for name, spec in specs.items()
        ]
    if options.model:
        for backend in ("torch", "onnx", "openvino"):
            name = f"sentence-transformers, {backend}"
            if backend != "torch" and find_spec("optimum") is None:
                left_out[name] = "optimum is not installed"
                continue
            scores = cross_encoder(options.model, backend, options.threads)
            size = _megabytes(options.model, "*.safetensors")
            found.append(System(name, scores, size, most=options.most))
    if options.onnx:
        path, kind = quantised(options.onnx)
        scores = onnx_pass(path, options.threads)
        name = f"ONNX Runtime, {kind}, one padded pass"
        found.append(System(name, scores, path.stat().st_size / 1e6, most=options.most))
    for package in ("flashrank", "rerankers"):
        if find_spec(package) is None:
            left_out[package] = "not installed; it runs one of the paths above"
    return found, left_out


def _megabytes(folder: Path, pattern: str = "*") -> float:
    return sum(path.stat().st_size for path in folder.rglob(pattern) if path.is_file()) / 1e6


def measure(found: Sequence[System], options: argparse.Namespace) -> None:
    for count, number in ({100: 2} if options.few else QUESTIONS).items():
        padded = data.pad(data.load(SET, root=options.data), count)
        answerable = data.select(padded, "answerable").questions
        step = max(1, len(answerable) // (number + 1))
        chosen = answerable[::step][: number + 1]
        for place, question in enumerate(chosen):
            for system in found:
                if count <= system.most:
                    system.ask(question, count, timed=place > 0)
        print(f"{count} candidates: {len(chosen) - 1} questions", flush=True)


def main() -> None:
    options = _arguments()
    load = os.getloadavg()[0]
    found, left_out = systems(options)
    measure(found, options)
    rows = sorted((row for own in found for row in own.rows()), key=lambda row: row["candidates"])
    keys = ["system", "candidates", "questions", "P@1", "MAP", "ms p50", "ms p95", "MB"]
    print(markdown_table(keys, [[str(row[key]) for key in keys] for row in rows]))
    figures = {"set": SET, "threads": options.threads, "load before": round(load, 2)}
    packages = ("onnxruntime", "torch", "transformers", "sentence-transformers", "bm25s")
    path = report.save("peers", {**figures, "rows": rows, "left out": left_out}, *packages)
    print(f"Left out: {left_out}\nKept in {path}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the datasets")
    parser.add_argument(
        "--cascade", type=Path, default=SHIPPED / "cascade", help="its folder  [the shipped one]"
    )
    parser.add_argument("--depth", type=int, default=12, help="its full depth")
    parser.add_argument("--model", type=Path, help="a cross-encoder's folder, Hugging Face style")
    parser.add_argument("--onnx", type=Path, help="its ONNX file, tokenizer.json beside it")
    parser.add_argument("--threads", type=int, default=2, help="of every system")
    parser.add_argument("--most", type=int, default=400, help="candidates, for the slow peers")
    parser.add_argument("--few", action="store_true", help="two questions, for a trial")
    return parser.parse_args()


if __name__ == "__main__":
    main()
