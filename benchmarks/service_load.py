"""
The service under load, beside a plain FastAPI + CrossEncoder server with the same candidates.

Throughput and latency with 1, 8 and 32 clients and 20 and 100 candidates; what a full queue does;
memory over ten thousand requests. The servers are driven in turn, cell by cell, so that ratios hold
on a machine with other work. Takes about three minutes:

    python -m benchmarks.service_load --cross-encoder DIR [--model SPEC]... [--save]

`--save` writes results/service_load.json.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from askline.demo import documents
from askline.pipeline import DEFAULT_SPEC
from askline.text.sentences import split_sentences

from . import report
from .load import drive

Running = tuple[str, subprocess.Popen[str]]
Start = Callable[[], AbstractContextManager[Running]]

CLIENTS = (1, 8, 32)
CANDIDATES = (20, 100)
QUESTIONS = (
    "Who invented the paper coffee filter?",
    "How long is the Trans-Siberian railway?",
    "When was the first lighthouse lit?",
    "What do bees eat in winter?",
    "Why are there two tides a day?",
    "What was the metre first defined by?",
)


def main() -> None:
    """Measure, print a table, and save it if asked to."""
    options = _options()
    servers: dict[str, Start] = {spec: partial(_askline, spec) for spec in options.model}
    if options.cross_encoder:
        servers["FastAPI + CrossEncoder"] = partial(_plain, options.cross_encoder)
    figures: dict[str, Any] = {"seconds a cell": options.seconds}
    figures["load"] = list(_cells(servers, options.seconds))
    first = options.model[0]
    with _askline(first, "--queue", "4") as (base, _):
        figures["full queue"] = drive(base, _bodies(100), clients=64, seconds=3).row()
    with _askline(first) as (base, process):
        figures["memory"] = _memory(base, process, options.requests)
    for name in ("full queue", "memory"):
        print(f"{name}: {figures[name]}")
    if options.save:
        path = report.save("service_load", figures, "fastapi", "uvicorn", "sentence-transformers")
        print(f"Wrote {path}.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cross-encoder", type=Path, help="the folder of a CrossEncoder")
    parser.add_argument("--model", action="append", help="a ranker's spec; may be given again")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each cell")
    parser.add_argument("--requests", type=int, default=10_000, help="for the memory")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    options.model = options.model or [DEFAULT_SPEC]
    return options


def _cells(servers: dict[str, Start], seconds: float) -> Iterator[dict[str, Any]]:
    """Each with a fresh server, or the one before would leave it what it could not finish."""
    print(
        f"{'server':24} {'clients':>7} {'cand.':>5} {'req/s':>7} {'p50':>8} {'p95':>8} {'p99':>8}"
    )
    for candidates in CANDIDATES:
        bodies = _bodies(candidates)
        for clients in CLIENTS:
            for name, start in servers.items():
                with start() as (base, _):
                    drive(base, bodies, clients=1, requests=4)
                    row = drive(base, bodies, clients=clients, seconds=seconds).row()
                cell = {"server": name, "clients": clients, "candidates": candidates, **row}
                shown = " ".join(f"{cell[key]!s:>8}" for key in ("p50 ms", "p95 ms", "p99 ms"))
                rate = f"{cell['requests a second']:>7}"
                rest = f"{row['codes']} {row['unanswered']} unanswered"
                print(f"{name:24} {clients:>7} {candidates:>5} {rate} {shown}  {rest}", flush=True)
                yield cell


def _memory(base: str, process: subprocess.Popen[str], requests: int) -> dict[str, Any]:
    """Megabytes of the service and its workers, after a tenth of the requests and after all."""
    drive(base, _bodies(20), clients=4, requests=requests // 10)
    before = _megabytes(process.pid)
    load = drive(base, _bodies(20), clients=4, requests=requests - requests // 10)
    after = _megabytes(process.pid)
    return {
        "requests": requests,
        "MB after a tenth": round(before, 1),
        "MB after all": round(after, 1),
        "codes": load.row()["codes"],
    }


def _bodies(candidates: int) -> list[dict[str, object]]:
    """The demo's sentences, turned a little further for each question."""
    lines = [text[start:end] for _, text in documents() for start, end in split_sentences(text)]
    turned = [lines[at * 7 :] + lines[: at * 7] for at in range(len(QUESTIONS))]
    return [
        {"query": question, "documents": texts[:candidates], "return_documents": False}
        for question, texts in zip(QUESTIONS, turned, strict=True)
    ]


@contextmanager
def _askline(spec: str, *options: str) -> Iterator[Running]:
    command = [sys.executable, "-c", "from askline.cli import main; main()", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--model", spec, *options], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        match = None
        while match is None:
            line = process.stderr.readline()
            assert line, f"{spec} cannot be served."
            match = re.search(r"Listening on (\S+)", line)
        _drain(process)
        _await_workers(match[1])
        yield match[1], process
    finally:
        process.terminate()
        process.wait(60)


def _drain(process: subprocess.Popen[str]) -> None:
    """The access log is written as always; nobody reads it."""
    assert process.stderr is not None
    subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)


def _await_workers(base: str) -> None:
    """Until every worker is there."""
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
def _plain(folder: Path) -> Iterator[Running]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.service_baseline", str(folder), str(port)], text=True
    )
    try:
        for _ in range(600):
            with socket.socket() as line:
                if line.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()  # it would first finish what nobody waits for
        process.wait(60)


def _megabytes(pid: int) -> float:
    """Of a process and its children, by proportional share of what they have in common."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    total = 0
    for each in (str(pid), *children):
        text = Path(f"/proc/{each}/smaps_rollup").read_text()
        match = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
        total += int(match[1]) if match else 0
    return total / 1024


if __name__ == "__main__":
    main()
