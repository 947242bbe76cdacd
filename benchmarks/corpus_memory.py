"""Whether indexing takes more memory for more text: each size in a process of its own."""

from __future__ import annotations

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


def memory(on: str, sizes: Sequence[float], folder: Path) -> dict[str, Any]:
    """
    Megabytes at the peak: the process's own, and pages of mapped files.

    The latter are the search index while its parts are merged; the system takes them back when it
    needs them.
    """
    sentences = sentences_of(library(on).documents)
    rows = []
    for size in sorted(sizes):
        pages = folder / f"indexing-{size:g}" / "pages"
        made_files(sentences, pages, int(size * 1e6))
        with get_context("spawn").Pool(1) as apart:
            rows.append({"MB": size, **apart.apply(_peaks, (pages,))})
    return {"set": on, "memory": rows}


def _peaks(pages: Path) -> dict[str, int]:
    before, peak, done = _now(), _now(), threading.Event()

    def watch() -> None:
        while not done.wait(_EVERY_SECONDS):
            for name, value in _now().items():
                peak[name] = max(peak[name], value)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with TemporaryDirectory(dir=pages.parent) as index, Corpus.open(index) as corpus:
        corpus.add(pages)
    done.set()
    watcher.join()
    return {f"{name}, before": value for name, value in before.items()} | peak


def _now() -> dict[str, int]:
    """As Linux counts it."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return {name: int(found[field].split()[0]) // 1000 for field, name in _FIELDS.items()}
