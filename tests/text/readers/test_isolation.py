from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path

import pytest

from askline.errors import DataError, InputError
from askline.text.readers import (
    FileContent,
    ReaderPool,
    ReadLimitError,
    ReadLimits,
    read_content,
)
from askline.text.readers.isolation import _ReplyUnpickler

from .samples import lines, make_docx, make_pdf, make_slow_pdf

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    path = tmp_path / "slow.pdf"
    path.write_bytes(make_slow_pdf())
    assert path.stat().st_size < 2_000
    return path


def plant(folder: Path) -> list[Path]:
    """One small file per format."""
    contents: dict[str, str | bytes] = {
        "a.txt": "One. Two.\n" * 20_000,
        "b.md": "# Title\n\nText *here*. More.\n",
        "c.html": "<title>T</title><table><tr><th>a</th><th>b</th></tr><tr><td>1<td>2</table>",
        "d.csv": "id,title,text\n1,One,Text of one.\n2,Two\n",
        "e.jsonl": '{"id": "x", "text": "A line."}\n{}\n',
        "f.pdf": make_pdf([lines("A line."), lines("Another.")], title="Book"),
        "g.docx": make_docx("<w:p><w:r><w:t>Text.</w:t></w:r></w:p>"),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return [folder / name for name in contents]


def children(process: int) -> list[int]:
    """The processes that a process has started and that have not been waited for."""
    found = [task.read_text().split() for task in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(number) for numbers in found for number in numbers]


def readers(process: int) -> list[int]:
    """The processes forked by those that a process has started, which have imported all modules."""
    found: list[int] = []
    for child in children(process):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += children(child)
    return found


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def ask_for(futures: list[Future[FileContent]]) -> None:
    """Wait for results in another thread, so that small files are not collected any longer."""

    def wait() -> None:
        for future in futures:
            with contextlib.suppress(Exception, CancelledError):
                future.result()

    threading.Thread(target=wait, daemon=True).start()


def _child_seconds() -> float:
    """Computing time of the processes that were started and have ended."""
    found = os.times()
    return found.children_user + found.children_system


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_child_reads_what_this_process_would_read(tmp_path: Path) -> None:
    paths = plant(tmp_path)
    with ReaderPool(processes=2) as pool:
        futures = [pool.submit(path) for path in paths]
        for path, future in zip(paths, futures, strict=True):
            document, sentences = future.result()
            here, expected = read_content(path)
            assert document == here
            assert list(sentences) == list(expected)
            assert len(sentences) > 0


def test_problems_of_the_content_are_data_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"no")
    with ReaderPool() as pool, pytest.raises(DataError, match="It is not a PDF file") as caught:
        pool.submit(path).result()
    assert not isinstance(caught.value, ReadLimitError)
    assert caught.value.problems[0].path == str(path)


def test_reading_that_takes_too_long_is_stopped_and_the_next_file_is_read(slow: Path) -> None:
    others = plant(slow.parent)
    with ReaderPool(ReadLimits(seconds=1), processes=1) as pool:
        first, second = pool.submit(slow), pool.submit(others[1])
        with pytest.raises(ReadLimitError, match="Reading took longer than 1 second. ") as caught:
            first.result(timeout=20)
        assert second.result().document.title == "Title"
    assert [problem.path for problem in caught.value.problems] == [str(slow)]


def test_small_files_that_were_sent_with_a_bad_one_are_read(slow: Path) -> None:
    names = [slow.parent / f"{number:02}.md" for number in range(20)]
    for name in names:
        name.write_text(f"# Title {name.stem}\n\nText.\n")
    with ReaderPool(ReadLimits(seconds=1), processes=1) as pool:
        futures = [pool.submit(path) for path in [*names[:5], slow, *names[5:]]]
        bad = futures.pop(5)
        titles = [future.result(timeout=20).document.title for future in futures]
        assert titles == [f"Title {name.stem}" for name in names]
        with pytest.raises(ReadLimitError, match="Reading took longer than 1 second. ") as caught:
            bad.result(timeout=20)
    assert [problem.path for problem in caught.value.problems] == [str(slow)]


