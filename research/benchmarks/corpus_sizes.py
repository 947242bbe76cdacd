"""The parts `indexing`, `files`, `memory` and `scale` of `research.benchmarks.corpus`."""

from __future__ import annotations

import json
import os
import resource
import shutil
import threading
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from askline.corpus import Corpus

from .corpus_library import library, made_files, sentences_of

_EVERY_SECONDS = 0.05
_FIELDS = {"RssAnon": "own", "RssFile": "mapped files"}


def memory(
    on: str, sizes: Sequence[float], single: Sequence[float], folder: Path
) -> dict[str, Any]:
    """
    Peak memory in megabytes: private memory and pages of mapped files.

    Mapped files are programs, libraries and the search index while segments are merged; the
    system can reclaim them. `single` are sizes of texts in one file.
    """
    sentences = sentences_of(library(on).documents)
    rows = []
    for size in sorted(sizes):
        pages = folder / f"indexing-{size:g}" / "pages"
        made_files(sentences, pages, int(size * 1e6))
        rows.append({"text": "many files", "MB": size, **_measured(pages)})
    for size in sorted(single):
        pages = folder / f"indexing-{max((*sizes, *single)):g}" / "pages"  # the first of them
        made = made_files(sentences, pages, int(size * 1e6))
        with TemporaryDirectory(dir=folder) as place:
            _join(made, Path(place) / "one.txt")
            rows.append({"text": "one file", "MB": size, **_measured(Path(place))})
    return {"set": on, "memory": rows}


def _join(files: Sequence[Path], whole: Path) -> None:
    with whole.open("wb") as stream:
        for file in files:
            with file.open("rb") as piece:
                shutil.copyfileobj(piece, stream)
            stream.write(b"\n\n")


def _measured(pages: Path) -> dict[str, Any]:
    with get_context("spawn").Pool(1) as apart:
        found: dict[str, Any] = apart.apply(_peaks, (pages,))
    return found


def _peaks(pages: Path) -> dict[str, Any]:
    before, peak, done = _now(), _now(), threading.Event()

    def watch() -> None:
        while not done.wait(_EVERY_SECONDS):
            for name, value in _now().items():
                peak[name] = max(peak[name], value)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with TemporaryDirectory(dir=pages.parent) as index, Corpus.open(index) as corpus:
        report = corpus.add(pages)
    done.set()
    watcher.join()
    left_out = {"left out": "; ".join(each.message for each in report.problems)}
    return {f"{name}, before": value for name, value in before.items()} | peak | left_out


def _now() -> dict[str, int]:
    """Peak values as Linux counts them."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return {name: int(found[field].split()[0]) // 1000 for field, name in _FIELDS.items()}


_SAVED_SECONDS = 2.0


class Clock:
    """Time and memory over all runs, stored in a file, so that a run can be interrupted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        before = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self.seconds: float = before.get("seconds", 0.0)
        self.processor: float = before.get("processor", 0.0)
        self.peak: float = before.get("peak", 0.0)

    def __enter__(self) -> Clock:
        self._began, self._used = time.perf_counter(), time.process_time()
        self._saved = self._began
        return self

    def __exit__(self, *_: object) -> None:
        self._save()

    def tick(self, _: object) -> None:
        """Save at intervals."""
        if time.perf_counter() - self._saved > _SAVED_SECONDS:
            self._save()

    def _save(self) -> None:
        now, used = time.perf_counter(), time.process_time()
        self.seconds += now - self._began
        self.processor += used - self._used
        self.peak = max(self.peak, peak_megabytes())
        self._began, self._used, self._saved = now, used, now
        record = {"seconds": self.seconds, "processor": self.processor, "peak": self.peak}
        self._path.write_text(json.dumps(record), encoding="utf-8")


def indexing(on: str, sizes: Sequence[float], folder: Path) -> dict[str, Any]:
    """Smallest first, because the peak memory is that of the process so far."""
    sentences = sentences_of(library(on).documents)
    return {"set": on, "indexing": [_indexed(sentences, size, folder) for size in sorted(sizes)]}


