"""
A cascade on a GPU: candidates a second, the share of the card's peak, and what fits a memory.

    python -m benchmarks.cascade_gpu FOLDER --data DIR [--keeps 2:100,6:30] [--out FILE]

One question with 128, 1,300 and 13,000 candidates (sentences of SQuAD's dev set), bfloat16, no
padding. Times are of the layers and of choosing who goes on, with texts already tokenised, which
is timed on its own. The peak is that of a large matrix product measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askline import data
from askline.rankers.schedule import Drop, Keeps, Schedule, parse_keeps
from askline.training.cascade.staged import TorchEncoder, TorchRun
from askline.training.packed.packing import TokenTable

COUNTS = (128, 1_300, 13_000)
PAPER = (4, 6, 8, 10, 12)
FLIGHT, ROOM = 1_300, 4.0  # candidates of a question, GiB beside the weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--keeps", default="2:100,6:30")
    parser.add_argument("--out", type=Path, default=Path("results/cascade_gpu.json"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS)
    given = parser.parse_args()
    encoder = TorchEncoder.load(given.folder, device=given.device)
    questions = data.load("squad1:dev", root=given.data)
    texts = list(dict.fromkeys(text for question in questions for text in question.texts))
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if given.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "peak_tflops": round(_peak(given.device), 2),
        "rows": [],
    }
    schedules: dict[str, Schedule] = {
        "full depth": Keeps(encoder.depths),
        "alpha 0.3 at 4,6,8,10,12": Drop(PAPER, 0.3),
        "alpha 0.3 at every classifier": Drop(encoder.depths, 0.3),
        f"keeps {given.keeps}": Keeps(encoder.depths, parse_keeps(given.keeps, encoder.depths)),
    }
    question = next(iter(questions)).text
    for count in given.counts:
        chosen = [texts[at % len(texts)] for at in range(count)]
        started = time.perf_counter()
        tokenised = _Tokenised(encoder, question, chosen)
        begin = time.perf_counter() - started
        base = 0.0
        for name, schedule in schedules.items():
            row: dict[str, Any] = _time(tokenised, schedule)
            base = base or row["ms"]
            row = {"candidates": count, "schedule": name, **row}
            row |= {"times_full": round(base / row["ms"], 2), "tokenise_ms": round(1e3 * begin, 1)}
            row["of_peak"] = round(row["tflops"] / report["peak_tflops"], 3)
            report["rows"].append(row)
            print(json.dumps(row), flush=True)
            _write(report, given.out)  # what there is, should the run be cut short
    if given.device == "cuda":
        tokenised = _Tokenised(encoder, question, [texts[at % len(texts)] for at in range(FLIGHT)])
        flight = {
            name: _flight(tokenised, schedules[name])
            for name in ("full depth", "alpha 0.3 at 4,6,8,10,12")
        }
        held = [each["questions"] for each in flight.values()]
        report["in_flight"] = flight | {"more": round(held[1] / held[0] - 1, 3)}
        print(json.dumps(report["in_flight"]))
        _write(report, given.out)


class _Tokenised:
    """A question and its candidates, from which runs begin again and again."""

    def __init__(self, encoder: TorchEncoder, question: str, texts: Sequence[str]) -> None:
        self.encoder, self.texts = encoder, texts
        self.table = TokenTable.of([question, *texts], encoder.tokeniser)

    def begin(self) -> TorchRun:
        return TorchRun(self.encoder, self.table, self.texts)


def _write(report: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")


def _peak(device: str, size: int = 8192) -> float:
    """TFLOP a second of one large matrix product."""
    if device == "cpu":
        size = 512
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    for _ in range(3):
        left @ right
    best = min(_seconds(lambda: left @ right, device) for _ in range(20))
    return 2 * size**3 / best / 1e12


def _seconds(work: Any, device: str) -> float:
    _wait(device)
    start = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _time(tokenised: _Tokenised, schedule: Schedule) -> dict[str, float]:
    count = len(tokenised.texts)
    plan = schedule.plan(count)
    device = tokenised.encoder.device.type
    times, flop = [], 0.0
    for attempt in range(3 if device == "cpu" else 8):
        run = tokenised.begin()
        times.append(_seconds(lambda run=run: _descend(run, plan), device))
        if attempt == 0:
            flop = _flop(tokenised, plan)
        if sum(times) > 4:
            break
    best = float(np.median(times[1:] or times))
    return {
        "ms": round(1e3 * best, 2),
        "candidates_a_second": round(count / best),
        "tflops": round(flop / best / 1e12, 2),
    }


def _descend(run: TorchRun, plan: Sequence[Any]) -> None:
    rows = np.arange(len(run.tokens))
    for step in plan:
        scores = run.advance(rows, step.depth)
        rows = np.sort(rows[np.argsort(-scores, kind="stable")[: step.keep]])


def _flop(tokenised: _Tokenised, plan: Sequence[Any]) -> float:
    """Of the matrix products that the tokens which were kept go through."""
    config: Any = tokenised.encoder.network.encoder.config
    run = tokenised.begin()
    width, inner = config.hidden_size, config.intermediate_size
    rows, done, total = np.arange(len(run.tokens)), 0, 0.0
    for step in plan:
        tokens = run.tokens[rows].astype(float)
        layer = 2 * (4 * width**2 + 2 * width * inner) * tokens.sum()
        layer += 4 * width * (tokens**2).sum()
        total += (step.depth - done) * layer
        done = step.depth
        scores = run.advance(rows, step.depth)
        rows = np.sort(rows[np.argsort(-scores, kind="stable")[: step.keep]])
    return total


def _flight(tokenised: _Tokenised, schedule: Schedule) -> dict[str, float]:
    """
    How many questions can be under way at once, each a stage further than the next.

    What is held between stages is the states of those who are left, so a schedule that drops holds
    more questions in the same memory: the argument behind the paper's +52 %.
    """
    plan = schedule.plan(len(tokenised.texts))
    layers = plan[-1].depth
    few, many = (_memory(tokenised, plan, layers * times) for times in (1, 3))
    each = (many - few) / (2 * layers)
    fits = int((ROOM * 2**30 - (few - each * layers)) / each)
    return {"questions": fits, "MiB_each": round(each / 2**20, 2)}


def _memory(tokenised: _Tokenised, plan: Sequence[Any], count: int) -> float:
    """The most memory with so many questions under way, spread evenly over the layers."""
    torch.cuda.empty_cache()
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    held = []
    for number in range(count):
        at = number % plan[-1].depth  # the layer that this question is in
        run, rows = tokenised.begin(), np.arange(len(tokenised.texts))
        for step in plan:
            if step.depth > at and step is not plan[0]:
                break
            scores = run.advance(rows, step.depth)
            if step.depth <= at:
                rows = np.sort(rows[np.argsort(-scores, kind="stable")[: step.keep]])
        run.keep(rows)
        held.append(run)
    return float(torch.cuda.max_memory_allocated() - base)


if __name__ == "__main__":
    main()
