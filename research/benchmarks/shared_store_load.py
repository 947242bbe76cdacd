"""
Writers and readers of one shared store, with `kill -9` of writers and of the server.

Every sentence says which document, version and line it is. A reader can therefore tell an answer
from half a document, and at the end it is known what each writer was told to be stored. Used by
`research.benchmarks.shared_store load`, and for some seconds by the tests.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from askline.corpus import Corpus, FileReport
from askline.corpus.passages import split_passages
from askline.corpus.postgres_store import PostgresStore
from askline.errors import CorpusError
from tests.postgres_server import PostgresServer

__all__ = ["run_load"]

OWN_DOCUMENTS = 40  # per writer
SHARED_DOCUMENTS = 5  # that all writers replace
_LINE = re.compile(r"Lamp (\w+) of version (\w+) has line (\d+) of (\d+)\.")
_RETRY_SECONDS = 0.2


def run_load(
    seconds: float,
    *,
    writers: int = 4,
    readers: int = 4,
    writer_kills: float = 10.0,
    server_kills: float = 60.0,
    seed: int = 0,
) -> dict[str, Any]:
    """
    The counts of a run; `lost`, `mixed` and `damaged` must be 0.

    A writer is killed every `writer_kills` seconds on average, the server every `server_kills`.
    """
    rng = random.Random(seed)
    with (
        PostgresServer(fsync=True) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        url = server.url()
        Corpus.open(url, ranker=None).close()
        processes = _Processes(url, Path(folder))
        for number in range(writers):
            processes.start("write", number)
        for number in range(readers):
            processes.start("read", number)
        end = time.monotonic() + seconds
        next_writer = time.monotonic() + writer_kills * rng.uniform(0.5, 1.5)
        next_server = time.monotonic() + server_kills * rng.uniform(0.5, 1.0)
        kills: Counter[str] = Counter()
        while (now := time.monotonic()) < end:
            time.sleep(max(0.0, min(end, next_writer, next_server) - now))
            if time.monotonic() >= min(end, next_server) and next_server < end:
                server.kill()
                kills["server"] += 1
                time.sleep(0.5)
                server.start()
                next_server = time.monotonic() + server_kills * rng.uniform(0.5, 1.5)
            elif time.monotonic() >= next_writer:
                processes.restart("write", rng.randrange(writers))
                kills["writer"] += 1
                next_writer = time.monotonic() + writer_kills * rng.uniform(0.5, 1.5)
        processes.stop()
        with Corpus.open(url, ranker=None) as corpus:
            counts = _check_stored(corpus, processes.lines("write"))
        read = Counter(processes.lines("read"))
    return {
        "seconds": seconds,
        "writers": writers,
        "readers": readers,
        "writers killed": kills["writer"],
        "servers killed": kills["server"],
        "questions": read["asked"],
        "questions while the server was away": read["away"],
        "mixed": read["mixed"],
        **counts,
    }


class _Processes:
    """The writers and readers; each appends lines to a file of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        self._context = multiprocessing.get_context("spawn")
        self._stop = self._context.Event()
        self._running: dict[tuple[str, int], BaseProcess] = {}

    def start(self, kind: str, number: int) -> None:
        target = _write if kind == "write" else _read
        path = self._folder / f"{kind}-{number}"
        process = self._context.Process(
            target=target, args=(self._url, number, str(path), self._stop), daemon=True
        )
        process.start()
        self._running[kind, number] = process

    def restart(self, kind: str, number: int) -> None:
        """End a process as `kill -9` does, and start another with the same number."""
        self._running[kind, number].kill()
        self._running[kind, number].join()
        self.start(kind, number)

    def stop(self) -> None:
        self._stop.set()
        for process in self._running.values():
            process.join(60)
            if process.exitcode != 0:
                raise RuntimeError(f"A process ended with {process.exitcode}.")

    def lines(self, kind: str) -> list[str]:
        return [
            line
            for path in sorted(self._folder.glob(f"{kind}-*"))
            for line in path.read_text("utf-8").splitlines()
        ]


def _text(name: str, version: str) -> str:
    lines = 3 + int(version.partition("x")[2]) % 20
    return "\n\n".join(
        f"Lamp {name} of version {version} has line {line} of {lines}." for line in range(lines)
    )


@contextmanager
def _log(path: str) -> Iterator[Any]:
    out = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        yield lambda line: os.write(out, f"{line}\n".encode())
    finally:
        os.close(out)


