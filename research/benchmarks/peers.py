"""
askline beside other rerankers: the same questions, candidates and cores, in one table.

    python -m research.benchmarks.peers --data DIR --model DIR [--only quality|time]

--model is a cross-encoder in Hugging Face's format. Its ONNX graph is exported by the package
optimum, or given with --onnx, and quantized to int8 if the package onnx is installed. Quality is
measured on the WikiQA test questions; time on some of them padded to 20, 100, 400, 1,300 and 5,000
candidates. All systems rank each question in turn, so that other load affects all of them. A system
whose package is not installed is skipped and named with the reason. Each part takes about six
minutes on two quiet cores and is merged into research/results/peers.json. The times are drawn into
research/results/peers.svg.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import copy
from statistics import median
from tempfile import mkdtemp
from typing import Any

import numpy as np

import askline
from askline import data
from askline.evaluation import bootstrap_interval, markdown_table
from askline.rankers.registry import DEFAULT_SPEC
from askline.types import Question

from . import common

Scores = Callable[[str, Sequence[str]], Any]
_LONGEST = 512  # tokens per pair, as in the encoders' training


def bm25s_scores(question: str, candidates: Sequence[str]) -> Any:
    """bm25s with the list as its corpus."""
    import bm25s

    quiet = {"show_progress": False}
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(candidates), stopwords=None, **quiet), **quiet)
    asked = bm25s.tokenize([question], stopwords=None, return_ids=False, **quiet)[0]
    return index.get_scores(asked)


def cross_encoder(folder: Path, backend: str, threads: int) -> Scores:
    """sentence-transformers' CrossEncoder with its default batch size of 32."""
    import torch
    from sentence_transformers import CrossEncoder

    torch.set_num_threads(threads)
    exact = {"torch_dtype": "float32"} if backend == "torch" else {}  # the usual setting on a CPU
    model: Any = CrossEncoder(
        str(folder), device="cpu", backend=backend, max_length=_LONGEST, model_kwargs=exact
    )

    def scores(question: str, candidates: Sequence[str]) -> Any:
        pairs = [(question, candidate) for candidate in candidates]
        return model.predict(pairs, show_progress_bar=False)

    return scores


def rerankers_scores(folder: Path, threads: int) -> Scores:
    """The package rerankers with its default batch size of 16."""
    import torch

    torch.set_num_threads(threads)
    model: Any = import_module("rerankers").Reranker(
        str(folder), model_type="cross-encoder", device="cpu", dtype="float32", verbose=0
    )

    def scores(question: str, candidates: Sequence[str]) -> Any:
        found = model.rank(question, list(candidates), doc_ids=list(range(len(candidates))))
        own = {each.document.doc_id: each.score for each in found.results}
        return [own[place] for place in range(len(candidates))]

    return scores


def flashrank_scores(path: Path, folder: Path) -> Scores:
    """FlashRank with these weights instead of those it downloads, on all cores."""
    package = import_module("flashrank")
    files = import_module("flashrank.Config").model_file_map
    name = "ms-marco-MiniLM-L-12-v2"  # same shape as our encoder
    home = Path(mkdtemp()) / name
    home.mkdir()
    copy(path, home / files[name])
    for file in ("config", "tokenizer", "tokenizer_config", "special_tokens_map"):
        copy(folder / f"{file}.json", home)
    ranker = package.Ranker(
        name, cache_dir=str(home.parent), max_length=_LONGEST, log_level="ERROR"
    )

    def scores(question: str, candidates: Sequence[str]) -> Any:
        passages = [{"id": place, "text": text} for place, text in enumerate(candidates)]
        found = ranker.rerank(package.RerankRequest(query=question, passages=passages))
        own = {each["id"]: each["score"] for each in found}
        return [own[place] for place in range(len(candidates))]

    return scores


