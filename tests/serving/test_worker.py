"""The main loop of a worker, in a thread of the test in place of a process."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import TypeVar

import pytest

from askline.serving.corpus_schemas import RemoveResponse
from askline.serving.messages import (
    BeginReply,
    CancelRequest,
    JobOutcome,
    JobReply,
    JobRequest,
    PingReply,
    PingRequest,
    RemoveJob,
    decode_reply,
    encode,
    read_message,
)
from askline.serving.worker import Handle, Worker

_ReplyT = TypeVar("_ReplyT", JobReply, PingReply)


class CountingReader(io.BufferedReader):
    """Counts the calls of `read`, including the one in progress."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


class WorkerThread:
    """A worker on pipes, with its main loop in a thread."""

    def __init__(
        self,
        handle: Handle,
        batch_size: int,
        can_share_batch: Callable[[JobRequest], bool],
    ) -> None:
        reads, writes = os.pipe()
        back, out = os.pipe()
        self.exits: list[int] = []
        self.begun: list[int] = []
        """Numbers of the jobs that the worker has begun, as far as replies were read."""
        self._requests, self._replies = os.fdopen(writes, "wb"), os.fdopen(back, "rb")
        self._source, self._sink = CountingReader(io.FileIO(reads)), os.fdopen(out, "wb")

        def work() -> None:
            with self._sink as sink:  # closed on failure, so that the test does not wait forever
                worker = Worker(
                    handle,
                    self._source,
                    sink,
                    batch_size=batch_size,
                    can_share_batch=can_share_batch,
                    exit_process=self.exits.append,
                )
                worker.run()

        self._working = threading.Thread(target=work, daemon=True)
        self._working.start()

    def close(self) -> None:
        self._requests.close()
        self._working.join(30)
        for stream in (self._replies, self._source):
            stream.close()

    def send(self, message: object) -> None:
        self._requests.write(encode(message))
        self._requests.flush()

    def send_job(
        self, number: int, *, seconds: float | None = None, is_write: bool = False
    ) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        self.send(JobRequest(number, RemoveJob(str(number)), deadline, is_write))

    def cancel(self, number: int) -> None:
        self.send(CancelRequest(number))

    def wait_for_arrival(self, messages: int) -> None:
        """Wait until the worker has read that many messages and waits for the next."""
        end = time.monotonic() + 30
        while self._source.reads < 2 * messages + 1:  # a length and a body each
            assert time.monotonic() < end
            time.sleep(0.001)

    def reply(self) -> JobReply:
        """The next reply to a job."""
        return self._next(JobReply)

    def ping_reply(self) -> PingReply:
        """The next reply to a ping."""
        return self._next(PingReply)

    def _next(self, kind: type[_ReplyT]) -> _ReplyT:
        while True:
            reply = decode_reply(read_message(self._replies))
            if isinstance(reply, kind):
                return reply
            self.begun += reply.numbers if isinstance(reply, BeginReply) else []

    def failure_kind(self) -> str:
        failure = self.reply().failure
        assert failure is not None
        return failure.kind