def _write(url: str, writer: int, path: str, stop: Any) -> None:
    """Replace and remove documents; write down what is tried, and what was acknowledged."""
    rng = random.Random()
    number = int(time.time() * 1000)  # versions rise after a restart too
    own = [f"own{writer}n{at}" for at in range(OWN_DOCUMENTS)]
    shared = [f"shared{at}" for at in range(SHARED_DOCUMENTS)]
    with _log(path) as log:
        while not stop.is_set():
            try:
                with Corpus.open(url, ranker=None) as corpus:
                    while not stop.is_set():
                        number += 1
                        version = f"{writer}x{number}"
                        if rng.random() < 0.1:
                            name = rng.choice(own)
                            log(f"try {name} removed{version}")
                            corpus.remove_document(name)
                            log(f"ack {name} removed{version}")
                            continue
                        names = rng.sample(own, rng.randint(1, 4)) + rng.sample(shared, 1)
                        for name in names:
                            log(f"try {name} {version}")

                        def acknowledge(report: FileReport, version: str = version) -> None:
                            log(f"ack {report.document} {version}")

                        texts = {name: _text(name, version) for name in names}
                        corpus.add_texts(texts, on_file=acknowledge)
            except CorpusError:  # the server is away
                time.sleep(_RETRY_SECONDS)


def _read(url: str, reader: int, path: str, stop: Any) -> None:
    """Ask about random documents; every answer and its context must be of one version."""
    rng = random.Random(reader)
    with _log(path) as log:
        while not stop.is_set():
            try:
                with Corpus.open(url, ranker=None) as corpus:
                    while not stop.is_set():
                        name = rng.choice([f"own{rng.randrange(4)}n{rng.randrange(40)}", "shared1"])
                        found = corpus.ask(f"Which line has lamp {name}?", context=2)
                        whole = all(map(_is_whole, found.answers))
                        log("asked" if whole else "mixed")
            except CorpusError:
                log("away")
                time.sleep(_RETRY_SECONDS)


def _is_whole(answer: Any) -> bool:
    """Whether the sentences before and after are those of the same version of the document."""
    text = f"{answer.before} {answer.text} {answer.after}"
    found = _LINE.findall(text)
    own = _LINE.fullmatch(answer.text)
    if own is None or own[1] != answer.document:
        return False
    line, total = int(own[3]), int(own[4])
    lines = range(max(0, line - 2), min(total, line + 3))
    return found == [(own[1], own[2], str(each), own[4]) for each in lines]


def _check_stored(corpus: Corpus, lines: list[str]) -> dict[str, int]:
    """Compare what is stored with what the writers were told."""
    history: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        verb, name, version = line.split(" ")
        history.setdefault(name, []).append((verb, version))
    stored: dict[str, str] = {}
    damaged = 0
    for info in _documents(corpus):
        texts = [sentence.text for sentence in corpus.sentences(info) or []]
        found = _LINE.fullmatch(texts[0]) if texts else None
        if found is None or "\n\n".join(texts) != _text(info, found[2]):
            damaged += 1
        else:
            stored[info] = found[2]
    lost = sum(not _is_kept(stored.get(name), events) for name, events in history.items())
    report = corpus.verify()
    return {
        "acknowledged": sum(verb == "ack" for events in history.values() for verb, _ in events),
        "documents at the end": len(stored),
        "lost": lost,
        "damaged": damaged + len(report.damaged) + _index_differences(corpus),
    }


def _documents(corpus: Corpus) -> list[str]:
    return [info.name for info in corpus.documents(limit=100_000)]


def _is_kept(stored: str | None, events: list[tuple[str, str]]) -> bool:
    """Whether a document is as last acknowledged, or as a later attempt would have it."""
    writers = {version.removeprefix("removed").partition("x")[0] for _, version in events}
    is_shared = len(writers) > 1
    acknowledged = [at for at, (verb, _) in enumerate(events) if verb == "ack"]
    possible: list[str | None] = [] if acknowledged else [None]
    since = 0 if is_shared or not acknowledged else acknowledged[-1]
    for _, version in events[since:]:
        possible.append(None if version.startswith("removed") else version)
    return stored in possible


def _index_differences(corpus: Corpus) -> int:
    """Passages that only the documents or only the search index have."""
    store = corpus._store
    assert isinstance(store, PostgresStore)
    expected = {
        (document_id, first, last)
        for document_id in store.document_ids()
        for first, last, _ in split_passages(store.iter_sentences(document_id))
    }
    hits = store.postings.search({store.postings.stem("lamp"): 1.0}, 10**6)
    found = Counter((hit.document_id, hit.first, hit.last) for hit in hits)
    return len(expected.symmetric_difference(found)) + sum(n - 1 for n in found.values())