def _indexed(sentences: Sequence[str], megabytes: float, folder: Path) -> dict[str, Any]:
    """Speed, size and memory, and the time to find that nothing has changed."""
    place = folder / f"indexing-{megabytes:g}"
    pages = place / "pages"
    files = made_files(sentences, pages, int(megabytes * 1e6))
    size = sum(file.stat().st_size for file in files)
    before = peak_megabytes()
    with Corpus.open(place / "index") as corpus:
        with Clock(place / "clock.json") as clock:
            corpus.add(pages, on_file=clock.tick)
        start = time.perf_counter()
        corpus.add(pages)
        again = time.perf_counter() - start
    with Corpus.open(
        place / "index"
    ) as corpus:  # closed before, so that the write-ahead log is gone
        status = corpus.status()
    return {
        "MB": round(size / 1e6, 1),
        "files": len(files),
        "sentences": status.sentences,
        "seconds": round(clock.seconds, 2),
        "processor s": round(clock.processor, 2),
        "MB/s": round(size / 1e6 / clock.seconds, 2),
        "sentences/s": round(status.sentences / clock.seconds),
        "store bytes/byte": round(status.store_bytes / size, 2),
        "search bytes/byte": round(status.search_bytes / size, 2),
        "peak MB": round(clock.peak),
        "of which before": round(before),
        "unchanged s": round(again, 2),
    }


def folder_of_files(on: str, files: int, folder: Path) -> dict[str, Any]:
    """A folder of many small files: new, unchanged, and with one of them changed."""
    sentences = sentences_of(library(on).documents)
    place = folder / f"files-{files}"
    pages = place / "pages"
    pages.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        path = pages / f"{number:06}.txt"
        path.write_text(" ".join(sentences[(number + k) % len(sentences)] for k in range(5)))
        os.utime(path, (1e9, 1e9))  # old enough for its date to be used
    shutil.rmtree(place / "index", ignore_errors=True)
    with Corpus.open(place / "index") as corpus:
        seconds = {"new s": corpus.add(pages).seconds, "unchanged s": corpus.add(pages).seconds}
        (pages / "000000.txt").write_text("One line is another now.")
        report = corpus.add(pages)
    assert (report.changed, report.unchanged) == (1, files - 1)
    seconds["one changed s"] = report.seconds
    row = {"files": files, **{name: round(value, 2) for name, value in seconds.items()}}
    return {"set": on, "files": [row]}


def scale(
    on: str, sizes: Sequence[int], spec: str | None, limit: int | None, folder: Path
) -> dict[str, Any]:
    """Milliseconds per question in corpora of different sizes, measured in turn."""
    documents, questions = library(on, limit or 200)
    sentences = sentences_of(documents)
    average = sum(map(len, sentences)) / len(sentences) + 12
    corpora = []
    for size in sizes:
        place = folder / f"scale-{size}"
        made_files(sentences, place / "pages", int(size * average))
        corpus = Corpus.open(place / "index", ranker=spec)
        corpus.add(place / "pages")
        corpus.ask(questions[0].text)
        corpora.append(corpus)
    said = [[corpus.ask(each.text) for corpus in corpora] for each in questions]
    rows = []
    for corpus, answers in zip(corpora, zip(*said, strict=True), strict=True):
        whole = 1000 * np.array([each.seconds for each in answers])
        first = 1000 * np.array([each.stages[0].seconds for each in answers])
        p50, p95 = np.percentile(whole, [50, 95])
        rows.append(
            {
                "sentences": corpus.status().sentences,
                "ms p50": round(float(p50), 2),
                "p95": round(float(p95), 2),
                "retrieval p50": round(float(np.median(first)), 2),
            }
        )
        corpus.close()
    return {"ranker": spec, "questions": len(questions), "scale": rows}


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
