"""A worker's loop and its frames, without a process around them."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from askline.errors import CorpusError, InputError
from askline.serving.messages import Frame, packed, read_frame
from askline.serving.worker import Worker, failure


@pytest.mark.parametrize(
    "frame", [{}, {"text": "a\x00ü🜚"}, {"half": "\ud800"}, {"long": "x" * 100_000}], ids=str
)
def test_frames_come_out_as_they_went_in(frame: Frame) -> None:
    assert read_frame(io.BytesIO(packed(frame))) == frame


def test_half_a_frame_is_the_end() -> None:
    whole = packed({"text": "lamp"})
    for cut in range(len(whole)):
        assert read_frame(io.BytesIO(whole[:cut])) is None


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (InputError("No."), "input", "No."),
        (CorpusError("Busy."), "corpus", "Busy."),
        (KeyError("x"), "fault", "KeyError: 'x'"),
    ],
)
def test_failures_have_a_kind(error: Exception, kind: str, message: str) -> None:
    failed = failure(error)["failed"]
    assert (failed["kind"], failed["message"]) == (kind, message)


class Watched(io.BufferedReader):
    """It counts how often it was read from, the reading under way among them."""

    begun = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.begun += 1
        return super().read(size)


class Line:
    """A worker on pipes, its main loop in a thread of the test."""

    def __init__(
        self,
        perform: Callable[[list[Frame]], list[Frame]],
        batch: int,
        shares: Callable[[Frame], bool],
    ) -> None:
        reads, writes = os.pipe()
        back, out = os.pipe()
        self._jobs, self._results = os.fdopen(writes, "wb"), os.fdopen(back, "rb")
        self._source, self._sink = Watched(io.FileIO(reads)), os.fdopen(out, "wb")

        def work() -> None:
            with self._sink as sink:  # closed where it fails, so that nobody waits for a result
                worker = Worker(
                    perform, self._source, sink, batch=batch, shares=shares, end=lambda: None
                )
                worker.run()

        self._working = threading.Thread(target=work, daemon=True)
        self._working.start()

    def close(self) -> None:
        self._jobs.close()
        self._working.join(30)
        for stream in (self._results, self._source):
            stream.close()

    def send(self, **frame: Any) -> None:
        self._jobs.write(packed(frame))
        self._jobs.flush()

    def job(self, number: int, *, seconds: float | None = None, firm: bool = False) -> None:
        until = None if seconds is None else time.monotonic() + seconds
        self.send(number=number, until=until, firm=firm)

    def wait_for_arrival(self, frames: int) -> None:
        """Until so many have been taken in: the next one is waited for, by its first reading."""
        until = time.monotonic() + 30
        while self._source.begun < 2 * frames + 1:
            assert time.monotonic() < until
            time.sleep(0.001)

    def result(self) -> Frame:
        frame = read_frame(self._results)
        assert frame is not None
        return frame


Start = Callable[..., Line]


@pytest.fixture
def start() -> Iterator[Start]:
    """Workers, ended after the test."""
    with ExitStack() as stack:
        yield lambda perform, batch=1, shares=lambda _: True: stack.enter_context(
            closing(Line(perform, batch, shares))
        )


def _echo(jobs: list[Frame]) -> list[Frame]:
    return [{"done": {"number": job["number"], "left": job["deadline_ms"]}} for job in jobs]


def _sleep(jobs: list[Frame]) -> list[Frame]:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        time.sleep(0.005)
    return _echo(jobs)


def test_jobs_come_back_with_their_numbers(start: Start) -> None:
    line = start(_echo)
    line.job(1)
    line.job(2, seconds=60)
    assert line.result()["done"] == {"number": 1, "left": None}
    assert 50_000 < line.result()["done"]["left"] <= 60_000


def test_a_job_whose_time_is_up_is_not_begun(start: Start) -> None:
    line = start(_echo)
    line.job(1, seconds=-1)
    assert line.result()["failed"]["kind"] == "late"


def test_jobs_that_wait_together_are_done_together(start: Start) -> None:
    at_work, gate = threading.Event(), threading.Event()

    def perform(jobs: list[Frame]) -> list[Frame]:
        at_work.set()
        gate.wait(30)
        return _echo(jobs)

    line = start(perform, 4)
    line.job(1)
    assert at_work.wait(30)
    for number in range(2, 8):
        line.job(number)
    line.wait_for_arrival(7)
    gate.set()
    assert [line.result()["batch"] for _ in range(7)] == [1, 4, 4, 4, 4, 2, 2]


def test_a_job_that_does_not_share_is_done_alone_and_in_its_turn(start: Start) -> None:
    at_work, gate = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def perform(jobs: list[Frame]) -> list[Frame]:
        at_work.set()
        gate.wait(30)
        batches.append([job["number"] for job in jobs])
        return _echo(jobs)

    line = start(perform, 8, lambda job: job["until"] is None)
    line.job(1, seconds=60)
    assert at_work.wait(30)
    for number in (2, 3):
        line.job(number)
    line.job(4, seconds=60)
    line.job(5)
    line.wait_for_arrival(5)
    gate.set()
    assert [line.result()["number"] for _ in range(5)] == [1, 2, 3, 4, 5]
    assert batches == [[1], [2, 3], [4], [5]]


def test_a_running_job_is_called_off(start: Start) -> None:
    line = start(_sleep)
    line.job(1)
    time.sleep(0.1)
    began = time.monotonic()
    line.send(call_off=1)
    assert line.result()["failed"]["kind"] == "called off"
    assert time.monotonic() - began < 10


def test_a_waiting_job_is_called_off_before_it_begins(start: Start) -> None:
    gate = threading.Event()
    done: list[int] = []

    def perform(jobs: list[Frame]) -> list[Frame]:
        gate.wait(5)
        done.extend(job["number"] for job in jobs)
        return _echo(jobs)

    line = start(perform)
    line.job(1)
    line.job(2)
    line.send(call_off=2)
    line.wait_for_arrival(3)
    gate.set()
    assert "done" in line.result()
    assert line.result()["failed"]["kind"] == "called off"
    assert done == [1]


def test_a_job_that_writes_is_not_called_off(start: Start) -> None:
    gate = threading.Event()

    def perform(jobs: list[Frame]) -> list[Frame]:
        gate.wait(5)
        return _echo(jobs)

    line = start(perform)
    line.job(1, firm=True)
    time.sleep(0.1)
    line.send(call_off=1)
    time.sleep(0.1)
    gate.set()
    assert "done" in line.result()


def test_calling_off_what_is_done_harms_nothing_after_it(start: Start) -> None:
    line = start(_echo)
    for number in range(1, 200):
        line.job(number)
        assert "done" in line.result()
        line.send(call_off=number)
    line.job(200)
    assert "done" in line.result()


class SlowLock:
    """A lock that its worker is slow to take, so that what comes in the meantime comes first."""

    def __init__(self) -> None:
        self._lock, self._worker = threading.Lock(), threading.get_ident()

    def __enter__(self) -> None:
        until = time.monotonic() + 0.1
        while threading.get_ident() == self._worker and time.monotonic() < until:
            time.sleep(0.001)
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def test_a_call_off_that_comes_as_the_job_ends_does_not_end_the_worker(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askline.serving.worker.Lock", SlowLock)
    ended = threading.Event()

    def perform(jobs: list[Frame]) -> list[Frame]:
        ended.set()
        return _echo(jobs)

    line = start(perform)
    for number in (1, 2):
        line.job(number)
        assert ended.wait(5)
        ended.clear()
        line.send(call_off=number)
        assert line.result()["number"] == number
