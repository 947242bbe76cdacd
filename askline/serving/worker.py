"""
A worker process: `python -m askline.serving.worker`, started by `pool`.

It reads what to load, and then jobs, from standard input, and writes a result for each to standard
output, in any order. One thread reads, so that a job can be called off while it waits or runs; the
main thread does the work. When standard input ends, so does the process, whatever it was doing: the
web process has gone.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from threading import Lock
from typing import BinaryIO

from ..errors import AsklineError, CorpusError, InputError, ModelError
from .messages import Frame, packed, read_frame

__all__ = ["Worker", "failure", "main"]

Perform = Callable[[list[Frame]], list[Frame]]
Shares = Callable[[Frame], bool]


_CALLED_OFF: Frame = {"failed": {"kind": "called off", "message": "Called off."}}
_LATE: Frame = {"failed": {"kind": "late", "message": "Too late."}}


class _CalledOffError(BaseException):
    """Raised inside the job that nobody waits for any more."""


class Worker:
    """Jobs in, results out, one after another."""

    def __init__(
        self,
        perform: Perform,
        source: BinaryIO,
        sink: BinaryIO,
        *,
        batch: int,
        shares: Shares = lambda _: True,
        end: Callable[[], None] = lambda: os._exit(0),
    ) -> None:
        self._perform = perform
        self._source = source
        self._sink = sink
        self._batch = batch
        self._shares = shares
        self._end = end
        self._waiting: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._turn = Lock()
        self._off: set[int] = set()
        self._current: set[int] = set()
        self._main = threading.get_ident()

    def run(self) -> None:
        """Work until there is nobody to work for."""
        threading.Thread(target=self._listen, daemon=True).start()
        job = self._waiting.get()
        while job is not None:
            jobs, job = self._gathered(job)
            for result in self._results(jobs):
                self._sink.write(packed(result))
            self._sink.flush()
            job = job or self._waiting.get()

    def _gathered(self, first: Frame) -> tuple[list[Frame], Frame | None]:
        """A job with those behind it that can be done together with it, and one that cannot."""
        jobs = [first]
        while self._shares(first) and len(jobs) < self._batch and not self._waiting.empty():
            job = self._waiting.get()
            if job is None:
                self._waiting.put(None)  # the end, once these are done
                break
            if not self._shares(job):
                return jobs, job
            jobs.append(job)
        return jobs, None

    def _results(self, jobs: list[Frame]) -> list[Frame]:
        start = time.perf_counter()
        results = {job["number"]: _CALLED_OFF for job in jobs}
        try:
            self._work(jobs, results)
            self._let_go()  # in here: a call that came as the work ended is raised no later
        except _CalledOffError:
            pass
        with self._turn:
            # Numbers rise from job to job, so nothing below will be asked for again.
            self._off = {number for number in self._off if number > max(results)}
        took = 1000 * (time.perf_counter() - start)
        return [
            {"number": number, "work_ms": took, "batch": len(jobs), **result}
            for number, result in results.items()
        ]

    def _work(self, jobs: list[Frame], results: dict[int, Frame]) -> None:
        with self._turn:
            going = [job for job in jobs if job["number"] not in self._off]
            self._current = {job["number"] for job in going if not job["firm"]}
        results |= {job["number"]: _LATE for job in going if not _has_time(job)}
        going = [job for job in going if results[job["number"]] is not _LATE]
        performed = self._perform(going) if going else []
        results |= {job["number"]: one for job, one in zip(going, performed, strict=True)}

    def _let_go(self) -> None:
        with self._turn:
            self._current = set()

    def _listen(self) -> None:
        while (frame := read_frame(self._source)) is not None:
            if "call_off" in frame:
                self._call_off(frame["call_off"])
            else:
                self._waiting.put(frame)
        self._end()
        self._waiting.put(None)

    def _call_off(self, number: int) -> None:
        """A job that shares its batch with others goes on: they are waited for."""
        with self._turn:
            self._off.add(number)
            if self._current and self._current <= self._off:
                self._current = set()  # raised once: nothing would catch it a second time
                raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                raise_in(ctypes.c_ulong(self._main), ctypes.py_object(_CalledOffError))


def _has_time(job: Frame) -> bool:
    """Turn the time a job must be done by into what is left of it; False if nothing is."""
    if job["until"] is None:
        job["deadline_ms"] = None
        return True
    job["deadline_ms"] = 1000 * (job["until"] - time.monotonic())
    return bool(job["deadline_ms"] > 0)


def failure(error: BaseException) -> Frame:
    """An error as a result. Kinds: input, corpus, or fault for what should not have happened."""
    kind = "fault"
    if isinstance(error, (InputError, ModelError)):
        kind = "input"
    elif isinstance(error, CorpusError):
        kind = "corpus"
    message = str(error) if isinstance(error, AsklineError) else f"{type(error).__name__}: {error}"
    return {"failed": {"kind": kind, "message": message, "status": getattr(error, "status", None)}}


def main() -> None:
    """Load what the first frame says, say so, and work."""
    for name in ("SIGINT", "SIGTERM"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)  # the web process decides when to stop
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not come between the frames
    plan = read_frame(source)
    if plan is None:
        return
    try:
        from .job_handler import Desk

        desk = Desk.open(plan)
    except Exception as error:
        with sink:
            sink.write(packed(failure(error)))
        return
    sink.write(packed({"ready": desk.about()}))
    sink.flush()
    Worker(desk.perform, source, sink, batch=desk.batch, shares=desk.shares).run()


if __name__ == "__main__":
    main()
