"""CPU seconds and memory of processes and their children, from /proc."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def descendants(process: int) -> list[int]:
    """The children of a process, their children, and so on."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def cpu_seconds(process: int) -> float:
    """CPU seconds of a process and all below it, those that have ended included."""
    return sum(_cpu_of(each) for each in (process, *descendants(process)))


def _cpu_of(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS  # user, system, and those of ended children


def command(process: int) -> str:
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


class MemorySampler(threading.Thread):
    """Samples the resident megabytes of all Python processes below this one."""

    def __init__(self, every_seconds: float = 1.0) -> None:
        super().__init__(daemon=True)
        self._every, self._stop_now = every_seconds, threading.Event()
        self.samples: list[float] = []

    def run(self) -> None:
        while not self._stop_now.wait(self._every):
            pids = [each for each in descendants(os.getpid()) if _is_python(each)]
            self.samples.append(sum(map(_megabytes, pids)))

    def stop(self) -> list[float]:
        """All samples, in order."""
        self._stop_now.set()
        self.join()
        return self.samples


def _is_python(process: int) -> bool:
    """By the program: the command of a JVM can name folders of Python."""
    return "python" in os.path.basename(command(process).partition(" ")[0])


def _megabytes(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE / 1e6
    except (OSError, IndexError):
        return 0.0
