"""Every shard is there once and whole, however its tasks end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from askline.corpus import Corpus, ShardInfo, build_shards, finish_shards, write_shard
from askline.corpus.shard_building import shard_name
from askline.errors import CorpusError, InputError

from .conftest import write


def _entries(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if each.name != "writer.lock")


def _names(folder: Path) -> list[str]:
    with Corpus.open(folder, ranker=None) as corpus:
        return [each.name for each in corpus.documents(limit=10_000)]


def test_a_repeated_task_reads_nothing(tmp_path: Path) -> None:
    def never() -> Iterator[tuple[str, str]]:
        raise AssertionError("read again")
        yield

    first = write_shard(tmp_path, 0, [("a", "One lamp.")], build="x")
    assert write_shard(tmp_path, 0, never(), build="x") == first
    assert _entries(tmp_path) == [first.name]
    other = write_shard(tmp_path, 0, [("b", "Two lamps.")], build="y")
    assert other.name != first.name
    finish_shards(tmp_path, [other])
    assert _names(tmp_path) == ["b"]
    assert _entries(tmp_path) == sorted([other.name, "shards.json"])


def test_an_older_corpus_is_read_until_the_build_is_finished(tmp_path: Path) -> None:
    finish_shards(tmp_path, [write_shard(tmp_path, 0, [("old", "One lamp.")], build="1")])
    new = write_shard(tmp_path, 0, [("new", "One lamp.")], build="2")
    assert _names(tmp_path) == ["old"]
    finish_shards(tmp_path, [new])
    assert _names(tmp_path) == ["new"]


def test_a_failed_task_leaves_nothing(tmp_path: Path) -> None:
    def fails() -> Iterator[tuple[str, str]]:
        yield "a", "One lamp."
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        write_shard(tmp_path, 0, fails())
    assert _entries(tmp_path) == []


def test_finishing_needs_every_shard(tmp_path: Path) -> None:
    info = write_shard(tmp_path, 0, [("a", "One lamp.")])
    lost = ShardInfo(shard_name(1, ""), "0" * 16, 1, 1, 1)
    with pytest.raises(CorpusError, match=lost.name):
        finish_shards(tmp_path, [info, lost])
    assert not (tmp_path / "shards.json").exists()


def _slow_texts(count: int, seconds: float) -> Iterator[tuple[str, str]]:
    for number in range(count):
        time.sleep(seconds)
        yield f"t{number}", f"The lamp of line {number}."


def _write_slowly(folder: Path, count: int, seconds: float) -> None:
    write_shard(folder, 3, _slow_texts(count, seconds), build="b")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_tasks_leave_one_shard(tmp_path: Path) -> None:
    """One attempt is killed, and two others run at the same time, as speculative tasks do."""
    context = multiprocessing.get_context("spawn")
    killed = context.Process(target=_write_slowly, args=(tmp_path, 2_000, 0.01))
    killed.start()
    while not list(tmp_path.glob(".building-*/store.sqlite")):
        time.sleep(0.02)
    time.sleep(0.3)
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()
    name = shard_name(3, "b")
    assert not (tmp_path / name).exists()
    assert list(tmp_path.glob(".building-*"))  # what the killed process left
    twins = [context.Process(target=_write_slowly, args=(tmp_path, 20, 0.01)) for _ in range(2)]
    for twin in twins:
        twin.start()
    for twin in twins:
        twin.join()
        assert twin.exitcode == 0
    info = ShardInfo.read(tmp_path / name)
    assert info is not None
    finish_shards(tmp_path, [info])
    assert _entries(tmp_path) == sorted([name, "shards.json"])
    assert _names(tmp_path) == sorted(f"t{number}" for number in range(20))


# Files


@pytest.fixture
def files(tmp_path: Path) -> Path:
    root = tmp_path / "files"
    for number in range(40):
        write(root / f"{number % 4}" / f"{number}.txt", f"The lamp of house {number} is lit.\n")
    write(root / "0" / "empty.png", b"\x89PNG\r\n\x1a\n")
    return root


@pytest.mark.slow
def test_files_have_the_ids_of_a_single_index(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = build_shards(files, out, shards=3, processes=2)
    with Corpus.in_memory(ranker=None) as single:
        expected = single.add(files)
        names = [each.name for each in single.documents(limit=1_000)]
    assert _names(out) == names
    assert (report.added, report.sentences) == (expected.added, expected.sentences)
    assert report.skipped == expected.skipped
    assert report.not_read == expected.not_read


@pytest.mark.slow
def test_files_that_want_one_id_are_in_one_shard(tmp_path: Path) -> None:
    for parent in "abcdefgh":
        write(tmp_path / parent / "docs" / "page.txt", f"The lamp of {parent} is lit.\n")
    folders = [tmp_path / parent / "docs" for parent in "abcdefgh"]
    build_shards(folders, tmp_path / "out", shards=4, processes=2)
    names = _names(tmp_path / "out")
    assert len(set(names)) == len(names) == 8


@pytest.mark.slow
def test_a_second_build_keeps_what_has_not_changed(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built: list[str] = []
    build_shards(files, out, shards=4, processes=2, on_shard=lambda info: built.append(info.name))
    assert sorted(built) == _entries(out)[:4]
    before = {each.name: each.stat().st_ino for each in out.glob("shard-*")}
    write(files / "1" / "1.txt", "Another lamp is lit.\n", age=10)
    report = build_shards(files, out, shards=4, processes=2)
    after = {each.name: each.stat().st_ino for each in out.glob("shard-*")}
    assert len(after) == 4
    assert sum(after.get(name) == inode for name, inode in before.items()) == 3
    assert report.added + report.unchanged == 40
    assert 0 < report.added < 40


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_killed_build_goes_on_where_it_was(tmp_path: Path) -> None:
    """First a process of a shard is killed, then the whole build; the next one completes it."""
    files, out = tmp_path / "files", tmp_path / "out"
    for number in range(300):
        text = "".join(f"The lamp of house {number} has line {line}.\n\n" for line in range(200))
        write(files / f"{number}.md", text)
    arguments = f"{str(files)!r}, {str(out)!r}, shards=6, processes=2"
    program = f"from askline.corpus import build_shards; build_shards({arguments})"
    build = subprocess.Popen([sys.executable, "-c", program])
    _wait_for(lambda: list(out.glob(".building-*/store.sqlite")))
    os.kill(_wait_for(lambda: _children(build.pid))[0], signal.SIGKILL)
    _wait_for(lambda: list(out.glob("shard-*")))
    children = _children(build.pid)
    build.kill()
    build.wait()
    _wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    assert not (out / "shards.json").exists()
    kept = {each.name: each.stat().st_ino for each in out.glob("shard-*")}
    assert kept
    report = build_shards(files, out, shards=6, processes=2)
    assert report.unchanged > 0
    assert {name: (out / name).stat().st_ino for name in kept} == kept
    assert _names(out) == sorted(f"{number}.md" for number in range(300))
    assert not list(out.glob(".building-*"))


def _children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _wait_for(condition: object, seconds: float = 60.0) -> list[int]:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)
    return found  # type: ignore[no-any-return]


def test_bad_arguments_are_errors(tmp_path: Path, files: Path) -> None:
    with pytest.raises(InputError, match="shards must be at least 1, got 0"):
        build_shards(files, tmp_path / "out", shards=0)
    with pytest.raises(InputError, match="Standard input"):
        build_shards("-", tmp_path / "out", shards=2)
    with pytest.raises(CorpusError, match="contains other files"):
        build_shards(files, files, shards=2)
    with Corpus.open(tmp_path / "plain", ranker=None):
        pass
    with pytest.raises(CorpusError, match="an index without shards"):
        build_shards(files, tmp_path / "plain", shards=2)
    with pytest.raises(CorpusError, match="an index without shards"):
        write_shard(tmp_path / "plain", 0, [("a", "One lamp.")])
