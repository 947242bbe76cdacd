"""Whether indexing takes more memory for more text: each text in a process of its own."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from askline.corpus import Corpus

from .corpus_library import library, made_files, sentences_of

_EVERY_SECONDS = 0.05
_FIELDS = {"RssAnon": "own", "RssFile": "mapped files"}


def memory(
    on: str, sizes: Sequence[float], single: Sequence[float], folder: Path
) -> dict[str, Any]:
    """
    Megabytes at the peak: the process's own, and pages of mapped files.

    The latter are programs and libraries, and the search index while its parts are merged; the
    system takes them back when it needs them. `single` are sizes of texts in one file.
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
    """As Linux counts it."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return {name: int(found[field].split()[0]) // 1000 for field, name in _FIELDS.items()}
