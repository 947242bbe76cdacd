"""The servers that research.benchmarks.service_load drives, each as a process that ends with its block."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Running = tuple[str, subprocess.Popen[str]]
"""Its address and its process."""


@contextmanager
def askline(spec: str, *options: str) -> Iterator[Running]:
    """`askline serve`, with every worker there."""
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
        # The access log is written as always; nobody reads it.
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
        process.kill()  # it would first finish what nobody waits for
        process.wait(60)


def processor_seconds(pid: int) -> float:
    """Of a process and its children so far: what other work on the machine changes least."""
    ticks = 0
    for each in _family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # in user mode, in the kernel
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[str]:
    return [str(pid), *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def megabytes(pid: int) -> float:
    """Of a process and its children, by proportional share of what they have in common."""
    total = 0
    for each in _family(pid):
        text = Path(f"/proc/{each}/smaps_rollup").read_text()
        match = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
        total += int(match[1]) if match else 0
    return total / 1024