def fastembed_scores(path: Path, folder: Path, threads: int) -> Scores:
    """The TextCrossEncoder of fastembed with these weights, and its default batch size of 64."""
    name = "Xenova/ms-marco-MiniLM-L-12-v2"  # same shape as our encoder
    home = Path(mkdtemp())
    (home / "onnx").mkdir()
    copy(path, home / "onnx" / "model.onnx")
    for file in ("config", "tokenizer", "tokenizer_config", "special_tokens_map"):
        copy(folder / f"{file}.json", home)
    model: Any = import_module("fastembed.rerank.cross_encoder").TextCrossEncoder(
        name, threads=threads, specific_model_path=str(home)
    )
    return lambda question, candidates: list(model.rerank(question, list(candidates)))


def onnx_pass(path: Path, threads: int) -> Scores:
    """The same method as FlashRank: ONNX Runtime, int8, one pass padded to the longest pair."""
    import onnxruntime
    from tokenizers import Tokenizer

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), settings, ["CPUExecutionProvider"])
    tokeniser = Tokenizer.from_file(str(path.parent / "tokenizer.json"))
    tokeniser.enable_truncation(_LONGEST)
    tokeniser.enable_padding()
    wanted = [value.name for value in session.get_inputs()]

    def scores(question: str, candidates: Sequence[str]) -> Any:
        coded = tokeniser.encode_batch([(question, candidate) for candidate in candidates])
        columns = {
            "input_ids": [own.ids for own in coded],
            "attention_mask": [own.attention_mask for own in coded],
            "token_type_ids": [own.type_ids for own in coded],
        }
        given = {name: np.array(columns[name], np.int64) for name in wanted}
        return session.run(None, given)[0].reshape(len(candidates), -1)[:, -1]

    return scores


def exported(folder: Path) -> Path:
    """The model's ONNX graph in float32, with the tokenizer's files beside it."""
    from sentence_transformers import CrossEncoder

    target = Path(mkdtemp())
    model: Any = CrossEncoder(str(folder), device="cpu", backend="onnx")
    model.save_pretrained(str(target))
    (graph,) = target.rglob("*.onnx")
    if not (graph.parent / "tokenizer.json").is_file():
        copy(folder / "tokenizer.json", graph.parent)
    return graph


@cache
def quantised(path: Path) -> tuple[Path, str]:
    """The graph with int8 weights, as FlashRank ships it; float32 if onnx is not installed."""
    if "int8" in path.name:
        return path, "int8"
    if find_spec("onnx") is None:
        return path, "float32"
    from onnxruntime.quantization import quantize_dynamic

    folder = Path(mkdtemp())
    target = folder / "model.int8.onnx"
    quantize_dynamic(path, target)
    copy(path.parent / "tokenizer.json", folder)
    return target, "int8"


Row = dict[str, Any]
SET = "wikiqa:test"
_WEIGHTS = {"torch": "*.safetensors", "onnx": "*.onnx", "openvino": "*.bin"}
SHIPPED = Path(askline.__file__).parent / "models" / "shipped"
QUESTIONS = {
    20: (12, 60.0),
    100: (6, 140.0),
    400: (3, 170.0),
    1_300: (3, 60.0),
    5_000: (2, 60.0),
}
"""Maximum number of timed questions by candidates, and seconds after which none is started."""
_EVERY = 12
"""A second system with the same weights ranks every twelfth question."""


