"""
Load test of the service, beside a plain FastAPI + CrossEncoder server with the same candidates.

    python -m research.benchmarks.service_load --cross-encoder DIR [--before OTHER]
        [--only PART]... [--save]
    python -m research.benchmarks.service_load batches

Four parts, which `--only` selects: `askline` and `plain` (throughput and latency with 1, 8 and 32
clients and 20 and 100 candidates), `queue` (a full queue) and `memory`. Each cell sends requests
for a few seconds, and then waits up to a minute for open ones. About six minutes in all. `--save`
merges the rows into research/results/service_load.json. With `--before`, a checkout of another
version, its service takes turns with this one in the part `askline`.

`batches` measures the processor time per request with eight requests, one by one and batched. Half
a minute. Writes research/results/service_batches.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from askline import load
from askline.demo import documents
from askline.rankers.base import Pipeline
from askline.rankers.registry import DEFAULT_SPEC
from askline.text.sentences import split_sentences

from . import common


@dataclass(frozen=True)
class Bounds:
    """When a measurement ends: at the first of these limits."""

    requests: int = 10**9
    """Maximum number of requests."""
    seconds: float = 1e9
    """No request is sent after this many seconds."""
    patience: float = 60.0
    """Further seconds to wait for open requests."""


@dataclass
class Load:
    """Results of one measurement."""

    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    """Requests without a reply at the end."""

    def row(self) -> dict[str, Any]:
        """Requests per second with status 200, and their latency."""
        # An unanswered request counts as slower than all others.
        taken = [*self.milliseconds, *[math.inf] * self.unanswered] or [math.inf]
        p50, p95, p99 = np.percentile(taken, [50, 95, 99], method="higher")
        return {
            "requests a second": round(self.codes[200] / self.seconds, 2),
            "p50 ms": _shown(p50),
            "p95 ms": _shown(p95),
            "p99 ms": _shown(p99),
            "codes": {str(code): count for code, count in sorted(self.codes.items())},
            "unanswered": self.unanswered,
            "seconds": round(self.seconds, 1),
        }


def _shown(milliseconds: float) -> float | None:
    """None for requests without a reply."""
    return round(float(milliseconds), 1) if math.isfinite(milliseconds) else None


def drive(base: str, bodies: Sequence[dict[str, object]], *, clients: int, bounds: Bounds) -> Load:
    """Send requests with N clients until a limit is reached."""
    return asyncio.run(_drive(base, [_request(body) for body in bodies], clients, bounds))


async def _drive(base: str, requests: Sequence[bytes], clients: int, bounds: Bounds) -> Load:
    load = Load()
    start = time.perf_counter()
    numbers = iter(range(bounds.requests))

    async def client() -> None:
        where = urlsplit(base)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        while time.perf_counter() - start < bounds.seconds:
            number = next(numbers, None)
            if number is None:
                break
            began = time.perf_counter()
            writer.write(requests[number % len(requests)])
            code = await _answer(reader)
            load.codes[code] += 1
            if code == 200:
                load.milliseconds.append(1000 * (time.perf_counter() - began))
        writer.close()

    tasks = [asyncio.create_task(client()) for _ in range(clients)]
    _, unanswered = await asyncio.wait(tasks, timeout=bounds.seconds + bounds.patience)
    load.unanswered = len(unanswered)
    load.seconds = time.perf_counter() - start
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
    return load


async def _answer(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next(
        int(line.partition(":")[2])
        for line in head.split("\r\n")
        if line.startswith("content-length")
    )
    await reader.readexactly(length)
    return int(head.split(" ", 2)[1])


def _request(body: dict[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        "POST /v1/rerank HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


Running = tuple[str, subprocess.Popen[str]]
"""Address and process of a server."""


@contextmanager
def askline(spec: str, *options: str, tree: Path = common.ROOT) -> Iterator[Running]:
    """`askline serve` of a checkout, after all workers have started."""
    command = [sys.executable, "-c", "from askline.cli import main; main()", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--model", spec, *options],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
    )
    assert process.stderr is not None
    try:
        match = None
        while match is None:
            line = process.stderr.readline()
            assert line, f"{spec} cannot be served."
            match = re.search(r"Listening on (\S+)", line)
        # The access log must be read, or the process blocks.
        subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        _await_workers(match[1])
        yield match[1], process
    finally:
        process.terminate()
        process.wait(60)


def _await_workers(base: str) -> None:
    for _ in range(600):
        with urllib.request.urlopen(f"{base}/metrics") as answer:
            text = answer.read().decode()
        with urllib.request.urlopen(f"{base}/info") as answer:
            wanted = re.search(rb'"workers":(\d+)', answer.read())
        ready = re.search(r"^askline_workers (\S+)$", text, re.MULTILINE)
        if ready and wanted and float(ready[1]) == float(wanted[1]):
            return
        time.sleep(0.1)
    raise SystemExit("The workers did not start.")


@contextmanager
def plain(folder: Path) -> Iterator[Running]:
    """FastAPI around sentence-transformers' CrossEncoder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "research.benchmarks.service_baseline", str(folder), str(port)],
        text=True,
    )
    try:
        for _ in range(600):
            with socket.socket() as line:
                if line.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()  # do not wait for open requests
        process.wait(60)


