"""
Read files in child processes, within limits of time and memory.

A damaged or hostile file can make a reader run for hours, use all memory, or crash the process.
`ReaderPool` reads each file in one of a few child processes that are reused. A child that exceeds a
limit or crashes is killed and replaced, and only its file fails, with a `ReadLimitError`. Where the
system allows it, the children are forked from one process that has imported the readers
(`fork_server`), so that a new one costs two milliseconds.

A child sends its results as a pickle, which could run code in this process if a crafted file took
control of the child. It is therefore loaded by an unpickler that creates the classes of a read file
and nothing else.
"""

from __future__ import annotations

import contextlib
import gc
import io
import math
import os
import pickle
import queue
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any, ClassVar, NamedTuple

from ...errors import DataError, MissingExtraError, Problem
from .document import (
    Blocks,
    DocumentPart,
    ParsedDocument,
    SentenceContext,
    Sentences,
    split_document,
)
from .file_kinds import file_kind, is_gzip, sniff_file
from .files import read_document
from .fork_server import ForkedProcess, ForkServer, is_supported, serve_forks
from .limits import DEFAULT_LIMITS, MAX_FILE_BYTES, ReadLimits
from .offsets import Segments
from .prepared import PassageColumns, PreparedFile, prepare_file
from .sentence_blocks import RowRecord, SentenceBlocks

__all__ = [
    "FileContent",
    "ReadLimitError",
    "ReaderPool",
    "read_content",
]

_MAX_PROCESSES = 4
_START_SECONDS = 60.0  # to start Python and import this module, also on a busy machine
_WATCH_SECONDS = 0.05
_ALARM_GRACE_SECONDS = 5  # after which a child whose parent has been killed ends itself
_SMALL_TEXT_BYTES = 2**16  # read in this process
_OWN_TEXT_BYTES = 2**18  # of all files that are read in this process
# Small files are sent to a process together, because a message takes longer than reading one.
_BATCH_FILE_BYTES = 2**14
_BATCH_BYTES = 2**17
_BATCH_FILES = 16  # of the first ones, so that a few files are read by several processes
_MAX_BATCH_FILES = 64
_BATCH_SECONDS = 2.0
_HEADER = struct.Struct("<Q")
_READY = b"ready"
_MEGABYTE = 2**20


class ReadLimitError(DataError):
    """Reading exceeded a limit or ended the child process; with other limits it may succeed."""


class FileContent(NamedTuple):
    """A document, and its sentences as `iter_sentences` returns them."""

    document: ParsedDocument
    sentences: Sentences


def read_content(
    path: str | os.PathLike[str],
    *,
    max_bytes: int = MAX_FILE_BYTES,
    columns: Sequence[str] = (),
) -> FileContent:
    """Read and split a file in this process; raises DataError like `read_document`."""
    document = read_document(path, max_bytes=max_bytes, columns=columns)
    try:
        return FileContent(document, split_document(document))
    except Exception as error:  # see read_document
        message = f"Its text cannot be split into sentences ({type(error).__name__}: {error})."
        raise DataError([Problem(document.path, 0, message)]) from error


