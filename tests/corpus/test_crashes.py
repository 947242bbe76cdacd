"""A process killed at any point loses nothing it reported, and nothing has to be mended by hand."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest

from askline.corpus import Corpus, FileReport, ingest
from askline.corpus.passages import split_passages
from askline.corpus.retrieval import LexicalRetriever

from .conftest import storage_of, write

ROUNDS = 50
FILES = 40

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "forkserver" not in multiprocessing.get_all_start_methods(), reason="needs SIGKILL and fork"
    ),
]


def _index(folder: Path, pages: Path, log: Path) -> None:
    """Runs in the process that is killed: small batches, each report written down."""
    ingest._BATCH_FILES = 3
    out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def note(report: FileReport) -> None:
        os.write(out, f"{report.outcome} {report.document}\n".encode())

    os.write(out, b"start\n")
    with Corpus.open(folder) as corpus:
        corpus.add(pages, on_file=note)
    os.write(out, b"end\n")


def _agreement(corpus: Corpus) -> None:
    """Every document once, with its own sentences, and the search index with the same passages."""
    names = storage_of(corpus).store.names()
    assert len(names) == len(set(names))
    retriever = corpus.retriever()  # brings the search index up, as every question does
    assert isinstance(retriever, LexicalRetriever)
    expected: Counter[tuple[int, int, int]] = Counter()
    for name in names:
        number = corpus._store.document_id(name)
        assert number is not None
        rows = list(storage_of(corpus).store.iter_sentences(number))
        assert [row.ordinal for row in rows] == list(range(len(rows)))
        assert len({row.text.rpartition(" ")[2] for row in rows}) == 1  # all of one turn
        expected.update((number, first, last) for first, last, _ in split_passages(rows))
    hits = retriever._search.search({"lamp": 1.0}, 100_000)
    assert Counter((hit.document_id, hit.first, hit.last) for hit in hits) == expected
    assert corpus.status().searchable


def test_fifty_kills_lose_nothing(tmp_path: Path) -> None:
    folder, pages, log = tmp_path / "index", tmp_path / "pages", tmp_path / "log"
    rng = random.Random(7)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["askline.corpus", "askline.rankers", __name__])
    span = reported_before_kill = 0.0
    for turn in range(ROUNDS + 1):
        for number in rng.sample(range(FILES), FILES // 2) if turn else range(FILES):
            text = "".join(f"The lamp of line {line} in turn {turn}.\n\n" for line in range(40))
            write(pages / f"{number}.txt", text, age=3600 - 10 * turn)
        log.unlink(missing_ok=True)
        child = context.Process(target=_index, args=(folder, pages, log))
        child.start()
        while not log.exists():
            time.sleep(0.001)
        began = time.monotonic()
        child.join(rng.random() * span if turn else None)
        span = span or time.monotonic() - began  # the first one may end
        child.kill()
        child.join()
        lines = log.read_text("utf-8").splitlines()
        reported = [line.split(" ", 1)[1] for line in lines if " " in line]
        reported_before_kill += bool(reported) and "end" not in lines
        with Corpus.open(folder) as corpus:
            assert set(reported) <= set(storage_of(corpus).store.names())
            _check_newest(corpus, reported)
            if turn % 5 == 0:
                _agreement(corpus)
    with Corpus.open(folder) as corpus:
        corpus.add(pages)
        _agreement(corpus)
        _check_newest(corpus, storage_of(corpus).store.names())
        assert corpus.status().documents == FILES
    assert reported_before_kill >= ROUNDS / 10  # or the kills came too early or too late


def _check_newest(corpus: Corpus, reported: list[str]) -> None:
    """A file that was reported is in the store as it now stands on disk."""
    for name in reported:
        number = corpus._store.document_id(name)
        assert number is not None
        (first,) = corpus._store.sentences(number, 0, 0)
        path = corpus.source_path(name)
        assert path is not None
        assert Path(path).read_text("utf-8").startswith(first.text)


@pytest.mark.parametrize("point", ["open", "put", "passages", "follow", "stamp"])
def test_a_kill_at_a_chosen_point(tmp_path: Path, pages: Path, point: str) -> None:
    folder = tmp_path / "index"
    with Corpus.open(folder) as corpus:
        corpus.add_texts({"first": "The lamp burns."})
    context = multiprocessing.get_context("forkserver")
    child = context.Process(target=_die, args=(folder, pages, point))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    with Corpus.open(folder) as corpus:
        assert corpus.ask("Which lamp?").best is not None
        corpus.add(pages)
        assert corpus.status().documents == 4
        assert corpus.status().searchable


def _die(folder: Path, pages: Path, point: str) -> None:
    """Index, and be killed before the store commits, before tantivy writes, or within that."""
    module, _, name = {
        "open": "askline.corpus.storage:Store.open",
        "put": "askline.corpus.storage:Store._insert_rows",
        "follow": "askline.corpus.storage:sync_folder_index",
        "passages": "askline.corpus.storage:PassageWriter.add",
        "stamp": "askline.corpus.search_index:SearchIndex._commit",
    }[point].partition(":")
    *owners, name = name.split(".")
    owner: object = importlib.import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    setattr(owner, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    with Corpus.open(folder) as corpus:
        corpus.add(pages)


def test_a_new_index_cut_off_while_it_is_made_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "writer.lock").touch()
    sqlite3.connect(folder / "store.sqlite").close()
    (folder / "store.sqlite").touch()
    with Corpus.open(folder) as corpus:
        corpus.add_texts({"a": "The lamp burns."})
        assert corpus.ask("Which lamp?").best is not None