def processor_seconds(pid: int) -> float:
    """Processor time of a process and its children so far."""
    ticks = 0
    for each in _family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # user and system time
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[str]:
    return [str(pid), *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def megabytes(pid: int) -> float:
    """Proportional set size of a process and its children."""
    total = 0
    for each in _family(pid):
        text = Path(f"/proc/{each}/smaps_rollup").read_text()
        match = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
        total += int(match[1]) if match else 0
    return total / 1024


Start = Callable[[], AbstractContextManager[Running]]
Row = dict[str, Any]

_KEYS = ("server", "clients", "candidates")
CLIENTS = (1, 8, 32)
CANDIDATES = (20, 100)
LIGHT = "cosinet"
"""A ranker that is fast enough for ten thousand requests."""
QUESTIONS = (
    "Who invented the paper coffee filter?",
    "How long is the Trans-Siberian railway?",
    "When was the first lighthouse lit?",
    "What do bees eat in winter?",
    "Why are there two tides a day?",
    "What was the metre first defined by?",
)


def main() -> None:
    """Measure, print each row, and save it with `--save`."""
    options = _options()
    if options.part == "batches":
        _batches()
        return
    parts: dict[str, Callable[[argparse.Namespace], Any]] = {
        "askline": _ours,
        "plain": _theirs,
        "queue": _full_queue,
        "memory": _memories,
    }
    for name in options.only or parts:
        for row in parts[name](options):
            print(row, flush=True)
            if options.save:
                _save(name, row)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("load", "batches"), default="load")
    parser.add_argument("--cross-encoder", type=Path, help="folder of a CrossEncoder")
    parser.add_argument("--before", type=Path, help="a checkout of a version to compare with")
    parser.add_argument("--model", default=DEFAULT_SPEC, help="a ranker's spec")
    parser.add_argument("--only", action="append", choices=("askline", "plain", "queue", "memory"))
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds per cell")
    parser.add_argument(
        "--patience", type=float, default=60.0, help="seconds to wait for open requests"
    )
    parser.add_argument("--requests", type=int, default=10_000, help="requests of the memory test")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    needed = options.part == "load" and (not options.only or "plain" in options.only)
    if needed and not options.cross_encoder:
        parser.error("--cross-encoder DIR is needed for the plain server.")
    return options


def _save(part: str, row: Row) -> None:
    """Replace the row with the same keys in the result file."""
    figures = common.load_or_empty("service_load")
    figures.pop("environment", None)
    rows = [own for own in figures.get(part, []) if any(own.get(k) != row.get(k) for k in _KEYS)]
    measured = {"load": round(os.getloadavg()[0], 2), "time": common.environment()["time"]}
    figures[part] = [*rows, {**row, **measured}]
    packages = ("fastapi", "uvicorn", "sentence-transformers", "torch", "onnxruntime")
    common.save("service_load", figures, *packages)


def _ours(options: argparse.Namespace) -> Iterator[Row]:
    servers = {options.model: partial(askline, options.model)}
    if options.before:
        before = partial(askline, options.model, tree=options.before.resolve())
        servers = {f"{options.model}, before": before, **servers}
    yield from _cells(servers, options)


def _theirs(options: argparse.Namespace) -> Iterator[Row]:
    yield from _cells({"FastAPI + CrossEncoder": partial(plain, options.cross_encoder)}, options)


