"""
Stress test of the service: every answer compared, connections left half-open, workers killed.

    python -m research.benchmarks.service_stress [--only PART]... [--seconds N] [--save]

Four parts, which `--only` selects: `clients` (1, 8, 32 and 128 clients, 60 seconds each, on the
routes `/v1/rerank` and `/v1/ask`), `half_open` (1,023 half-sent requests), `kills` (50 workers
killed during requests) and `stopped` (5 workers stopped with SIGSTOP). An answer is wrong if an
index or a text differs from that of a single request, or a score by more than 0.0001. About ten
minutes. `--save` merges the parts into research/results/service_stress.json.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from askline.demo import documents
from askline.rankers.registry import DEFAULT_SPEC
from askline.text.sentences import split_sentences

from . import common
from .service_load import askline

_NAME = "service_stress"
_CLOSE = 1e-4
_CLIENTS = (1, 8, 32, 128)
_HALF_OPEN = 1_023
_KILLS = 50
_STOPS = 5
_QUESTIONS = (
    "Where does coffee grow wild?",
    "When was the first lighthouse lit?",
    "Why does dough rise?",
    "Who built the stepped lens?",
    "What is a coffee fruit called?",
)

Request = tuple[str, dict[str, Any]]
"""The path and the body."""


@dataclass
class Outcome:
    """What the clients got."""

    codes: Counter[int] = field(default_factory=Counter)
    wrong: int = 0
    lost: int = 0
    """Connections that the server closed without an answer."""
    milliseconds: list[float] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """The counts, and the median and longest time of an answer."""
        taken = sorted(self.milliseconds) or [0.0]
        return {
            "answers": self.codes[200],
            "wrong": self.wrong,
            "lost": self.lost,
            "codes": {str(code): count for code, count in sorted(self.codes.items())},
            "p50 ms": round(taken[len(taken) // 2], 1),
            "max ms": round(taken[-1], 1),
        }


def requests() -> list[Request]:
    """Rankings of 3 to 40 sentences, and questions about whole documents."""
    texts = [text[start:end] for _, text in documents() for start, end in split_sentences(text)]
    generator = random.Random(7)
    made: list[Request] = []
    for number, count in enumerate((3, 5, 8, 12, 16, 20, 30, 40) * 3):
        body: dict[str, Any] = {
            "query": _QUESTIONS[number % len(_QUESTIONS)],
            "documents": generator.sample(texts, count),
        }
        made.append(("/v1/rerank", body))
    for question, (name, text) in itertools.product(_QUESTIONS, documents()[:2]):
        made.append(("/v1/ask", {"question": question, "documents": [{"id": name, "text": text}]}))
    return made


def reduced(path: str, answer: dict[str, Any]) -> list[tuple[object, float]]:
    """What must be equal in two answers to one request: places or texts, with their scores."""
    if path == "/v1/rerank":
        return [(item["index"], item["relevance_score"]) for item in answer["results"]]
    return [
        (json.dumps([item["text"], item["source"], item["phrase"]]), item["score"])
        for item in answer["answers"]
    ]


def is_equal(found: Sequence[tuple[object, float]], other: Sequence[tuple[object, float]]) -> bool:
    """Whether two answers are the same; entries with almost equal scores may be exchanged."""
    scores, others = dict(found), dict(other)
    return scores.keys() == others.keys() and all(
        abs(score - others[key]) <= _CLOSE for key, score in scores.items()
    )


async def drive(
    base: str,
    expected: Sequence[tuple[Request, list[tuple[object, float]]]],
    *,
    clients: int,
    seconds: float,
    until: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Send requests with N clients for some seconds, or until a condition holds."""
    outcome = Outcome()
    end = time.monotonic() + seconds
    numbers = itertools.count()

    async def client() -> None:
        while time.monotonic() < end and not until():
            (path, body), answer = expected[next(numbers) % len(expected)]
            start = time.perf_counter()
            try:
                code, found = await _exchange(base, path, body)
            except (ConnectionError, asyncio.IncompleteReadError):
                outcome.lost += 1
                continue
            outcome.codes[code] += 1
            if code == 200:
                outcome.milliseconds.append(1000 * (time.perf_counter() - start))
                outcome.wrong += not is_equal(reduced(path, found), answer)
            else:
                await asyncio.sleep(0.5)

    await asyncio.gather(*(client() for _ in range(clients)))
    return outcome


async def _exchange(base: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """One request on a connection of its own."""
    where, content = urlsplit(base), json.dumps(body).encode()
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + content)
        answer = await reader.read()
    finally:
        writer.close()
    head_bytes, _, found = answer.partition(b"\r\n\r\n")
    if not head_bytes:
        raise ConnectionError
    return int(head_bytes.split(b" ", 2)[1]), json.loads(found)


def alone(base: str) -> list[tuple[Request, list[tuple[object, float]]]]:
    """Every request with its answer when there is no other request."""

    async def ask() -> list[tuple[Request, list[tuple[object, float]]]]:
        answers = []
        for path, body in requests():
            code, found = await _exchange(base, path, body)
            assert code == 200, found
            answers.append(((path, body), reduced(path, found)))
        return answers

    return asyncio.run(ask())


