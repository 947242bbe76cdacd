from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from askline.engine.numpy_ops import IntArray
from askline.engine.threads import WorkerThreads, equal_length_batches


def _run_all(batches: int, threads: int, stop: Callable[[], bool] | None = None) -> list[int]:
    done: list[int] = []
    arrays = [np.array([number], np.int64) for number in range(batches)]
    WorkerThreads(threads).run_all(arrays, lambda batch: done.append(int(batch[0])), stop=stop)
    return sorted(done)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_all_batches_are_done(threads: int) -> None:
    assert _run_all(20, threads) == list(range(20))


def test_stop_is_called_before_each_batch() -> None:
    answers = iter([False, False, True])
    assert _run_all(20, 1, stop=lambda: next(answers)) == [0, 1]


def test_stop_at_once_does_nothing() -> None:
    assert _run_all(20, 2, stop=lambda: True) == []


@pytest.mark.parametrize("threads", [1, 4])
def test_an_exception_in_a_thread_reaches_the_caller(threads: int) -> None:
    def work(batch: IntArray) -> None:
        raise RuntimeError("wrong")

    with pytest.raises(RuntimeError, match="wrong"):
        WorkerThreads(threads).run_all([np.array([one]) for one in range(8)], work)


def test_a_caller_does_not_wait_for_busy_threads() -> None:
    workers, release, done = WorkerThreads(2), threading.Event(), list[int]()
    first, second = (np.array([one], np.int64) for one in (1, 2))

    def hold(_: IntArray) -> None:
        release.wait(10)

    busy = [
        threading.Thread(target=workers.run_all, args=([first, second], hold)) for _ in range(2)
    ]
    for thread in busy:
        thread.start()
    workers.run_all([first, second], lambda batch: done.append(int(batch[0])))
    assert done == [1, 2]
    release.set()
    for thread in busy:
        thread.join()


class Interruption(BaseException):
    """Raised in the caller's thread alone, as a worker process cancels a job."""


def test_no_batch_is_begun_after_the_caller_is_interrupted() -> None:
    caller, begun = threading.get_ident(), list[int]()

    def work(batch: IntArray) -> None:
        begun.append(int(batch[0]))
        if threading.get_ident() == caller:
            raise Interruption
        time.sleep(0.02)

    start = time.monotonic()
    with pytest.raises(Interruption):
        WorkerThreads(2).run_all([np.array([one]) for one in range(200)], work)
    assert time.monotonic() - start < 1
    assert len(begun) < 10


def _batches(
    lengths: list[int], levels: list[int] | None = None, threads: int = 2
) -> list[IntArray]:
    sizes = np.array(lengths, np.int64)
    known = np.array(levels or [0] * len(lengths), np.int64)
    return equal_length_batches(np.arange(len(lengths)) + 100, sizes, known, threads=threads)


def test_every_sequence_is_in_one_batch_of_its_length_and_level() -> None:
    random = np.random.default_rng(0)
    lengths, levels = random.integers(10, 30, 200), random.integers(0, 2, 200)
    batches = _batches(lengths.tolist(), levels.tolist())
    assert sorted(np.concatenate(batches).tolist()) == list(range(100, 300))
    for batch in batches:
        assert len({(lengths[one - 100], levels[one - 100]) for one in batch}) == 1


def test_longest_batches_come_first() -> None:
    assert [batch.tolist() for batch in _batches([5, 9, 5, 7])] == [[101], [103], [100, 102]]


@pytest.mark.parametrize(
    ("count", "threads", "expected"),
    [(40, 1, [7, 7, 7, 7, 6, 6]), (8, 2, [2, 2, 2, 2]), (1, 8, [1])],
    ids=["no larger than the budget", "work for all threads", "one"],
)
def test_batch_sizes(count: int, threads: int, expected: list[int]) -> None:
    assert [len(batch) for batch in _batches([50] * count, threads=threads)] == expected


def test_a_sequence_over_the_budget_has_a_batch_of_its_own() -> None:
    assert [len(batch) for batch in _batches([5000, 5000])] == [1, 1]


def test_no_sequences_give_no_batches() -> None:
    assert _batches([]) == []
