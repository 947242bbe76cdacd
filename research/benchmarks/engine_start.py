"""
From `askline rank` typed to the first answer, model loaded: what a caller waits for.

    python -m research.benchmarks.engine_start DIR [--times 5]

Each start is a new process; the best counts, by the clock and by processor time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

from .report import ROOT, save

LINES = "Emma is a novel.\nJane Austen wrote Emma.\nIt appeared in 1815.\n"


def main() -> None:
    """Print seconds and write `research/results/engine_start.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    starts = {
        "cascade": ["rank", "Who wrote Emma?", "--ranker", f"cascade('{given.folder}')"],
        "askline --version": ["--version"],
    }
    figures = {name: _best(own, given.times) for name, own in starts.items()}
    for name, row in figures.items():
        print(f"{name:<18} {row['seconds']:.2f} s, {row['processor seconds']:.2f} s of processor")
    save("engine_start", figures, "onnxruntime")


def _best(arguments: list[str], times: int) -> dict[str, float]:
    program = "from askline.cli import main; main()"
    walls, processors = [], []
    for _ in range(times):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=ROOT,
            input=LINES,
            text=True,
            capture_output=True,
            check=True,
        )
        walls.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return {"seconds": round(min(walls), 3), "processor seconds": round(min(processors), 3)}


if __name__ == "__main__":
    main()