class ReaderPool:
    """
    Child processes that read files, started when needed and ended by `close`.

    Every process is killed on `close`, also when it is still reading. Processes are new Python
    processes or forks of one, so a program that uses the pool needs no `if __name__ == "__main__"`.
    """

    def __init__(
        self,
        limits: ReadLimits = DEFAULT_LIMITS,
        *,
        processes: int | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        self.limits = limits
        self.columns = tuple(columns)
        """The columns with the text, for files that are tables."""
        # One more than cores, because a process waits while its result is taken.
        self.processes = processes or min(_MAX_PROCESSES, _usable_cores() + 1)
        self._idle: queue.LifoQueue[_ReaderProcess] = queue.LifoQueue()
        self._all: set[_ReaderProcess] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._threads: ThreadPoolExecutor | None = None
        self._server: ForkServer | None = None
        self._batch: list[_Task] = []
        self._batch_bytes = 0
        self._batch_files = _BATCH_FILES
        self._bytes_read_here = 0
        self._has_process = False  # whether one was ever ready
        self.crashed_batches = 0
        """How often a process that read several files crashed. Each of them was read again."""

    def submit(self, path: str | os.PathLike[str]) -> Future[FileContent]:
        """Like `submit_prepared`, but with the document and its sentences as they were read."""
        return self._submit(path, None, is_prepared=False)

    def submit_prepared(
        self, path: str | os.PathLike[str], state: os.stat_result | None = None
    ) -> Future[PreparedFile]:
        """
        Read a file as an index stores it; `result` raises DataError if it cannot be read.

        `state` is that of the file, if it is known.

        It raises OSError if a reader process cannot be started. Problems name the path as given;
        the file is opened by its absolute path. The first small files of plain text are read at
        once in this process, until a reader process is ready: their reader takes linear time, and
        for a few notes the start of a process would take longer than reading them. Other small
        files are collected: the reading of one starts when there are enough of them, or when one of
        their results is asked for.
        """
        return self._submit(path, state, is_prepared=True)

    def _submit(
        self, path: str | os.PathLike[str], state: os.stat_result | None, *, is_prepared: bool
    ) -> Future[Any]:
        if self._closed.is_set():
            raise RuntimeError("The pool is closed.")
        size = _regular_size(path, state)
        if (
            size is not None
            and size <= _SMALL_TEXT_BYTES
            and self._bytes_read_here <= _OWN_TEXT_BYTES
            and not self._has_process
            and _is_text(path)
        ):
            self._bytes_read_here += size
            return _read_now(path, self.limits.max_bytes, is_prepared)
        if self._threads is None:
            if is_supported():
                self._server = ForkServer(self._program("run_fork_server"))
            self._threads = ThreadPoolExecutor(self.processes, "askline-reader")
            threading.Thread(target=self._watch, name="askline-reader-watch", daemon=True).start()
        name = os.fspath(path)
        absolute = name if os.path.isabs(name) else os.path.abspath(os.path.expanduser(name))
        task = _Task(_Job(name, absolute, is_prepared), _ContentFuture(self._send_batch))
        if size is None or size > _BATCH_FILE_BYTES:
            self._threads.submit(self._read, [task])
            return task.future
        with self._lock:
            self._batch.append(task)
            self._batch_bytes += size
            is_full = len(self._batch) >= self._batch_files or self._batch_bytes >= _BATCH_BYTES
        if is_full:
            self._batch_files = min(self._batch_files + 1, _MAX_BATCH_FILES)
            self._send_batch()
        return task.future

    def close(self) -> None:
        """Kill the processes and wait until they have ended. What is not read yet is cancelled."""
        self._closed.set()
        with self._lock:
            processes = list(self._all)
            batch, self._batch = self._batch, []
        for task in batch:
            task.future.cancel()
        for process in processes:
            process.kill()
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
        for process in processes:
            process.end()
        if self._server is not None:
            self._server.close()

    def __enter__(self) -> ReaderPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send_batch(self) -> None:
        """Start to read the files that were collected."""
        with self._lock:
            batch, self._batch, self._batch_bytes = self._batch, [], 0
        if batch and self._threads is not None:
            self._threads.submit(self._read, batch)

    def _read(self, tasks: Sequence[_Task]) -> None:
        """
        Read files in one process and set their results.

        If one of several files ends the process or takes long, those without a result are read
        again, each alone, so that it is known which of them did it.
        """
        tasks = [task for task in tasks if task.future.set_running_or_notify_cancel()]
        try:
            done = self._try_to_read(tasks)
            for task in tasks[done:]:
                self._try_to_read([task])
        except BaseException as error:
            for task in tasks:
                if not task.future.done():
                    task.future.set_exception(error)

    def _try_to_read(self, tasks: Sequence[_Task]) -> int:
        """Return how many of the files, from the first on, have their result."""
        if self._closed.is_set():
            raise CancelledError
        try:
            process = self._idle.get_nowait()
        except queue.Empty:
            process = self._start()
        is_alone = len(tasks) == 1
        seconds = self.limits.seconds if is_alone else min(self.limits.seconds, _BATCH_SECONDS)
        try:
            replies = process.read([task.job for task in tasks], seconds)
        except _ReaderEndedError as error:
            self._discard(process)
            if not is_alone:
                self.crashed_batches += error.is_crash
                return 0
            task = tasks[0]
            task.future.set_exception(self._limit_error(task.job.name, str(error)))
            return 1
        if replies[-1].is_last:
            self._discard(process)
            if not is_alone:
                replies.pop()
        else:
            self._idle.put(process)
        for task, reply in zip(tasks, replies, strict=False):
            self._set_result(task, reply)
        return len(replies)

    def _set_result(self, task: _Task, reply: _Reply) -> None:
        if reply.out_of_memory:
            reason = f"Reading it needs more than {self.limits.megabytes:,} MB of memory."
            task.future.set_exception(self._limit_error(task.job.name, reason))
        elif reply.missing_extra is not None:
            task.future.set_exception(MissingExtraError(*reply.missing_extra))
        elif reply.content is None:
            task.future.set_exception(DataError(reply.problems))
        else:
            task.future.set_result(reply.content)

    def _start(self) -> _ReaderProcess:
        process = _ReaderProcess(self.limits, self._new_process())
        with self._lock:
            self._all.add(process)
        if self._closed.is_set():
            process.kill()
        try:
            process.wait_until_ready()
        except _ReaderEndedError as error:
            self._discard(process)
            raise OSError("the reader process did not start") from error
        self._has_process = True
        return process

    def _new_process(self) -> subprocess.Popen[bytes] | ForkedProcess:
        if self._server is not None:
            with contextlib.suppress(OSError):  # the server was killed, for example
                return self._server.fork()
        return subprocess.Popen(
            [sys.executable, "-c", self._program("run_reader")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _program(self, function: str) -> str:
        """Python code that calls a function of this module with the limits."""
        limits = self.limits
        # The child gets this process's module search path, which a script may have changed.
        return (
            f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import {function}; "
            f"{function}({limits.seconds!r}, {limits.megabytes!r}, {limits.max_bytes!r}, "
            f"{self.columns!r})"
        )

    def _discard(self, process: _ReaderProcess) -> None:
        process.kill()
        process.end()
        with self._lock:
            self._all.discard(process)

    @staticmethod
    def _limit_error(name: str, reason: str) -> ReadLimitError:
        advice = "Leave it out, or raise the limits (--read-seconds, --read-megabytes)."
        return ReadLimitError([Problem(name, 0, f"{reason} {advice}", "limit")])

    def _watch(self) -> None:
        """Kill processes that exceed the time; the thread that waits for one then continues."""
        while not self._closed.wait(_WATCH_SECONDS):
            now = time.monotonic()
            with self._lock:
                processes = list(self._all)
            for process in processes:
                process.kill_if_overdue(now)


def _regular_size(path: str | os.PathLike[str], state: os.stat_result | None) -> int | None:
    """The bytes of a regular file; None for anything else."""
    try:
        state = state or os.stat(path)
    except OSError:
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None


def _is_text(path: str | os.PathLike[str]) -> bool:
    """Whether a file is plain text by its name or, with an unknown suffix, by its content."""
    if is_gzip(path):
        return False  # it may be large once it is decompressed
    kind = file_kind(path)
    if kind is None:
        try:
            found = sniff_file(path)
        except OSError:
            return True  # the reader reports it
        return found is None or found.kind == "text"
    return kind == "text"


def _read_now(path: str | os.PathLike[str], max_bytes: int, is_prepared: bool) -> Future[Any]:
    future: Future[FileContent | PreparedFile] = Future()
    try:
        content = read_content(path, max_bytes=max_bytes)
        future.set_result(prepare_file(*content) if is_prepared else content)
    except DataError as error:
        future.set_exception(error)
    return future


class _ContentFuture(Future[Any]):
    """A future whose reading starts at the latest when its result is asked for."""

    def __init__(self, start: Callable[[], None]) -> None:
        super().__init__()
        self._start_reading = start

    def result(self, timeout: float | None = None) -> Any:
        if not self.running() and not self.done():
            self._start_reading()
        return super().result(timeout)


class _Job(NamedTuple):
    name: str
    path: str
    is_prepared: bool


class _Task(NamedTuple):
    job: _Job
    future: Future[Any]


@dataclass(frozen=True, slots=True)
class _Reply:
    content: FileContent | PreparedFile | None = None
    problems: tuple[Problem, ...] = ()
    out_of_memory: bool = False
    missing_extra: tuple[str, str] | None = None
    is_last: bool = False
    """Whether the child ends itself, because its memory may be in a bad state."""


class _ReaderEndedError(Exception):
    """The child was killed or crashed; the message says why."""

    def __init__(self, message: str, *, is_crash: bool = True) -> None:
        super().__init__(message)
        self.is_crash = is_crash


class _ReaderProcess:
    """One child process, used by one thread at a time."""

    def __init__(
        self, limits: ReadLimits, process: subprocess.Popen[bytes] | ForkedProcess
    ) -> None:
        self._limits = limits
        self._deadline: float | None = None
        self._overdue = False
        # A process that is killed as it answers must not be blamed on the file that comes next.
        self._lock = threading.Lock()
        self._process = process

    def wait_until_ready(self) -> None:
        """Wait until the child has imported its modules, which does not count as reading."""
        with self._time_limit(_START_SECONDS):
            assert self._process.stdout is not None
            if self._process.stdout.read(len(_READY)) != _READY:
                raise self._ended()

    def read(self, jobs: Sequence[_Job], seconds: float) -> list[_Reply]:
        """
        Read files; raises _ReaderEndedError if the child did not survive it.

        There are fewer replies than files if the child ended itself, which its last reply says.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._time_limit(seconds):
            try:
                _send(self._process.stdin, pickle.dumps([tuple(job) for job in jobs]))
                message = _receive(self._process.stdout, self._limits.megabytes * 4 * _MEGABYTE)
            except (OSError, EOFError, ValueError) as error:
                raise self._ended() from error
        try:
            replies = _ReplyUnpickler(io.BytesIO(message)).load()
        except Exception as error:
            raise _ReaderEndedError("The reader process sent a damaged result.") from error
        if not _is_answer(replies, len(jobs)):
            raise _ReaderEndedError("The reader process sent a damaged result.")
        return list(replies)

    def kill_if_overdue(self, now: float) -> None:
        with self._lock:
            if self._deadline is not None and now > self._deadline:
                self._overdue = True
                self.kill()

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Wait for the end of a killed process and close its pipes."""
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    @contextlib.contextmanager
    def _time_limit(self, seconds: float) -> Iterator[None]:
        """Raises _ReaderEndedError if the process was killed for it, even if it has answered."""
        self._deadline = time.monotonic() + seconds
        try:
            yield
        finally:
            with self._lock:
                self._deadline = None
        if self._overdue:
            raise self._ended()

    def _ended(self) -> _ReaderEndedError:
        if self._overdue:
            limit = f"{self._limits.seconds:g} second{'s' * (self._limits.seconds != 1)}"
            return _ReaderEndedError(f"Reading took longer than {limit}.", is_crash=False)
        self._process.kill()
        code = self._process.wait()
        try:
            reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        except ValueError:
            reason = f"signal {-code}"
        return _ReaderEndedError(
            f"Reading it ended the reader process ({reason}). It may be damaged, or need more than "
            f"{self._limits.megabytes:,} MB of memory."
        )


def _is_answer(replies: object, expected: int) -> bool:
    """Whether there is a reply for each file, or for the first files if the last one says so."""
    if not isinstance(replies, list) or not all(isinstance(each, _Reply) for each in replies):
        return False
    is_cut = bool(replies) and replies[-1].is_last
    return 1 <= len(replies) <= expected if is_cut else len(replies) == expected


class _ReplyUnpickler(pickle.Unpickler):
    """Creates the classes of a reply and refuses all others."""

    _ALLOWED: ClassVar[dict[tuple[str, str], Any]] = {
        (cls.__module__, cls.__qualname__): cls
        for cls in (
            _Reply,
            FileContent,
            ParsedDocument,
            Sentences,
            SentenceContext,
            Blocks,
            Segments,
            DocumentPart,
            Problem,
            PreparedFile,
            RowRecord,
            PassageColumns,
            SentenceBlocks,
        )
    }

    def find_class(self, module: str, name: str) -> Any:
        found = self._ALLOWED.get((module, name))
        if found is not None:
            return found
        if (module, name) in (("array", "_array_reconstructor"), ("array", "array")):
            return super().find_class(module, name)
        if (module, name) == ("builtins", "bytearray"):
            return bytearray
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a reply.")


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_HEADER.pack(len(message)))
    stream.write(message)
    stream.flush()


def _receive(stream: IO[bytes], max_bytes: int) -> bytes:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    (length,) = _HEADER.unpack(header)
    if length > max_bytes:
        raise ValueError(f"{length:,} bytes")
    message = stream.read(length)
    if len(message) < length:
        raise EOFError
    return message


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


# The child processes


def run_fork_server(
    seconds: float, megabytes: int, max_bytes: int, columns: tuple[str, ...]
) -> None:
    """Fork reader processes until the parent has ended."""
    serve_forks(partial(run_reader, seconds, megabytes, max_bytes, columns))


def run_reader(
    seconds: float, megabytes: int, max_bytes: int, columns: tuple[str, ...] = ()
) -> None:
    """Read the files that the parent names on standard input until it closes that."""
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the results
    requests = sys.stdin.buffer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends the child
    _limit_memory(megabytes)
    # What a file needs is freed by reference counts; frequent collections only look at it.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    results.write(_READY)
    results.flush()
    while True:
        try:
            jobs = pickle.loads(_receive(requests, 2**20))
        except EOFError:
            return
        replies: list[_Reply] = []
        with _alarm(seconds):
            for job in jobs:
                replies.append(_read_for_parent(_Job(*job), max_bytes, columns))
                if replies[-1].is_last:
                    break
        try:
            message = pickle.dumps(replies, protocol=5)
        except MemoryError:
            replies = [_Reply(out_of_memory=True, is_last=True)]
            message = pickle.dumps(replies, protocol=5)
        _send(results, message)
        if replies[-1].is_last:
            return


def _read_for_parent(job: _Job, max_bytes: int, columns: tuple[str, ...]) -> _Reply:
    name = job.name
    try:
        document, sentences = read_content(job.path, max_bytes=max_bytes, columns=columns)
        if document.problems or not job.is_prepared:  # what is prepared has no path
            document = replace(document, path=name, problems=_rename(document.problems, name))
        if job.is_prepared:
            return _Reply(prepare_file(document, sentences))
        return _Reply(FileContent(document, sentences))
    except DataError as error:
        is_memory = isinstance(error.__cause__, MemoryError)
        return _Reply(None, _rename(error.problems, name), is_memory, is_last=is_memory)
    except MissingExtraError as error:
        return _Reply(missing_extra=error.__reduce__()[1])
    except MemoryError:
        return _Reply(out_of_memory=True, is_last=True)


def _rename(problems: Iterable[Problem], name: str) -> tuple[Problem, ...]:
    return tuple(replace(each, path=name) for each in problems)


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """End this process if reading takes too long and the parent, which should kill it, is gone."""
    if hasattr(signal, "alarm"):
        signal.alarm(math.ceil(seconds) + _ALARM_GRACE_SECONDS)
    yield
    if hasattr(signal, "alarm"):
        signal.alarm(0)


def _limit_memory(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = _address_space() + megabytes * _MEGABYTE
    with contextlib.suppress(ValueError, OSError):  # refused by the system, as on macOS
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _address_space() -> int:
    """The bytes of address space in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