def clients_part(seconds: float) -> dict[str, Any]:
    """Answers and memory with 1, 8, 32 and 128 clients."""
    rows = {}
    with askline(DEFAULT_SPEC) as (base, process):
        expected = alone(base)
        for clients in _CLIENTS:
            before = _megabytes(process)
            outcome = asyncio.run(drive(base, expected, clients=clients, seconds=seconds))
            rows[str(clients)] = outcome.row() | {
                "MB before": before,
                "MB after": _megabytes(process),
            }
            print(clients, rows[str(clients)], flush=True)
    return rows


def half_open_part() -> dict[str, Any]:
    """The time of `/health` and of a ranking beside half-sent requests."""
    with askline("bm25", "--workers", "1") as (base, _), ExitStack() as stack:
        where = urlsplit(base)
        for _ in range(_HALF_OPEN):
            line = stack.enter_context(socket.create_connection((where.hostname, where.port or 80)))
            line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Name: ")
        health = [_seconds_of(f"{base}/health") for _ in range(50)]
        ready = [_seconds_of(f"{base}/ready") for _ in range(50)]
    return {
        "connections": _HALF_OPEN,
        "/health max ms": round(1000 * max(health), 1),
        "/ready max ms": round(1000 * max(ready), 1),
    }


def kills_part() -> dict[str, Any]:
    """Workers killed at random moments while eight clients send requests."""
    generator, killed = random.Random(5), 0
    with askline(DEFAULT_SPEC, "--workers", "2") as (base, process):
        expected = alone(base)

        async def kill() -> None:
            nonlocal killed
            while killed < _KILLS:
                await asyncio.sleep(generator.random())
                ready = await asyncio.to_thread(_metric, base, "askline_workers")
                children = _children(process)
                if ready >= 1 and children:
                    os.kill(generator.choice(children), signal.SIGKILL)
                    killed += 1

        async def both() -> Outcome:
            outcome, _ = await asyncio.gather(
                drive(base, expected, clients=8, seconds=600, until=lambda: killed >= _KILLS),
                kill(),
            )
            return outcome

        outcome = asyncio.run(both())
        restarts = _metric(base, "askline_worker_restarts_total")
    return outcome.row() | {"kills": killed, "restarts": int(restarts)}


def stopped_part() -> dict[str, Any]:
    """Seconds from SIGSTOP of the only worker to the next answer."""
    taken, not_ready = [], []
    with askline(DEFAULT_SPEC, "--workers", "1") as (base, process):
        expected = alone(base)
        for number in range(_STOPS):
            (worker,) = _children(process)
            os.kill(worker, signal.SIGSTOP)
            start = time.monotonic()
            while _status(f"{base}/ready") == 200:
                time.sleep(0.05)
            not_ready.append(time.monotonic() - start)
            (path, body), answer = expected[number]
            code, found = asyncio.run(_exchange(base, path, body))
            assert code == 200, found
            assert is_equal(reduced(path, found), answer)
            taken.append(time.monotonic() - start)
    return {
        "stops": _STOPS,
        "seconds until /ready is 503, max": round(max(not_ready), 1),
        "seconds until the next answer, max": round(max(taken), 1),
    }


def _children(process: subprocess.Popen[str]) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("utf-8")
    return [int(pid) for pid in listed.split()]


def _megabytes(process: subprocess.Popen[str]) -> int:
    """Resident memory of the service and its workers, without what they share, in megabytes."""
    total = 0
    for pid in (process.pid, *_children(process)):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
        total += sum(int(match) for match in re.findall(r"^Pss:\s+(\d+)", rollup, re.MULTILINE))
    return round(total / 1024)


def _metric(base: str, name: str) -> float:
    with urllib.request.urlopen(f"{base}/metrics", timeout=60) as answer:
        match = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)
    assert match is not None, name
    return float(match[1])


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _seconds_of(url: str) -> float:
    start = time.perf_counter()
    assert _status(url) == 200, url
    return time.perf_counter() - start


@contextmanager
def _timed(name: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)


def main() -> None:
    """Run the parts and print their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parts: dict[str, Callable[[float], dict[str, Any]]] = {
        "clients": clients_part,
        "half_open": lambda _: half_open_part(),
        "kills": lambda _: kills_part(),
        "stopped": lambda _: stopped_part(),
    }
    parser.add_argument("--only", action="append", choices=parts, default=[])
    parser.add_argument("--seconds", type=float, default=60.0, help="per number of clients")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    for name in given.only or parts:
        with _timed(name):
            figures = parts[name](given.seconds)
        print(json.dumps({name: figures}, indent=1), flush=True)
        if given.save:
            merged = {**common.load_or_empty(_NAME), name: figures}
            merged.pop("environment", None)
            common.save(_NAME, merged, "uvicorn", "h11", "fastapi", "onnxruntime")


if __name__ == "__main__":
    main()