def _cells(servers: Mapping[str, Start], options: argparse.Namespace) -> Iterator[Row]:
    """Measure the servers in turn in each cell, so that other load affects all."""
    bounds = Bounds(seconds=options.seconds, patience=options.patience)
    with ExitStack() as running:
        started = {name: running.enter_context(_Restarting(own)) for name, own in servers.items()}
        for candidates in CANDIDATES:
            asked = bodies(candidates)
            for clients in CLIENTS:
                for name, server in started.items():
                    drive(server.base, asked, clients=1, bounds=Bounds(requests=2))
                    before = processor_seconds(server.pid)
                    row = drive(server.base, asked, clients=clients, bounds=bounds).row()
                    took = processor_seconds(server.pid) - before
                    cell = {"server": name, "clients": clients, "candidates": candidates, **row}
                    cell["processor ms a request"] = _each(took, row["codes"].get("200", 0))
                    yield cell
                    if row["unanswered"]:
                        server.restart()  # so that it drops open requests


def _each(seconds: float, count: int) -> float | None:
    return round(1000 * seconds / count, 1) if count else None


class _Restarting:
    """A server that can be restarted."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._running = ExitStack()
        self.base, self.pid = "", 0

    def restart(self) -> None:
        self._running.close()
        self.base, process = self._running.enter_context(self._start())
        self.pid = process.pid

    def __enter__(self) -> _Restarting:
        self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()


def _full_queue(options: argparse.Namespace) -> Iterator[Row]:
    """More clients than places in the queue: every other reply must be a 429."""
    with askline(options.model, "--queue", "4") as (base, _):
        row = drive(base, bodies(100), clients=32, bounds=Bounds(requests=2_000, seconds=5)).row()
    yield {"server": options.model, "places in the queue": 4, "clients": 32, **row}


def _memories(options: argparse.Namespace) -> Iterator[Row]:
    """Ten thousand requests to the light ranker, and a few hundred to the default."""
    for spec, requests in ((LIGHT, options.requests), (options.model, options.requests // 25)):
        yield {"server": spec, **_memory(spec, requests)}


def _memory(spec: str, requests: int) -> Row:
    """Megabytes of the service and its workers, after each tenth of the requests."""
    seen: list[float] = []
    codes: Counter[int] = Counter()
    with askline(spec) as (base, process):
        for _ in range(10):
            load = drive(base, bodies(20), clients=4, bounds=Bounds(requests=requests // 10))
            seen.append(round(megabytes(process.pid), 1))
            codes += load.codes
    return {
        "requests": requests,
        "MB after each tenth": seen,
        "codes": {str(code): count for code, count in codes.items()},
    }


def bodies(candidates: int) -> list[dict[str, Any]]:
    """Requests with the demo's sentences, rotated for each question."""
    lines = [text[start:end] for _, text in documents() for start, end in split_sentences(text)]
    turned = [lines[at * 7 :] + lines[: at * 7] for at in range(len(QUESTIONS))]
    return [
        {"query": question, "documents": texts[:candidates], "return_documents": False}
        for question, texts in zip(QUESTIONS, turned, strict=True)
    ]


TOGETHER = 8
"""Requests that are batched."""
ROUNDS = {1: 6, 3: 4, 5: 3, 10: 2, 20: 2, 100: 1}
"""Rounds per number of candidates, so that each takes about the same time."""


def _batches() -> None:
    """Processor time per request, one by one and batched; one core, best of two rounds."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ranker = load()
    assert isinstance(ranker, Pipeline)
    rows = []
    for candidates, rounds in ROUNDS.items():
        found = [(str(body["query"]), list(body["documents"])) for body in bodies(candidates)]
        requests = (found * 2)[:TOGETHER]
        ranker.trace_many(requests)
        row = {
            "candidates": candidates,
            "ms one by one": _per_request(partial(_one_by_one, ranker, requests), rounds),
            "ms together": _per_request(partial(ranker.trace_many, requests), rounds),
        }
        print(row, flush=True)
        rows.append(row)
    figures = {"ranker": str(ranker), "requests at a time": TOGETHER, "rows": rows}
    print(common.save("service_batches", figures, "onnxruntime"))


def _one_by_one(ranker: Pipeline, requests: Sequence[tuple[str, Sequence[str]]]) -> None:
    for question, candidates in requests:
        ranker.trace(question, candidates)


def _per_request(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of processor time per request."""
    taken = []
    for _ in range(2):
        start = time.process_time()
        for _ in range(rounds):
            work()
        taken.append(time.process_time() - start)
    return round(1000 * min(taken) / rounds / TOGETHER, 1)


if __name__ == "__main__":
    main()