@on_linux
def test_a_file_that_needs_too_much_memory_fails_alone_among_small_files(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.docx"
    bomb.write_bytes(make_docx(f"<w:p><w:r><w:t>{'a' * 9_000_000}</w:t></w:r></w:p>"))
    paths = [tmp_path / f"{number:02}.md" for number in range(6)]
    for path in paths:
        path.write_text("# Title\n\nText.\n")
    assert bomb.stat().st_size < 2**14
    with ReaderPool(ReadLimits(megabytes=15), processes=1) as pool:
        futures = [pool.submit(path) for path in [*paths[:3], bomb, *paths[3:]]]
        bad = futures.pop(3)
        assert {future.result().document.title for future in futures} == {"Title"}
        with pytest.raises(ReadLimitError, match="more than 15 MB of memory"):
            bad.result()


def test_close_cancels_what_is_not_read_yet(tmp_path: Path) -> None:
    path = plant(tmp_path)[1]
    pool = ReaderPool(processes=1)
    future = pool.submit(path)
    pool.close()
    assert future.cancelled()


@on_linux
def test_reading_that_needs_too_much_memory_is_stopped(tmp_path: Path) -> None:
    others = plant(tmp_path)
    large = tmp_path / "large.csv"
    large.write_text("text\n" + "word " * 10_000_000)
    with ReaderPool(ReadLimits(megabytes=50), processes=1) as pool:
        first, second = pool.submit(large), pool.submit(others[1])
        with pytest.raises(ReadLimitError, match="needs more than 50 MB of memory"):
            first.result()
        assert second.result().document.title == "Title"


@on_linux
def test_a_crash_of_the_reader_is_a_problem_of_its_file(slow: Path) -> None:
    others = plant(slow.parent)
    known = set(readers(os.getpid()))  # those of other tests
    with ReaderPool(processes=1) as pool:
        first = pool.submit(slow)
        ask_for([first])
        second = pool.submit(others[1])
        wait_for(lambda: set(readers(os.getpid())) - known)
        time.sleep(0.5)
        [child] = set(readers(os.getpid())) - known
        os.kill(child, signal.SIGSEGV)
        with pytest.raises(ReadLimitError, match=r"ended the reader process \(SIGSEGV\)"):
            first.result()
        assert second.result().document.title == "Title"


@on_linux
def test_a_tiny_pdf_of_six_million_operators_fails_alone(tmp_path: Path) -> None:
    others = plant(tmp_path)
    slow = tmp_path / "slow.pdf"
    slow.write_bytes(make_slow_pdf(6_000_000))
    with ReaderPool(ReadLimits(seconds=20), processes=1) as pool:
        first, second = pool.submit(slow), pool.submit(others[1])
        with pytest.raises(ReadLimitError, match="more than 1,024 MB of memory|longer than 20"):
            first.result()
        assert second.result().document.title == "Title"


@on_linux
def test_files_are_read_when_the_process_that_forks_the_readers_is_killed(slow: Path) -> None:
    others = plant(slow.parent)
    known = set(children(os.getpid()))  # those of other tests
    with ReaderPool(ReadLimits(seconds=1), processes=1) as pool:
        first = pool.submit(slow)
        ask_for([first])
        wait_for(lambda: set(children(os.getpid())) - known)
        [server] = set(children(os.getpid())) - known
        wait_for(lambda: children(server))
        os.kill(server, signal.SIGKILL)
        with pytest.raises(ReadLimitError, match="Reading took longer than 1 second. "):
            first.result(timeout=20)
        assert pool.submit(others[1]).result().document.title == "Title"
        assert pool.submit(others[5]).result().document.title == "Book"


@on_linux
def test_a_process_per_file_is_cheap_to_replace(tmp_path: Path) -> None:
    """Files that end their reader, in a folder with many of them, do not each cost a start."""
    path = tmp_path / "large.csv"
    path.write_text("text\n" + "word " * 2_000_000)
    before = _child_seconds()
    with ReaderPool(ReadLimits(megabytes=5), processes=1) as pool:
        for future in [pool.submit(path) for _ in range(40)]:
            with pytest.raises(ReadLimitError, match="needs more than 5 MB of memory"):
                future.result()
    assert _child_seconds() - before < 40 * 0.05


@on_linux
def test_close_ends_children_that_are_reading(slow: Path) -> None:
    known = set(children(os.getpid()))  # those of other tests
    pool = ReaderPool(processes=2)
    futures = [pool.submit(slow) for _ in range(40)]
    others = set(readers(os.getpid()))
    wait_for(lambda: len(set(readers(os.getpid())) - others) == 2)
    started = set(readers(os.getpid())) - others
    pool.close()
    assert set(children(os.getpid())) <= known
    assert not any(map(is_running, started))
    assert all(future.done() for future in futures)
    with pytest.raises(RuntimeError, match="The pool is closed"):
        pool.submit(slow)


PROGRAM = """
import sys
from askline import Corpus
Corpus.in_memory(ranker=None).add(sys.argv[1], read_seconds=5)
"""


@on_linux
@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_children_end_with_their_parent(slow: Path, how: signal.Signals) -> None:
    """A script needs no `if __name__ == "__main__"` either."""
    script = slow.with_name("script.py")
    script.write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(script), str(slow)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as parent:
        wait_for(lambda: readers(parent.pid))
        time.sleep(0.5)
        started = children(parent.pid) + readers(parent.pid)
        assert len(started) == 2
        os.kill(parent.pid, how)
        parent.wait(timeout=20)
    assert parent.returncode not in (0, None)
    wait_for(lambda: not any(map(is_running, started)), seconds=30)


def test_a_child_starts_without_heavy_modules() -> None:
    heavy = ["numpy", "onnxruntime", "tantivy", "sqlite3", "pypdfium2", "click"]
    program = (
        "import askline.text.readers.isolation, sys\n"
        f"print(*(name for name in {heavy} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == []


def test_a_reply_can_contain_nothing_but_a_document() -> None:
    class Attack:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("true",)

    with pytest.raises(pickle.UnpicklingError, match="system is not part of a reply"):
        _ReplyUnpickler(io.BytesIO(pickle.dumps(Attack()))).load()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"seconds": 0}, "`read_seconds` must be a positive number, got 0"),
        ({"seconds": float("nan")}, "`read_seconds` must be a positive number, got nan"),
        ({"megabytes": 0}, "`read_megabytes` must be a positive integer, got 0"),
    ],
)
def test_limits_must_be_positive(limits: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReadLimits(**limits)  # type: ignore[arg-type]