Start = Callable[..., WorkerThread]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start workers that end after the test."""
    with ExitStack() as stack:
        yield lambda handle, batch_size=1, can_share_batch=lambda _: True: stack.enter_context(
            closing(WorkerThread(handle, batch_size, can_share_batch))
        )


def _echo(requests: list[JobRequest]) -> list[JobOutcome]:
    return [RemoveResponse(id=str(request.number), removed=True) for request in requests]


def _sleep(requests: list[JobRequest]) -> list[JobOutcome]:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        time.sleep(0.005)
    return _echo(requests)


def test_replies_have_the_number_of_their_job(start: Start) -> None:
    remaining: list[float | None] = []

    def handle(requests: list[JobRequest]) -> list[JobOutcome]:
        remaining.extend(request.remaining_ms() for request in requests)
        return _echo(requests)

    worker = start(handle)
    worker.send_job(1)
    worker.send_job(2, seconds=60)
    for number in (1, 2):
        reply = worker.reply()
        assert (reply.number, reply.failure) == (number, None)
        assert reply.result == {"id": str(number), "removed": True}
    assert remaining[0] is None
    assert remaining[1] is not None
    assert 50_000 < remaining[1] <= 60_000


def test_a_job_after_its_deadline_is_not_begun(start: Start) -> None:
    worker = start(_echo)
    worker.send_job(1, seconds=-1)
    assert worker.failure_kind() == "deadline"


def test_waiting_jobs_share_batches(start: Start) -> None:
    started, gate = threading.Event(), threading.Event()

    def handle(requests: list[JobRequest]) -> list[JobOutcome]:
        started.set()
        gate.wait(30)
        return _echo(requests)

    worker = start(handle, 4)
    worker.send_job(1)
    assert started.wait(30)
    for number in range(2, 8):
        worker.send_job(number)
    worker.wait_for_arrival(7)
    gate.set()
    assert [worker.reply().batch_size for _ in range(7)] == [1, 4, 4, 4, 4, 2, 2]


def test_a_job_that_cannot_share_runs_alone_and_in_order(start: Start) -> None:
    started, gate = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def handle(requests: list[JobRequest]) -> list[JobOutcome]:
        started.set()
        gate.wait(30)
        batches.append([request.number for request in requests])
        return _echo(requests)

    worker = start(handle, 8, lambda request: request.deadline is None)
    worker.send_job(1, seconds=60)
    assert started.wait(30)
    for number in (2, 3):
        worker.send_job(number)
    worker.send_job(4, seconds=60)
    worker.send_job(5)
    worker.wait_for_arrival(5)
    gate.set()
    assert [worker.reply().number for _ in range(5)] == [1, 2, 3, 4, 5]
    assert batches == [[1], [2, 3], [4], [5]]


def test_a_running_job_is_cancelled(start: Start) -> None:
    worker = start(_sleep)
    worker.send_job(1)
    time.sleep(0.1)
    began = time.monotonic()
    worker.cancel(1)
    assert worker.failure_kind() == "cancelled"
    assert time.monotonic() - began < 10


def test_a_waiting_job_is_cancelled_before_it_begins(start: Start) -> None:
    gate = threading.Event()
    done: list[int] = []

    def handle(requests: list[JobRequest]) -> list[JobOutcome]:
        gate.wait(5)
        done.extend(request.number for request in requests)
        return _echo(requests)

    worker = start(handle)
    worker.send_job(1)
    worker.send_job(2)
    worker.cancel(2)
    worker.wait_for_arrival(3)
    gate.set()
    assert worker.reply().failure is None
    assert worker.failure_kind() == "cancelled"
    assert done == [1]
    assert worker.begun == [1]


def test_a_writing_job_is_not_cancelled(start: Start) -> None:
    gate = threading.Event()

    def handle(requests: list[JobRequest]) -> list[JobOutcome]:
        gate.wait(5)
        return _echo(requests)

    worker = start(handle)
    worker.send_job(1, is_write=True)
    time.sleep(0.1)
    worker.cancel(1)
    time.sleep(0.1)
    gate.set()
    assert worker.reply().failure is None


def test_cancelling_a_finished_job_does_not_affect_later_jobs(start: Start) -> None:
    worker = start(_echo)
    for number in range(1, 200):
        worker.send_job(number)
        assert worker.reply().failure is None
        worker.cancel(number)
    worker.send_job(200)
    assert worker.reply().failure is None


class SlowLock:
    """A lock that its own thread acquires slowly, so that the other thread is first."""

    def __init__(self) -> None:
        self._lock, self._worker = threading.Lock(), threading.get_ident()

    def __enter__(self) -> None:
        end = time.monotonic() + 0.1
        while threading.get_ident() == self._worker and time.monotonic() < end:
            time.sleep(0.001)
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def test_a_cancellation_as_the_job_ends_does_not_end_the_worker(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askline.serving.worker.Lock", SlowLock)
    ended = threading.Event()

    def handle(requests: list[JobRequest]) -> list[JobOutcome]:
        ended.set()
        return _echo(requests)

    worker = start(handle)
    for number in (1, 2):
        worker.send_job(number)
        assert ended.wait(5)
        ended.clear()
        worker.cancel(number)
        assert worker.reply().number == number


def test_an_unreadable_request_ends_the_worker(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    worker = start(_echo)
    worker.send({"type": "job", "number": 1})
    worker.close()
    assert "a request that it cannot read" in caplog.text


def test_pings_are_answered_while_a_job_runs(start: Start) -> None:
    gate = threading.Event()

    def handle(requests: list[JobRequest]) -> list[JobOutcome]:
        gate.wait(30)
        return _echo(requests)

    worker = start(handle)
    worker.send_job(1)
    worker.send(PingRequest(7))
    assert worker.ping_reply().number == 7
    gate.set()
    assert worker.reply().number == 1


def test_a_worker_ends_when_a_cancelled_job_does_not(start: Start) -> None:
    gate = threading.Event()

    def handle(requests: list[JobRequest]) -> list[JobOutcome]:
        gate.wait(30)  # cannot be interrupted by an exception
        return _echo(requests)

    worker = start(handle)
    worker.send_job(1)
    time.sleep(0.1)
    began = time.monotonic()
    worker.cancel(1)
    while not worker.exits:
        assert time.monotonic() - began < 5
        time.sleep(0.01)
    assert worker.exits == [75]
    gate.set()
    assert worker.failure_kind() == "cancelled"


def test_a_worker_does_not_end_after_a_job_was_cancelled_in_time(start: Start) -> None:
    worker = start(_sleep)
    worker.send_job(1)
    time.sleep(0.1)
    worker.cancel(1)
    assert worker.failure_kind() == "cancelled"
    time.sleep(1)
    assert worker.exits == []