class System:
    """A system: name, scoring function, and megabytes of its weights on disk."""

    def __init__(
        self, name: str, scores: Scores, size: float, *, most: int = 5_000, like: str = ""
    ) -> None:
        self.name, self.scores, self.size, self.most = name, scores, size, most
        self.like = like
        """Name of a system with the same weights."""
        self.seconds: dict[int, list[float]] = {}
        self.orders: dict[str, list[int]] = {}
        self.right: list[float] = []
        self.precision: list[float] = []

    def judge(self, question: Question) -> None:
        """P@1 and average precision of one question."""
        scores = np.asarray(self.scores(question.text, question.texts), float)
        self.orders[question.id] = np.argsort(-scores, kind="stable").tolist()
        labels = np.array([candidate.is_answer for candidate in question.candidates])
        ranked = labels[np.argsort(-scores, kind="stable")]
        places = np.flatnonzero(ranked) + 1
        self.right.append(float(ranked[0]))
        self.precision.append(float((np.arange(1, len(places) + 1) / places).mean()))

    def time(self, question: Question, count: int) -> None:
        """Seconds of one ranking."""
        texts = question.texts
        begun = time.perf_counter()
        self.scores(question.text, texts)
        self.seconds.setdefault(count, []).append(time.perf_counter() - begun)

    def quality(self) -> Row:
        right = np.array(self.right)
        interval = bootstrap_interval(100 * right)
        return {
            "system": self.name,
            "questions": len(right),
            "P@1": round(100 * float(right.mean()), 2),
            "P@1 95 %": [round(interval.low, 2), round(interval.high, 2)],
            "MAP": round(100 * float(np.mean(self.precision)), 2),
            "MB": round(self.size, 1),
        }

    def same_as(self, other: System) -> Row:
        """Quality of the system with the same weights, and how often both agree."""
        same = sum(order == other.orders[name] for name, order in self.orders.items())
        agreed = f"the same order for {same} of {len(self.orders)} questions"
        return {**other.quality(), "system": self.name, "MB": round(self.size, 1), "seen": agreed}

    def times(self) -> list[Row]:
        return [
            {
                "system": self.name,
                "candidates": count,
                "questions": len(own),
                "ms p50": round(1000 * median(own), 2),
                "ms most": round(1000 * max(own), 2),
                "MB": round(self.size, 1),
            }
            for count, own in self.seconds.items()
        ]


def ranked_by(spec: str) -> Scores:
    """An askline ranker as scores: negative ranks."""
    ranker = askline.load(spec)

    def scores(question: str, candidates: Sequence[str]) -> Any:
        hits = ranker.rank(question, candidates)
        found = np.empty(len(hits))
        found[[hit.index for hit in hits]] = np.arange(len(hits), 0, -1)
        return found

    return scores


def systems(options: argparse.Namespace) -> tuple[list[System], dict[str, str]]:
    """Available systems, and the reason for each that is not available."""
    left_out: dict[str, str] = {}
    found = [*_own(options), System("bm25s", bm25s_scores, 0.0)]
    if options.model:
        found += _float_peers(options, left_out)
    if options.model and not options.onnx and find_spec("optimum"):
        options.onnx = exported(options.model)
    if options.onnx:
        found.append(_int8_peer(options, left_out))
        found += _fastembed(options, left_out)
    return found, left_out


def _own(options: argparse.Namespace) -> list[System]:
    light = _megabytes(SHIPPED / "cosinet") + (SHIPPED / "vectors.safetensors").stat().st_size / 1e6
    cascade, size = f"cascade({str(options.cascade)!r}", _megabytes(options.cascade)
    specs = {
        "cosinet % 20 >> cascade": f"cosinet % 20 >> {cascade})",
        "cosinet % 50 >> cascade": f"cosinet % 50 >> {cascade})",
        "cosinet % 100 >> cascade": f"cosinet % 100 >> {cascade})",
        "jaccard % 100 >> cascade": f"jaccard % 100 >> {cascade})",
        "cascade": f"{cascade})",
        "cascade, full depth": f"{cascade}, depth={options.depth})",
    }
    return [
        System("bm25", ranked_by("bm25"), 0.0),
        System("jaccard", ranked_by("jaccard"), 0.0),
        System("cosinet", ranked_by("cosinet"), light),
        *(
            System(name, ranked_by(spec), size + light * ("cosinet" in name))
            for name, spec in specs.items()
        ),
    ]


