"""
Figures of an earlier cascade training: the choice of the recipe, and both losses on WikiQA.

    python -m research.benchmarks.cascade_training RUN [--first RUN]

RUN is a folder of JSON files: `general` (the monolithic model), `cand-*` (candidate weights, dev
sets only), `final` (test sets), `adapt-*` (adapted to WikiQA, one per seed), `joint-adapt` and
`drawn-adapt` (both losses from the same start). `--first` is the folder of the round that chose
the recipe. Lists are MAP, MRR and P@1 in percent by depth; for a drop rate the cost relative to
full depth follows. Writes research/results/cascade_training.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .common import save

DEV = ("wikiqa-dev", "wikiqa-train", "trec-dev", "selqa-dev", "shifts-dev")
PADDED = ("wikiqa-dev-400", "trec-dev-400", "shifts-dev-400", "selqa-dev-400")
TEST = ("wikiqa-test", "trec-test", "squad1-dev")

PAPER = {  # Soldaini & Moschitti (2020), Table 2: MAP, MRR
    "wikiqa-test": {"4": (60.1, 60.2), "6": (79.8, 80.3), "8": (84.8, 85.4), "10": (89.7, 89.8)}
    | {"12": (89.9, 91.0)},
    "trec-test": {"4": (67.9, 74.7), "6": (89.7, 95.0), "8": (92.3, 95.3), "10": (92.3, 95.6)}
    | {"12": (92.4, 96.7)},
}

Rows = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--first", type=Path)
    parser.add_argument("--device", default="", help="description of the training machine")
    given = parser.parse_args()
    report: Rows = {
        "trained_on": given.device,
        "chosen_from": _summaries(given.run, "cand-*.json"),
        "general": _read(given.run / "general.json"),
        "start": _summaries(given.run, "start.json"),
        "training": _training(given.run),
        "final": _read(given.run / "final.json"),
        "adapted": _mean([_read(path) for path in sorted(given.run.glob("adapt-*.json"))]),
        "joint": _read(given.run / "joint-adapt.json"),
        "drawn": _read(given.run / "drawn-adapt.json"),
    }
    if given.first is not None:
        report["first_round"] = _summaries(given.first, "*.json")
    save("cascade_training", report)
    print("\n".join(_tables(report)))


def _read(path: Path) -> Rows:
    found: Rows = json.loads(path.read_text()) if path.is_file() else {}
    return found


def _training(folder: Path) -> Rows:
    return {path.stem: _read(path) for path in sorted(folder.glob("train-*.json"))}


def _summaries(folder: Path, pattern: str) -> Rows:
    """By name and depth: MAP on the dev sets, MAP and P@1 on the padded ones, means over sets."""
    found: Rows = {}
    for path in sorted(folder.glob(pattern)):
        rows = _read(path)
        if not all(name in rows for name in (*DEV, *PADDED)):
            continue
        found[path.stem.removeprefix("cand-")] = {
            depth: [_over(rows, DEV, depth, 0), *(_over(rows, PADDED, depth, at) for at in (0, 2))]
            for depth in rows[DEV[0]]
            if depth.isdigit()
        } | {"reading": rows.get("read-shifts")}
    return found


def _over(rows: Rows, names: Iterable[str], depth: str, at: int) -> float:
    return round(float(np.mean([rows[name][depth][at] for name in names])), 2)


def _mean(runs: Sequence[Rows]) -> Rows:
    """Means of the same measures over several seeds."""
    if not runs:
        return {}
    return {
        name: {
            key: np.mean([run[name][key] for run in runs], axis=0).round(2).tolist()
            for key in runs[0][name]
        }
        for name in runs[0]
    }


def _tables(report: Rows) -> list[str]:
    lines = ["| dev: MAP, padded MAP/P@1 | " + " | ".join(_DEPTHS) + " | EM/F1 |"]
    lines.append("|---" * (len(_DEPTHS) + 2) + "|")
    for part in ("first_round", "start", "chosen_from"):
        for name, row in report.get(part, {}).items():
            cells = ["{} {}/{}".format(*row[depth]) if depth in row else "" for depth in _DEPTHS]
            read = row["reading"]
            mark = f"{read['EM']}/{read['F1']}" if read else ""
            lines.append(f"| {name} | {' | '.join(cells)} | {mark} |")
    for part in ("general", "final", "adapted", "joint", "drawn"):
        lines += ["", *_test_table(part, report[part])]
    return lines


_DEPTHS = ("2", "3", "4", "6", "8", "10", "12")


def _test_table(part: str, rows: Rows) -> list[str]:
    names = [name for name in rows if name.partition("-400")[0] in TEST]
    if not names:
        return []
    keys = [key for key in rows[names[0]] if key in _DEPTHS or key.startswith("alpha")]
    lines = [f"| {part}: MAP/MRR/P@1 | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for key in keys:
        cells = []
        for name in names:
            values = rows[name][key]
            cell = "/".join(f"{value:.1f}" for value in values[:3])
            if len(values) > 3:
                cell += f" at {values[3]:.0%}"
            if key in PAPER.get(name, {}):
                cell += " (CT {}/{})".format(*PAPER[name][key])
            cells.append(cell)
        lines.append(f"| {key} | {' | '.join(cells)} |")
    read = rows.get("read-squad")
    return [
        *lines,
        *([f"Reading SQuAD v1.1 dev: EM {read['EM']}, F1 {read['F1']}"] if read else []),
    ]


if __name__ == "__main__":
    main()
