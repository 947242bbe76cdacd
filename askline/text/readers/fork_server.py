"""
Start processes by forking one that has imported everything they need.

A new Python process takes about 80 ms of computing time to import the readers. A process that is
forked from one that has imported them takes two. The server is a process of its own, without
threads and without open files of the program: to fork the program itself, which may have threads,
is not safe.

`ForkServer` is the program's side and `serve_forks` that of the server. Linux only; elsewhere
`is_supported` is false, because the libraries of macOS do not allow a fork, and Windows has none.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO

__all__ = [
    "ForkServer",
    "ForkedProcess",
    "is_supported",
    "serve_forks",
]

_FORK = 0
_END = 1
_REQUEST = struct.Struct("<Bq")
_REPLY = struct.Struct("<q")
_RESULT_BYTES = 2**20  # of a pipe, so that a process need not wait until its result is taken
_START_SECONDS = 60.0  # to start Python and import the readers, also on a busy machine


def is_supported() -> bool:
    """Whether this system can fork safely and send open files between processes."""
    return sys.platform.startswith("linux") and hasattr(socket, "send_fds")


class ForkServer:
    """
    A process that forks others on request. Several threads may use it.

    `program` is Python code that calls `serve_forks`. A method raises OSError if the server cannot
    be started or has ended.
    """

    def __init__(self, program: str) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(_START_SECONDS)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fork(self) -> ForkedProcess:
        """A new process, with pipes as its standard input and output."""
        jobs, to_child = os.pipe()
        from_child, results = os.pipe()
        import fcntl  # not on Windows

        with contextlib.suppress(OSError):  # the user has too many pipes
            fcntl.fcntl(results, fcntl.F_SETPIPE_SZ, _RESULT_BYTES)
        try:
            number = self._request(_FORK, files=(jobs, results))
            if number < 0:
                raise OSError(-number, os.strerror(-number))
        except OSError:
            os.close(to_child)
            os.close(from_child)
            raise
        finally:
            os.close(jobs)
            os.close(results)
        return ForkedProcess(self, number, os.fdopen(to_child, "wb"), os.fdopen(from_child, "rb"))

    def end(self, process: int) -> int:
        """Kill a forked process and return its exit code, negative for a signal."""
        return self._request(_END, process)

    def close(self) -> None:
        """End the server. Processes that it forked should have ended before."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _request(self, what: int, process: int = 0, files: tuple[int, ...] = ()) -> int:
        with self._lock:
            try:
                socket.send_fds(self._socket, [_REQUEST.pack(what, process)], files)
                answer = self._socket.recv(_REPLY.size, socket.MSG_WAITALL)
                if len(answer) < _REPLY.size:
                    raise ConnectionError("the process that starts readers has ended")
            except OSError:
                self._socket.close()  # a late reply must not be taken for that of another request
                raise
        (number,) = _REPLY.unpack(answer)
        return int(number)


class ForkedProcess:
    """A process that a `ForkServer` forked, with the methods of `subprocess.Popen` used here."""

    def __init__(
        self, server: ForkServer, number: int, stdin: IO[bytes], stdout: IO[bytes]
    ) -> None:
        self.pid = number
        self.stdin = stdin
        self.stdout = stdout
        self._server = server
        self._exit_code: int | None = None
        self._lock = threading.Lock()

    def kill(self) -> None:
        # Its number is not given to another process before the server has waited for it.
        with self._lock:
            if self._exit_code is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Kill it if it still runs, and return its exit code."""
        with self._lock:
            if self._exit_code is None:
                try:
                    self._exit_code = self._server.end(self.pid)
                except OSError:  # the server has ended, and its processes with it
                    self._exit_code = -signal.SIGKILL
            return self._exit_code


# The server


def serve_forks(run: Callable[[], None]) -> None:
    """
    Fork a process that calls `run` for every request on the socket that `ForkServer` opened.

    Ends, and kills the forked processes, when the program closes the socket or has ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the program, which ends this
    running: set[int] = set()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        while True:
            message, files, _, _ = socket.recv_fds(requests, _REQUEST.size, 2)
            if len(message) < _REQUEST.size:
                break
            what, process = _REQUEST.unpack(message)
            if what == _FORK:
                process = _fork(requests, files, run)
                if process > 0:
                    running.add(process)
                requests.sendall(_REPLY.pack(process))
            else:
                running.discard(process)
                requests.sendall(_REPLY.pack(_end(process)))
    for process in running:
        _end(process)


def _fork(requests: socket.socket, files: list[int], run: Callable[[], None]) -> int:
    """The number of a new process, or a negative error number."""
    try:
        process = os.fork()
    except OSError as error:
        process = -(error.errno or errno.EAGAIN)
    if process:
        for file in files:
            os.close(file)
        return process
    code = 1
    try:
        requests.close()
        for standard, file in enumerate(files):
            os.dup2(file, standard)
            os.close(file)
        run()
        code = 0
    finally:
        os._exit(code)  # not through the code that called `serve_forks`


def _end(process: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    try:
        _, status = os.waitpid(process, 0)
    except ChildProcessError:
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(status)
