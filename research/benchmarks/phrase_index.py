"""
Libraries for a phrase index, our index at size, and the speed of encoding.

    python -m research.benchmarks.phrase_index libraries [--rows 100000]
    python -m research.benchmarks.phrase_index size [--phrases 1000000] [--folder DIR]
    python -m research.benchmarks.phrase_index speed [--on squadshifts/new_wiki_v1.0.json]

`libraries`: exact and approximate search over the same int8 rows with faiss and usearch on one
thread: build time, bytes per row, milliseconds per search, recall of the first hundred. Writes
research/results/phrase_index_libraries.json. `size`: phrases of SQuAD's paragraphs, repeated with
noise until there are enough; milliseconds from question to answer, and recall against exact
search. An existing index in `--folder` is measured; a new one is built there and kept. Writes
research/results/phrase_index.json. `speed`: paragraphs and megabytes encoded per second, and
milliseconds per question, by the number of threads. Writes research/results/phrase_speed.json.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askline.data.squad import Paragraph, read_paragraphs
from askline.phrases.index_segments import Segment
from askline.phrases.phrase_index import PhraseIndex
from askline.phrases.phrase_model import EncodedPhrases, PhraseModel

from .common import data_root, save

SIZE, NEAREST = 385, 100
JUDGED = 50  # questions with exact search, half a second each
DONE = "optimise.seconds"
Floats = NDArray[np.float32]


def main() -> None:
    """Run one part."""
    given = _arguments()
    if given.what == "libraries":
        rows = _libraries(given.rows)
        for name, row in rows.items():
            print(f"{name:24}", "  ".join(f"{key} {value:,.2f}" for key, value in row.items()))
        record = {"rows": given.rows, "size": SIZE, "figures": rows}
        print(save("phrase_index_libraries", record, "faiss-cpu", "usearch"))
    elif given.what == "speed":
        _speed(given)
    else:
        figures = _at_size(given)
        print("  ".join(f"{key} {value:,.2f}" for key, value in figures.items()))
        print(save("phrase_index", {"figures": figures}, "faiss-cpu"))


def _speed(given: argparse.Namespace) -> None:
    found = [one for one in read_paragraphs(data_root() / given.on).paragraphs if one.questions]
    paragraphs = found[: given.paragraphs]
    rows = {
        f"{threads} threads": _encoding_speed(
            PhraseModel.load(given.model, threads=threads), paragraphs
        )
        for threads in given.threads
    }
    for name, row in rows.items():
        print(f"{name:12}", "  ".join(f"{key} {value:.3f}" for key, value in row.items()))
    record = {"on": given.on, "paragraphs": len(paragraphs), "model": given.model or "shipped"}
    print(save("phrase_speed", {**record, "rows": rows}, "onnxruntime"))


def _libraries(count: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((count // 100, SIZE)).astype(np.float32)
    rows = centres[rng.integers(0, len(centres), count)]
    rows += 0.8 * rng.standard_normal(rows.shape).astype(np.float32)
    codes = np.rint(rows * (127 / np.abs(rows).max())).astype(np.int8)
    real = codes.astype(np.float32)
    asked = real[rng.integers(0, count, 50)] + 20 * rng.standard_normal((50, SIZE))
    questions = asked.astype(np.float32)
    truth = [set(np.argsort(-(real @ one))[:NEAREST].tolist()) for one in questions]
    figures = {"numpy exact": _search(lambda one: _numpy(codes, one), questions, truth)}
    with tempfile.TemporaryDirectory() as folder:
        figures |= _faiss(real, questions, truth, Path(folder))
        figures |= _usearch(codes, questions, truth, Path(folder))
    return figures


def _search(
    search: Callable[[Floats], Any], questions: Floats, truth: list[set[int]]
) -> dict[str, float]:
    search(questions[0])
    times, shared = [], 0
    for one, right in zip(questions, truth, strict=True):
        begun = time.perf_counter()
        found = search(one)
        times.append(1000 * (time.perf_counter() - begun))
        shared += len(right & set(np.asarray(found).ravel().tolist()))
    return {"p50 ms": float(np.median(times)), "recall": 100 * shared / (NEAREST * len(truth))}


def _numpy(codes: NDArray[np.int8], question: Floats) -> NDArray[np.int64]:
    blocks = range(0, len(codes), 16_384)
    scores = np.concatenate(
        [codes[at : at + 16_384].astype(np.float32) @ question for at in blocks]
    )
    return np.argpartition(-scores, NEAREST)[:NEAREST]


def _faiss(
    real: Floats, questions: Floats, truth: list[set[int]], folder: Path
) -> dict[str, dict[str, float]]:
    import faiss

    faiss.omp_set_num_threads(1)
    figures = {}
    lists = int(4 * len(real) ** 0.5)
    for name, spec in {
        "faiss SQ8 exact": "SQ8",
        "faiss IVF,SQ8": f"IVF{lists},SQ8",
        "faiss IVF,PQ55": f"IVF{lists},PQ55np",
    }.items():
        begun = time.perf_counter()
        index = faiss.index_factory(SIZE, spec, faiss.METRIC_INNER_PRODUCT)
        index.train(real[: max(40_000, 40 * lists)])
        index.add(real)
        built = time.perf_counter() - begun
        faiss.write_index(index, str(folder / "index"))
        mapped: Any = faiss.read_index(str(folder / "index"), faiss.IO_FLAG_MMAP)
        if "IVF" in spec:
            mapped.nprobe = 32
        found = _search(_faiss_search(mapped, real if "PQ" in spec else None), questions, truth)
        size = (folder / "index").stat().st_size / len(real)
        figures[name] = {"build s": built, "bytes a row": size, **found}
    return figures


def _faiss_search(index: Any, real: Floats | None) -> Callable[[Floats], Any]:
    """With vectors, twice as many rows are fetched and reordered by exact scores."""

    def search(question: Floats) -> Any:
        if real is None:
            return index.search(question[None], NEAREST)[1]
        rows = index.search(question[None], 2 * NEAREST)[1][0]
        rows = rows[rows >= 0]
        return rows[np.argsort(-(real[rows] @ question))[:NEAREST]]

    return search


def _usearch(
    codes: NDArray[np.int8], questions: Floats, truth: list[set[int]], folder: Path
) -> dict[str, dict[str, float]]:
    try:
        library: Any = import_module("usearch.index")
    except ImportError:
        return {}
    small = np.clip(np.rint(questions), -127, 127).astype(np.int8)
    table = {one.tobytes(): code for one, code in zip(questions, small, strict=True)}

    def exact(one: Floats) -> Any:
        return library.search(
            codes, table[one.tobytes()], NEAREST, library.MetricKind.IP, exact=True, threads=1
        ).keys

    begun = time.perf_counter()
    index = library.Index(ndim=SIZE, metric="ip", dtype="i8", connectivity=16, expansion_search=128)
    index.add(np.arange(len(codes)), codes, threads=1)
    built = time.perf_counter() - begun
    index.save(str(folder / "usearch"))
    mapped = library.Index.restore(str(folder / "usearch"), view=True)
    found = _search(
        lambda one: mapped.search(table[one.tobytes()], NEAREST, threads=1).keys, questions, truth
    )
    size = (folder / "usearch").stat().st_size / len(codes)
    return {
        "usearch exact": _search(exact, questions, truth),
        "usearch HNSW": {"build s": built, "bytes a row": size, **found},
    }


def _at_size(given: argparse.Namespace) -> dict[str, float]:
    model = PhraseModel.load(given.model)
    paragraphs = read_paragraphs(data_root() / "squad/train-800-contexts.json").paragraphs[:200]
    with tempfile.TemporaryDirectory() as folder:
        place = given.folder or Path(folder) / "index"
        if not (place / DONE).exists():
            _build(place, model, [paragraph.text for paragraph in paragraphs], given.phrases)
        index = PhraseIndex.open(place)
        asked = [one.text for paragraph in paragraphs for one in paragraph.questions]
        return {
            "phrases": float(len(index)),
            "optimise s": float((place / DONE).read_text()),
            "bytes a phrase": index.size_bytes / len(index),
            **_timed(model, index, asked[: given.questions]),
            "recall of the first 100": _recall(model, index, asked[:JUDGED]),
        }


def _build(folder: Path, model: PhraseModel, texts: list[str], count: int) -> None:
    coded = model.encode_many(texts)
    index = PhraseIndex.open(folder, create=True)
    for batch in _batches(texts, coded, count):
        index.add(batch)
    begun = time.perf_counter()
    index.optimize()
    (folder / DONE).write_text(str(time.perf_counter() - begun))


def _timed(model: PhraseModel, index: PhraseIndex, questions: list[str]) -> dict[str, float]:
    times = []
    for text in [questions[0], *questions]:
        begun = time.perf_counter()
        index.search(model.encode_question(text), 10)
        times.append(1000 * (time.perf_counter() - begun))
    p50, p95 = np.percentile(times[1:], [50, 95])
    return {"p50 ms": float(p50), "p95 ms": float(p95)}


def _recall(model: PhraseModel, index: PhraseIndex, questions: list[str]) -> float:
    """Recall of the first hundred of exact search, in percent."""
    (segment,) = [Segment(path) for path in index.folder.iterdir() if path.is_dir()]
    shared = 0
    for text in questions:
        question = model.encode_question(text)
        near, _ = segment.nearest(question.dense, NEAREST, probes=64)
        scaled = question.dense * segment.scale
        blocks = range(0, len(segment), 65_536)
        exact = np.concatenate(
            [segment.vectors[at : at + 65_536].astype(np.float32) @ scaled for at in blocks]
        )
        first = np.argpartition(-exact, NEAREST)[:NEAREST]
        shared += len(set(near.tolist()) & set(first.tolist()))
    return 100 * shared / (NEAREST * len(questions))


def _batches(
    texts: list[str], coded: list[EncodedPhrases], count: int
) -> Iterator[list[tuple[str, str, EncodedPhrases]]]:
    """The same paragraphs repeatedly, with noise added to their vectors."""
    rng = np.random.default_rng(0)
    spread = np.concatenate([one.dense for one in coded]).std(0) / 10
    done = again = 0
    while done < count:
        batch = []
        for place, (text, one) in enumerate(zip(texts, coded, strict=True)):
            noise = (rng.standard_normal(one.dense.shape) * spread * bool(again)).astype(np.float32)
            moved = EncodedPhrases(one.phrases, one.dense + noise, one.words, one.weights)
            batch.append((f"{again}-{place}", text, moved))
            done += len(one)
        again += 1
        yield batch


def _encoding_speed(model: PhraseModel, paragraphs: Sequence[Paragraph]) -> dict[str, float]:
    """Speed of encoding; the first text and the first question are not timed."""
    texts = [paragraph.text for paragraph in paragraphs]
    questions = [paragraph.questions[0].text for paragraph in paragraphs]
    model.encode(texts[0])
    model.encode_question(questions[0])
    begun = time.perf_counter()
    coded = model.encode_many(texts)
    seconds = time.perf_counter() - begun
    times = []
    for question in questions:
        begun = time.perf_counter()
        model.encode_question(question)
        times.append(1000 * (time.perf_counter() - begun))
    return {
        "ms a paragraph": 1000 * seconds / len(texts),
        "paragraphs a second": len(texts) / seconds,
        "MB a second": sum(len(text.encode()) for text in texts) / seconds / 1e6,
        "phrases a second": sum(map(len, coded)) / seconds,
        "ms a question p50": float(np.percentile(times, 50)),
        "ms a question p95": float(np.percentile(times, 95)),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["libraries", "size", "speed"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--model")
    parser.add_argument("--phrases", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--on", default="squadshifts/new_wiki_v1.0.json")
    parser.add_argument("--paragraphs", type=int, default=60)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    return parser.parse_args()


if __name__ == "__main__":
    main()
