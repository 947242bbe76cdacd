"""
A cascade on a GPU: candidates per second, share of the peak, and memory.

    python -m research.benchmarks.cascade_gpu FOLDER --data DIR [--tuned config.json]

One question with 128 to 50,000 candidates (sentences of SQuAD's dev set, repeated if necessary) in
bfloat16 without padding. Times are of the layers and of the selection of survivors; tokenization
is timed separately. The peak is that of a large matrix product in the same run. The fastest number
of tokens per step and kernel fusion (`compiled`) are selected first. FOLDER is written by `askline
train cascade` or `askline export`; the tuned schedule is that of its `config.json` or of
`--tuned`. With LIMIT_S in the environment, no list is started after that many seconds. Writes
research/results/cascade_gpu.json after each row.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askline import data
from askline.engine.adapter import float_tensors
from askline.models.cascade_config import CascadeConfig
from askline.models.folder import ModelFolder
from askline.models.huggingface import from_huggingface_names
from askline.rankers.schedule import DropFraction, KeepCounts, Schedule, Step, TunedSchedule
from askline.training.cascade.cascade_network import CascadeNetwork, CascadeShape
from askline.training.packing import TokenTable
from askline.training.transformer.pair_network import import_transformers
from research.torch_engine.torch_encoder import TorchEncoder, TorchRun

from .common import save


def torch_network(path: Path, depths: Sequence[int] = ()) -> CascadeNetwork:
    """
    The exported cascade as a torch network, without its reader.

    `depths` replaces those of the folder. A classifier that the folder does not have is new; its
    weights are drawn from torch's generator.
    """
    folder = ModelFolder.open(path, kind="cascade")
    layout = CascadeConfig.from_config(folder.config, path=path)
    library, own = import_transformers(), layout.encoder
    config = library.BertConfig(
        vocab_size=own.vocabulary,
        hidden_size=own.width,
        num_hidden_layers=own.layers,
        num_attention_heads=own.heads,
        intermediate_size=own.inner,
        max_position_embeddings=own.positions,
        layer_norm_eps=own.norm_epsilon,
    )
    encoder = library.BertModel(config, add_pooling_layer=False)
    shape = CascadeShape(tuple(depths) or layout.depths, layout.head, reader=False)
    network = CascadeNetwork(encoder, shape)
    found = float_tensors(folder.stored_tensors())
    kept = tuple(f"classifiers.{depth}." for depth in shape.depths)
    state = {name: value for name, value in found.items() if name.startswith(kept)}
    names = np.array([*encoder.state_dict()])
    for ours, theirs in from_huggingface_names(
        dict(zip(names, names, strict=True)), own.layers
    ).items():
        state[f"encoder.{theirs}"] = found[ours]
    wrong = network.load_state_dict(
        {name: torch.from_numpy(value) for name, value in state.items()}, strict=False
    )
    new = tuple(f"classifiers.{each}." for each in set(shape.depths) - set(layout.depths))
    missing = [
        name
        for name in wrong.missing_keys
        if not name.endswith("position_ids") and not name.startswith(new)
    ]
    if missing or wrong.unexpected_keys:
        raise SystemExit(f"{path}: missing {missing}, too many {wrong.unexpected_keys}")
    return network.eval()


def torch_tokenizer(path: Path) -> Any:
    """The folder's tokenizer as a Hugging Face tokenizer."""
    return import_transformers().PreTrainedTokenizerFast(
        tokenizer_file=str(path / "tokenizer.json"),
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


COUNTS = (128, 1_300, 13_000, 50_000)
BUDGETS = (32_768, 65_536, 131_072, 262_144)
PAPER = (4, 6, 8, 10, 12)
EVERY, TUNED = "alpha 0.3 at every classifier", "tuned"
FLIGHT, ROOM = 1_300, 4.0  # candidates per question, GiB in addition to the weights
AT_ONCE = 16_384  # tokens per layer step if memory is short
CHECKED = 64  # candidates whose scores are compared with float32
PACKAGES = ("torch", "transformers")
Report = dict[str, Any]


def main() -> None:
    """Print the rows and save them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tuned", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS)
    parser.add_argument("--budgets", type=int, nargs="*", default=BUDGETS)
    parser.add_argument("--tried-on", type=int, default=13_000)
    given = parser.parse_args()
    started = time.perf_counter()
    texts = Texts(given.data)
    report: Report = {
        "device": torch.cuda.get_device_name() if given.device == "cuda" else "cpu",
        "peak_tflops": round(_peak(given.device), 2),
    }
    encoder = _fastest(given, texts, report)
    report["against_float32"] = _difference(given.folder, encoder, texts)
    path = given.tuned or given.folder / "config.json"
    tuned = json.loads(path.read_text("utf-8"))["schedule"]
    theirs = tuple(depth for depth in PAPER if depth in encoder.depths)
    schedules: dict[str, Schedule] = {
        "full depth": KeepCounts(encoder.depths),
        f"alpha 0.3 at {','.join(map(str, theirs))}": DropFraction(theirs, 0.3),
        EVERY: DropFraction(encoder.depths, 0.3),
        TUNED: TunedSchedule.from_config(encoder.depths, tuned),
    }
    if given.device == "cuda":
        report["in_flight"] = _in_flight(encoder, texts, schedules)
    report["rows"] = []
    limit = float(os.environ.get("LIMIT_S", "inf"))
    for count in given.counts:
        if time.perf_counter() - started > limit:
            break
        for row in _rows(Tokenised(encoder, texts, count), schedules, report["peak_tflops"]):
            report["rows"].append(row)
            print(json.dumps(row), flush=True)
            save("cascade_gpu", report, *PACKAGES)  # in case the run is interrupted


class Texts:
    """A question with `count` candidates."""

    def __init__(self, root: Path | None) -> None:
        questions = data.load_dataset("squad1:dev", root=root)
        self.question = next(iter(questions)).text
        self._texts = list(dict.fromkeys(text for own in questions for text in own.texts))

    def first(self, count: int) -> list[str]:
        return [self._texts[at % len(self._texts)] for at in range(count)]


class Tokenised:
    """A question with its candidates, from which runs are started repeatedly."""

    def __init__(self, encoder: TorchEncoder, texts: Texts, count: int) -> None:
        self.encoder, self.texts = encoder, texts.first(count)
        started = time.perf_counter()
        self.table = TokenTable.of([texts.question, *self.texts], encoder.tokenizer)
        self.seconds = time.perf_counter() - started

    def begin(self) -> TorchRun:
        return TorchRun(self.encoder, self.table, self.texts)


def _encoder(folder: Path, *, device: str = "cpu", compiled: bool = False) -> TorchEncoder:
    if not (folder / "weights.safetensors").is_file():
        return TorchEncoder.load(folder, device=device, compiled=compiled)
    network = torch_network(folder).to(device)
    return TorchEncoder(network, torch_tokenizer(folder), compiled=compiled)


def _fastest(given: argparse.Namespace, texts: Texts, report: Report) -> TorchEncoder:
    """Select the fastest batch size, with or without fused kernels, at full depth."""
    found: list[tuple[float, TorchEncoder, int]] = []
    report["tries"] = []
    for compiled in (False, True):
        try:
            encoder = _encoder(given.folder, device=given.device, compiled=compiled)
            tokenised = Tokenised(encoder, texts, given.tried_on)
            for budget in given.budgets:
                encoder.budget = budget
                row = _time(tokenised, KeepCounts(encoder.depths).plan(given.tried_on))
                found.append((row["ms"], encoder, budget))
                tried = {"compiled": compiled, "tokens_at_once": budget, **row}
                report["tries"].append(tried)
                print(json.dumps(tried), flush=True)
        except Exception as error:  # a machine without a compiler can still measure the rest
            if not compiled:
                raise
            report["not_compiled"] = f"{type(error).__name__}: {error}"[:400]
            print(report["not_compiled"], flush=True)
    _, encoder, encoder.budget = min(found, key=lambda one: one[0])
    return encoder


def _difference(folder: Path, encoder: TorchEncoder, texts: Texts) -> Report:
    """Differences of the logits at full depth from float32 on the CPU."""
    some, rows = texts.first(CHECKED), np.arange(CHECKED)
    exact = _encoder(folder)
    wanted, got = (
        own.begin(texts.question, some).advance(rows, own.layers) for own in (exact, encoder)
    )
    found = {
        "correlation": round(float(np.corrcoef(wanted, got)[0, 1]), 5),
        "largest difference": round(float(np.abs(wanted - got).max()), 3),
    }
    print(json.dumps(found), flush=True)
    return found


def _rows(tokenised: Tokenised, schedules: dict[str, Schedule], peak: float) -> Iterator[Report]:
    base, count = 0.0, len(tokenised.texts)
    for name, schedule in schedules.items():
        row = _time(tokenised, schedule.plan(count))
        base = base or row["ms"]
        yield {
            "candidates": count,
            "schedule": name,
            "keeps": {step.depth: step.keep for step in schedule.plan(count)},
            **row,
            "times_full": round(base / row["ms"], 2),
            "tokenise_ms": round(1e3 * tokenised.seconds, 1),
            "of_peak": round(row["tflops"] / peak, 3),
        }


def _peak(device: str, size: int = 8192) -> float:
    """TFLOP per second of one large matrix product."""
    if device == "cpu":
        size = 512
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    for _ in range(3):
        left @ right
    best = min(_seconds(lambda: left @ right, device) for _ in range(20))
    return 2 * size**3 / best / 1e12


def _seconds(work: Callable[[], Any], device: str) -> float:
    _wait(device)
    start = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _time(tokenised: Tokenised, plan: Sequence[Step]) -> dict[str, float]:
    """The median of a few runs after warm-up; at most about 3 s per row."""
    count = len(tokenised.texts)
    device = tokenised.encoder.device.type
    flop = _flop(tokenised, plan)
    times: list[float] = []
    while len(times) < (2 if device == "cpu" else 6) and sum(times) < 3:
        run = tokenised.begin()
        times.append(_seconds(lambda run=run: _descend(run, plan), device))  # type: ignore[misc]
    best = float(np.median(times[1:] or times))
    return {
        "ms": round(1e3 * best, 2),
        "candidates_a_second": round(count / best),
        "tflops": round(flop / best / 1e12, 2),
    }


def _descend(run: TorchRun, plan: Sequence[Step]) -> None:
    rows = np.arange(len(run.tokens))
    for step in plan:
        rows = _left(run.advance(rows, step.depth), rows, step.keep)


def _left(scores: Any, rows: Any, keep: int) -> Any:
    """The best candidates, in their original order."""
    if keep == len(rows):
        return rows
    last = np.partition(scores, -keep)[-keep]
    return rows[scores >= last][:keep]


def _flop(tokenised: Tokenised, plan: Sequence[Step]) -> float:
    """Operations of the matrix products for the kept tokens."""
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
        rows = _left(run.advance(rows, step.depth), rows, step.keep)
    return total


def _in_flight(encoder: TorchEncoder, texts: Texts, schedules: dict[str, Schedule]) -> Report:
    """
    Number of questions in progress when a fixed amount of memory is full.

    Only the states of the remaining candidates are kept, so a schedule that drops candidates allows
    more questions. The paper's +52 % is computed from batch sizes.
    """
    fastest, encoder.budget = encoder.budget, AT_ONCE
    tokenised = Tokenised(encoder, texts, FLIGHT)
    found: Report = {"GiB": ROOM, "candidates_each": FLIGHT, "tokens_at_once": AT_ONCE}
    for name in (name for name in schedules if name != TUNED):
        held = found[name] = _until_full(tokenised, schedules[name].plan(FLIGHT))
        found[f"more, {name}"] = round(held / found["full depth"] - 1, 3)
    encoder.budget = fastest
    print(json.dumps(found), flush=True)
    return found


def _until_full(tokenised: Tokenised, plan: Sequence[Step]) -> int:
    """Add questions, spread evenly over the layers, until memory is full."""
    torch.cuda.empty_cache()
    whole = torch.cuda.get_device_properties(0).total_memory
    room = ROOM * 2**30 + torch.cuda.memory_allocated()
    torch.cuda.set_per_process_memory_fraction(room / whole)
    held: list[TorchRun] = []
    layers = plan[-1].depth
    # This step visits all layers, so that any number of questions is spread evenly.
    step = next(number for number in (5, 7, 11) if gcd(number, layers) == 1)
    try:
        while True:
            held.append(_brought_to(tokenised, plan, step * len(held) % layers))
    except torch.cuda.OutOfMemoryError:
        count = len(held)
    finally:
        held.clear()
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    return count


def _brought_to(tokenised: Tokenised, plan: Sequence[Step], layer: int) -> TorchRun:
    """The states of the candidates of one question that are left in a layer."""
    run, rows = tokenised.begin(), np.arange(len(tokenised.texts))
    for step in plan:
        scores = run.advance(rows, step.depth)
        if step.depth > layer:
            break
        rows = _left(scores, rows, step.keep)
    run.keep(rows)
    return run


if __name__ == "__main__":
    main()
