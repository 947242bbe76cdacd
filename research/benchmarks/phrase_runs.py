"""
Result files from a training run of phrase models on a GPU.

    python -m research.benchmarks.phrase_runs FOLDER

The run leaves NAME.json for each network: exact match and F1 of its candidates and of the nearest
phrase, on dev (every eighth article of new_wiki and 100 SQuAD train paragraphs) and on the test
set, in bfloat16 before quantization. Writes research/results/phrase_training.json. The recorded
environment is that of the machine that writes the file; `how` says where training ran.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .common import save

ABOUT = {
    "m6": "all-MiniLM-L6-v2, markers, taught",
    "m12": "ms-marco-MiniLM-L-12-v2, markers, taught",
    "m12r": "ms-marco-MiniLM-L-12-v2 as a reader of half the data, markers, taught",
    "s12": "ms-marco-MiniLM-L-12-v2, span, taught",
    "b": "bge-small-en, span, taught, without an extractor before it",
}
SETS = ("dev", "test")
DEVICE = "one H200, several networks side by side; torch 2.11, transformers 5.17"


def main() -> None:
    """Read, print, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    found = {
        path.stem: json.loads(path.read_text("utf-8"))
        for path in sorted(parser.parse_args().folder.glob("*.json"))
        if path.stem in ABOUT
    }
    how: dict[str, Any] = {
        "device": DEVICE,
        "train questions": 29_506,
        "pairs": 17_375,
        "dev questions": 1_647,
    }
    networks = {ABOUT[name]: _network(run) for name, run in found.items()}
    print(save("phrase_training", {"how": how, "networks": networks}))


def _network(run: dict[str, Any]) -> dict[str, Any]:
    network: dict[str, Any] = {"epochs": run["epochs"], "loss": run["loss"]}
    for name in SETS:
        rows: dict[str, dict[str, float]] = {}
        if f"own_{name}" in run:
            rows["candidates hold it"] = _pair(run[f"own_recall_{name}"])
            rows["nearest, vectors alone"] = _pair(run[f"own_{name}"]["dense"])
            rows["nearest"] = _pair(run[f"own_{name}"]["whole"])
        if f"open_{name}" in run:
            for said, part in (("open, vectors alone", "dense"), ("open, nearest", "whole")):
                found = run[f"open_{name}"][part]
                rows[said] = {key: found[key] for key in ("EM", "F1", "paragraph")}
        if name in run:
            rows["the first extractor's candidates, vectors alone"] = _pair(run[name]["dense"])
            rows["the first extractor's candidates"] = _pair(run[name]["whole"])
        network[name] = rows
    return network


def _pair(values: list[float]) -> dict[str, float]:
    return {"EM": values[0], "F1": values[1]}


if __name__ == "__main__":
    main()
