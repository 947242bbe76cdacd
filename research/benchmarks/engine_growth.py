"""
Time and memory by the number of candidates, from 10 to 5,000.

    python -m research.benchmarks.engine_growth DIR [--ways all …] [--counts 10 50 …] [--plot FILE]

DIR is an exported model folder. Each count is measured in its own process, so that memory is not
shared. Ways: `all` runs every candidate to full depth, `cascade` uses the folder's schedule,
`alpha=0.5` drops half after each classifier, and any other text is the spec of a ranker. Writes
research/results/engine_growth.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .common import ROOT, cost, save

COUNTS = (10, 50, 100, 400, 1_300, 5_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--ways", nargs="+", default=["cascade", "all"])
    parser.add_argument("--one", nargs=2, metavar=("COUNT", "WAY"), help=argparse.SUPPRESS)
    parser.add_argument("--plot", type=Path, help="draw the times into this file")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_one(given.folder, int(given.one[0]), given.one[1])))
        return
    rows: dict[str, dict[str, Any]] = {}
    print(f"{'way':<24} {'candidates':>10} {'ms':>9} {'processor ms':>13} {'MB resident':>12}")
    for way in given.ways:
        for count in given.counts:
            row = rows.setdefault(way, {})[str(count)] = _apart(given.folder, count, way)
            print(
                f"{way:<24} {count:>10} {row['ms']:>9.1f} {row['processor ms']:>13.1f} "
                f"{row['MB']:>12.0f}",
                flush=True,
            )
        save("engine_growth", {"ways": rows}, "onnxruntime")
    if given.plot:
        _plot(rows, given.plot)


def _apart(folder: str, count: int, way: str) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "research.benchmarks.engine_growth",
        folder,
        "--one",
        str(count),
        way,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    row: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return row


def _one(folder: str, count: int, way: str) -> dict[str, float]:
    """The better of two rankings, and the peak memory of the process."""
    import askline
    from askline.rankers.cascade import Cascade

    question, candidates = _list(count)
    if way not in ("all", "cascade") and "=" not in way:
        ranker = askline.load(way)
    elif way.startswith("alpha="):
        ranker = Cascade.load(folder, alpha=float(way.removeprefix("alpha=")))
    else:
        ranker = Cascade.load(folder, depth=_layers(folder) if way == "all" else 0)
    idle = _resident()
    costs = [cost(lambda: ranker.rank(question, candidates)) for _ in range(2)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "ms": round(min(one.wall for one in costs) * 1e3, 1),
        "processor ms": round(min(one.processor for one in costs) * 1e3, 1),
        "MB": round(peak, 1),
        "MB before": round(idle, 1),
    }


def _list(count: int) -> tuple[str, list[str]]:
    """Read in another process, whose memory is not counted."""
    program = (
        "import json, sys; from research.benchmarks.engine import a_list; "
        f"json.dump(a_list({count}), sys.stdout)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    question, candidates = json.loads(done.stdout)
    return question, candidates


def _layers(folder: str) -> int:
    config = json.loads((Path(folder) / "config.json").read_text("utf-8"))
    return int(config["encoder"]["layers"])


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096 / 2**20


def _plot(rows: dict[str, dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    for way, own in rows.items():
        counts = np.array([int(count) for count in own])
        axes.loglog(counts, [row["ms"] for row in own.values()], marker="o", label=way)
    axes.set_xlabel("candidates")
    axes.set_ylabel("milliseconds")
    axes.legend()
    figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    main()