def _float_peers(options: argparse.Namespace, left_out: dict[str, str]) -> Iterator[System]:
    for backend, pattern in _WEIGHTS.items():
        name = f"sentence-transformers, {backend}"
        if backend != "torch" and find_spec("optimum") is None:
            left_out[name] = "optimum is not installed"
            continue
        scores = cross_encoder(options.model, backend, options.threads)
        # The package creates this file from the same weights if the folder lacks it.
        size = _megabytes(options.model, pattern) or _megabytes(options.model, _WEIGHTS["torch"])
        like = "" if backend == "torch" else "sentence-transformers, torch"
        yield System(name, scores, size, most=options.most, like=like)
    if find_spec("rerankers") is None:
        left_out["rerankers"] = "not installed"
        return
    scores = rerankers_scores(options.model, options.threads)
    size, like = _megabytes(options.model, "*.safetensors"), "sentence-transformers, torch"
    yield System("rerankers", scores, size, most=options.most, like=like)


def _int8_peer(options: argparse.Namespace, left_out: dict[str, str]) -> System:
    path, kind = quantised(options.onnx)
    if options.model and find_spec("flashrank"):
        name, scores = f"FlashRank, {kind}", flashrank_scores(path, options.model)
    else:
        left_out["FlashRank"] = "not installed; its way, one padded pass, was gone instead"
        name = f"ONNX Runtime, {kind}, one padded pass"
        scores = onnx_pass(path, options.threads)
    return System(name, scores, path.stat().st_size / 1e6, most=options.most)


def _fastembed(options: argparse.Namespace, left_out: dict[str, str]) -> Iterator[System]:
    """Both precisions: it downloads float32 graphs, and its int8 ones are for other encoders."""
    if not options.model or find_spec("fastembed") is None:
        left_out["fastembed"] = "not installed" if options.model else "needs --model"
        return
    for path, kind in dict([(options.onnx, "float32"), quantised(options.onnx)]).items():
        scores = fastembed_scores(path, options.model, options.threads)
        size = path.stat().st_size / 1e6
        like = "sentence-transformers, torch" if kind == "float32" else ""
        yield System(f"fastembed, {kind}", scores, size, most=options.most, like=like)


def _megabytes(folder: Path, pattern: str = "*") -> float:
    return sum(path.stat().st_size for path in folder.rglob(pattern) if path.is_file()) / 1e6


def measure_quality(found: Sequence[System], options: argparse.Namespace) -> list[Row]:
    """Quality over every fourth question, then the others, until the time is used up."""
    answerable = data.filter_questions(
        data.load_dataset(SET, root=options.data), "answerable"
    ).questions
    spread = [question for first in range(4) for question in answerable[first::4]]
    for at, question in enumerate(spread[: 3 if options.few else None]):
        if time.process_time() > options.processor_seconds:
            break
        for system in found:
            if not system.like or at % _EVERY == 0:
                system.judge(question)
    by_name = {system.name: system for system in found}
    rows = [own.same_as(by_name[own.like]) if own.like else own.quality() for own in found]
    _show(rows, ["system", "questions", "P@1", "MAP", "MB"])
    return rows


