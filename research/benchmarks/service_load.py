"""
The service under load, beside a plain FastAPI + CrossEncoder server with the same candidates.

    python -m research.benchmarks.service_load --cross-encoder DIR [--only PART]... [--save]

Four parts, each of which can be run alone: `askline` and `plain` (throughput and latency with 1, 8
and 32 clients and 20 and 100 candidates), `queue` (what a full queue does) and `memory`. A cell
sends requests for so many seconds, and what is still open then has a minute to be answered. About
six minutes in all. `--save` merges what was measured into research/results/service_load.json, row by row.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from askline.demo import documents
from askline.rankers.registry import DEFAULT_SPEC
from askline.text.sentences import split_sentences

from . import report
from .load import Bounds, drive
from .service_servers import Running, askline, megabytes, plain, processor_seconds

Start = Callable[[], AbstractContextManager[Running]]
Row = dict[str, Any]

_KEYS = ("server", "clients", "candidates")
CLIENTS = (1, 8, 32)
CANDIDATES = (20, 100)
LIGHT = "cosinet"
"""Whose requests are quick enough for ten thousand of them; what leaks, leaks around the ranker."""
QUESTIONS = (
    "Who invented the paper coffee filter?",
    "How long is the Trans-Siberian railway?",
    "When was the first lighthouse lit?",
    "What do bees eat in winter?",
    "Why are there two tides a day?",
    "What was the metre first defined by?",
)


def main() -> None:
    """Measure, print as it comes, and save if asked to."""
    options = _options()
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
    parser.add_argument("--cross-encoder", type=Path, help="the folder of a CrossEncoder")
    parser.add_argument("--model", default=DEFAULT_SPEC, help="a ranker's spec")
    parser.add_argument("--only", action="append", choices=("askline", "plain", "queue", "memory"))
    parser.add_argument("--seconds", type=float, default=8.0, help="for each cell")
    parser.add_argument("--patience", type=float, default=60.0, help="for what is then still open")
    parser.add_argument("--requests", type=int, default=10_000, help="for the memory")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    if not options.cross_encoder and (not options.only or "plain" in options.only):
        parser.error("--cross-encoder DIR is needed for the plain server.")
    return options


def _save(part: str, row: Row) -> None:
    """In place of the row about the same, and beside all others."""
    try:
        figures = report.load("service_load")
    except FileNotFoundError:
        figures = {}
    figures.pop("environment", None)
    rows = [own for own in figures.get(part, []) if any(own.get(k) != row.get(k) for k in _KEYS)]
    measured = {"load": round(os.getloadavg()[0], 2), "time": report.environment()["time"]}
    figures[part] = [*rows, {**row, **measured}]
    packages = ("fastapi", "uvicorn", "sentence-transformers", "torch", "onnxruntime")
    report.save("service_load", figures, *packages)


def _ours(options: argparse.Namespace) -> Iterator[Row]:
    yield from _cells({options.model: partial(askline, options.model)}, options)


def _theirs(options: argparse.Namespace) -> Iterator[Row]:
    yield from _cells({"FastAPI + CrossEncoder": partial(plain, options.cross_encoder)}, options)


def _cells(servers: Mapping[str, Start], options: argparse.Namespace) -> Iterator[Row]:
    """In each cell the servers in turn, so that what else the machine does falls on all alike."""
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
                        server.restart()  # or it would go on with what nobody waits for


def _each(seconds: float, count: int) -> float | None:
    return round(1000 * seconds / count, 1) if count else None


class _Restarting:
    """A server that can be ended and started anew."""

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
    """Twice as many clients as there are places: all that is not answered must be a 429."""
    with askline(options.model, "--queue", "4") as (base, _):
        row = drive(base, bodies(100), clients=32, bounds=Bounds(requests=2_000, seconds=5)).row()
    yield {"server": options.model, "places in the queue": 4, "clients": 32, **row}


def _memories(options: argparse.Namespace) -> Iterator[Row]:
    """Ten thousand requests of the light ranker, and a few hundred of the default."""
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
    """The demo's sentences, turned a little further for each question."""
    lines = [text[start:end] for _, text in documents() for start, end in split_sentences(text)]
    turned = [lines[at * 7 :] + lines[: at * 7] for at in range(len(QUESTIONS))]
    return [
        {"query": question, "documents": texts[:candidates], "return_documents": False}
        for question, texts in zip(QUESTIONS, turned, strict=True)
    ]


if __name__ == "__main__":
    main()
