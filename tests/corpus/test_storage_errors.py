"""Full disks, folders that may not be written, damaged files, two writers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from askline.corpus import Corpus, storage
from askline.corpus.lock import BusyError, writer_lock
from askline.errors import CorpusError

from .conftest import storage_of, write

QUESTION = "Why does dough rise?"


@pytest.fixture
def index(tmp_path: Path, pages: Path) -> Path:
    with Corpus.open(tmp_path / "index") as corpus:
        corpus.add(pages)
    return tmp_path / "index"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if not _mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)):
        pytest.skip("a file system can be mounted by root alone")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def _mount(*arguments: str) -> bool:
    if not hasattr(os, "geteuid") or os.geteuid() or not shutil.which("mount"):
        return False
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


@pytest.mark.slow
def test_a_full_disk_is_reported_and_stored_documents_stay(
    small_disk: Path, tmp_path: Path
) -> None:
    for number in range(40):
        text = "".join(f"Lamp {number} of line {line} burns.\n\n" for line in range(2_000))
        write(tmp_path / "many" / f"{number}.txt", text)
    reported: list[str] = []
    with Corpus.open(small_disk / "index") as corpus:
        corpus.add_texts({"first": "The first lamp burns."})
        with pytest.raises(CorpusError, match=r"full|cannot be written"):
            corpus.add(tmp_path / "many", on_file=lambda report: reported.append(report.document))
    with Corpus.open(small_disk / "index") as corpus:
        assert {"first", *reported} <= set(storage_of(corpus).store.names())
        assert corpus.ask("Which is the first lamp?").best is not None


def _fill_disk(disk: Path, *, free: int) -> None:
    """Leave `free` bytes of a file system."""
    rest = os.statvfs(disk)
    with (disk / "fill").open("ab") as stream:
        stream.write(bytes(rest.f_bavail * rest.f_frsize - free))


@pytest.mark.parametrize("free", [0, 4096, 16_384])
def test_a_full_disk_is_reported_with_the_file_on_it(small_disk: Path, free: int) -> None:
    texts = {str(number): f"Lamp {number} burns. " * 50 for number in range(200)}
    with Corpus.open(small_disk / "index") as corpus:
        corpus.add({"first": "The first lamp burns."})
        _fill_disk(small_disk, free=free)
        with pytest.raises(CorpusError, match=rf"{small_disk}/index/.*(full|cannot be)"):
            corpus.add(texts)
    _fill_disk(small_disk, free=0)
    with pytest.raises(CorpusError, match=f"{small_disk}/other/.*(full|cannot be)"):
        Corpus.open(small_disk / "other")


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
from askline.corpus import Corpus
from askline.errors import CorpusError
try:
    Corpus.open(sys.argv[1]).add(sys.argv[2])
except CorpusError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_file_size_limit_is_reported_and_the_index_stays_usable(
    index: Path, tmp_path: Path
) -> None:
    text = "".join(f"The lamp of line {line} burns.\n\n" for line in range(20_000))
    write(tmp_path / "many" / "lamps.txt", text)
    command = [sys.executable, "-c", LIMITED, str(index), str(tmp_path / "many")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "store.sqlite: " in done.stdout
    assert "What was reported as indexed is still there." in done.stdout
    with Corpus.open(index) as corpus:
        assert corpus.status().documents == 3
        assert corpus.add(tmp_path / "many").added == 1
        assert corpus.ask("Which lamp burns?").best is not None


@pytest.fixture
def read_only(index: Path) -> Iterator[Path]:
    """The index where nothing may be written: by mounting, for root may write everywhere."""
    place = index.with_name("read-only")
    place.mkdir()
    if not _mount("--bind", str(index), str(place)):
        pytest.skip("a folder can be mounted by root alone")
    if not _mount("-o", "remount,ro,bind", str(place)):
        subprocess.run(["umount", str(place)], check=True)
        pytest.skip("a folder cannot be mounted read-only here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_read_only_index_answers_and_refuses_to_be_changed(read_only: Path, pages: Path) -> None:
    with Corpus.open(read_only) as corpus:
        assert corpus.ask(QUESTION).best is not None
        with pytest.raises(CorpusError, match="read-only cannot be written: Read-only"):
            corpus.add(pages)


@pytest.mark.slow
def test_a_read_only_index_without_its_search_part_answers(index: Path, read_only: Path) -> None:
    shutil.rmtree(index / "search")
    with Corpus.open(read_only) as corpus:
        assert corpus.ask(QUESTION).best is not None


@pytest.mark.slow
def test_a_second_writer_is_told_the_process_of_the_first(
    index: Path, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_LOCK_TIMEOUT_SECONDS", 0.0)
    with writer_lock(index), Corpus.open(index) as corpus:
        with pytest.raises(BusyError, match=f"being written by process {os.getpid()}"):
            corpus.add(pages)
        assert corpus.ask(QUESTION).best is not None


def test_a_damaged_store_is_reported(index: Path) -> None:
    store = index / "store.sqlite"
    data = bytearray(store.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    store.write_bytes(data)
    with (
        pytest.raises(CorpusError, match=r"store\.sqlite is damaged: .*--verify"),
        Corpus.open(index) as corpus,
    ):
        corpus.ask(QUESTION)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)


def _empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def _cut(folder: Path) -> None:
    for file in folder.glob("*.idx"):
        file.write_bytes(file.read_bytes()[:20])


def _garble(folder: Path) -> None:
    """The footer stays, so that opening goes well and only searching meets the damage."""
    for file in (*folder.glob("*.term"), *folder.glob("*.fast"), *folder.glob("*.idx")):
        data = bytearray(file.read_bytes())
        data[: len(data) - 150] = b"\xff" * (len(data) - 150)
        file.write_bytes(data)


def _no_meta(folder: Path) -> None:
    (folder / "meta.json").unlink()


def _file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("no folder", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_remove, _empty, _cut, _garble, _no_meta, _file])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_damaged_search_index_is_rebuilt(index: Path, damage: object) -> None:
    assert callable(damage)
    damage(index / "search")
    with Corpus.open(index) as corpus:
        assert corpus.ask(QUESTION).best is not None
        assert corpus.status().searchable


@pytest.mark.slow
def test_a_search_index_that_cannot_be_updated_is_rebuilt(index: Path, pages: Path) -> None:
    """What a kill at the wrong moment once left behind: a file that is to be written next."""
    with Corpus.open(index) as corpus:
        (segment,) = (index / "search").glob("*.idx")
        for stamp in range(100):
            (index / "search" / f"{segment.stem}.{stamp}.del").touch()
        write(pages / "bread.txt", "Rye bread keeps for a week.", age=30)
        corpus.add(pages)
        assert corpus.ask("How long does rye keep?").best is not None
        assert corpus.ask(QUESTION).best is None
        assert corpus.status().searchable