def measure_time(found: Sequence[System], options: argparse.Namespace) -> list[Row]:
    """Times of questions at even steps through the set, after a warm-up question."""
    for count, (number, seconds) in ({20: (2, 60.0)} if options.few else QUESTIONS).items():
        padded = data.pad(data.load_dataset(SET, root=options.data), count)
        answerable = data.filter_questions(padded, "answerable").questions
        step = max(1, len(answerable) // (number + 1))
        able = [system for system in found if count <= system.most]
        for system in able if count == min(QUESTIONS) else ():
            system.scores(answerable[0].text, answerable[0].texts)
        begun = time.perf_counter()
        for question in answerable[step::step][:number]:
            if time.perf_counter() - begun < seconds:
                for system in able:
                    system.time(question, count)
        print(f"{count} candidates: {time.perf_counter() - begun:.0f} s", flush=True)
    rows = sorted((row for own in found for row in own.times()), key=lambda row: row["candidates"])
    _show(rows, ["system", "candidates", "questions", "ms p50", "ms most"])
    return rows


def speed_ups(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Of our systems over the float32 CrossEncoder of the same run, by candidates."""
    times = {(row["system"], row["candidates"]): row["ms p50"] for row in rows}
    return {
        name: {
            str(count): round(times["sentence-transformers, torch", count] / own, 2)
            for (system, count), own in times.items()
            if system == name and ("sentence-transformers, torch", count) in times
        }
        for name in ("cascade", "cosinet % 100 >> cascade")
    }


def _show(rows: Sequence[Row], keys: Sequence[str]) -> None:
    print(markdown_table(list(keys), [[str(row[key]) for key in keys] for row in rows]), flush=True)


def main() -> None:
    options = _arguments()
    load = round(os.getloadavg()[0], 2)
    found, left_out = systems(options)
    figures = common.load_or_empty("peers")
    figures.pop("environment", None)
    figures |= {"set": SET, "threads": options.threads, "left out": left_out}
    if options.only != "time":
        figures["quality"] = measure_quality(found, options)
    if options.only != "quality":
        figures |= {"load before": load, "rows": measure_time(found, options)}
        figures["speed-up over sentence-transformers"] = speed_ups(figures["rows"])
    _plot(figures["rows"], common.results_folder() / "peers.svg")
    packages = ("onnxruntime", "torch", "transformers", "sentence-transformers", "optimum")
    others = ("openvino", "FlashRank", "rerankers", "fastembed", "bm25s")
    print(f"Skipped: {left_out}\nSaved to {common.save('peers', figures, *packages, *others)}")


DRAWN = {
    DEFAULT_SPEC: ("black", "-"),
    "cosinet": ("tab:gray", "-"),
    "rerankers": ("tab:red", "--"),
    "sentence-transformers, torch": ("tab:orange", "--"),
    "FlashRank, int8": ("tab:purple", "--"),
    "fastembed, int8": ("tab:pink", "--"),
    "sentence-transformers, openvino": ("tab:green", "--"),
    "bm25s": ("tab:blue", "--"),
}
"""Colour and style of the systems in the plot."""


def _plot(rows: Sequence[Row], path: Path) -> None:
    """Milliseconds against candidates, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5))
    axes = figure.subplots()
    for name, (color, style) in DRAWN.items():
        own = [row for row in rows if row["system"] == name]
        counts = [row["candidates"] for row in own]
        times = [row["ms p50"] for row in own]
        label = f"askline, {name}" if style == "-" else name
        axes.loglog(counts, times, style, color=color, marker="o", label=label)
    counts = sorted({row["candidates"] for row in rows})
    axes.set_xticks(counts, [f"{count:,}" for count in counts], minor=False)
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(alpha=0.3)
    axes.set_xlabel("candidates")
    axes.set_ylabel("milliseconds per question")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the datasets")
    parser.add_argument(
        "--cascade",
        type=Path,
        default=SHIPPED / "cascade",
        help="folder of the cascade  [default: the shipped one]",
    )
    parser.add_argument("--depth", type=int, default=10, help="full depth of the cascade")
    parser.add_argument(
        "--model", type=Path, help="folder of a cross-encoder in Hugging Face's format"
    )
    parser.add_argument(
        "--onnx",
        type=Path,
        help="ONNX file of the cross-encoder, with tokenizer.json in its folder  [default: made]",
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of every system")
    parser.add_argument(
        "--most", type=int, default=400, help="maximum number of candidates for slow systems"
    )
    parser.add_argument("--few", action="store_true", help="a trial with two questions")
    parser.add_argument(
        "--processor-seconds",
        type=float,
        default=600.0,
        help="processor seconds for the quality part",
    )
    parser.add_argument("--only", choices=("quality", "time"), help="run only one part")
    return parser.parse_args()


if __name__ == "__main__":
    main()
