"""
Training runs behind the shipped cascade, compared on dev sets and measured on test sets.

    python -m research.benchmarks.cascade_runs PART … --data DIR --general DIR --work DIR

- `train`: fits new classifiers to the general model, then trains all variants and seeds in parallel
  (`--variants`, `--seeds`, `--seconds`).
- `candidates`: the mean of each variant's seeds, and weights on the way to it (`--shares`), on dev
  sets at every depth. `refit`: fits the early classifiers to such weights again.
- `readers`: trains a reader on each named state for a short time; EM and F1 on held-out paragraphs.
- `tests`: an exported folder (`--folder`) on the test sets.
- `join`: merges all figures in WORK into research/results/cascade_runs.json.

Every part writes JSON files to WORK and skips what already exists there.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing as mp
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from askline import data
from askline.engine.tokenizer import WordPiece
from askline.evaluation import Run, make_qrels, score_phrases, score_run
from askline.models.cascade_config import Adapter
from askline.models.huggingface import CascadeCheckpoint
from askline.rankers.requests import sort_by_score
from askline.training.cascade.adapter_networks import AdapterReader
from askline.training.cascade.cascade_examples import load_transfer_sets
from askline.training.cascade.cascade_network import (
    CascadeDevSet,
    CascadeNetwork,
    CascadeShape,
    save_cascade,
    score_pairs,
)
from askline.training.cascade.cascade_training import (
    FIT,
    TRANSFER,
    CascadePhase,
    CascadeRecipe,
    anchored,
    train_cascade,
)
from askline.training.cascade.reader_training import (
    ReaderRecipe,
    WordPieceTokenizer,
    answer_examples,
    train_reader,
    word_piece_template,
)
from askline.training.cascade.span_reading import read_spans
from askline.training.checkpoint import average_weights, interpolate_weights
from askline.training.losses import CascadeObjective
from askline.training.packing import TokenTable
from askline.training.transformer.cross_encoder_folder import load_tokenizer
from research.benchmarks.span_answers import measure_reading
from research.recipes.general import SETS

from .cascade_gpu import torch_network
from .common import save
from .transformer_jobs import PADDED_TO, Spec, sample

SHAPE = CascadeShape((2, 3, 4, 6, 8, 10, 12), "mixed")
TAUGHT = CascadeObjective(teach=1.0, anchor=10.0)
STILL = replace(TRANSFER, objective=TAUGHT, keep_last=True, dropout=False)
VARIANTS: Mapping[str, CascadeRecipe] = {
    "dropout": replace(STILL, dropout=True),
    "still": STILL,
    "unread": anchored(TRANSFER),
}
"""With or without dropout, with the reader trained along, or anchored to the general model."""
SHARES = (1.0, 0.8, 0.6)
DEV: Mapping[str, Spec] = {
    "wikiqa-dev": ("wikiqa:dev", "answerable", False, None),
    "wikiqa-train": ("wikiqa:train", "answerable", False, None),
    "trec-dev": ("trecqa-clean:dev", "both", False, None),
    "selqa-dev": ("selqa:dev", "answerable", False, None),
    "shifts-dev": ("squadshifts:dev", "both", False, 1200),
    "wikiqa-dev-400": ("wikiqa:dev", "answerable", True, None),
    "wikiqa-train-400": ("wikiqa:train", "answerable", True, 400),
    "trec-dev-400": ("trecqa-clean:dev", "both", True, None),
    "selqa-dev-400": ("selqa:dev", "answerable", True, 150),
    "shifts-dev-400": ("squadshifts:dev", "both", True, 150),
}
TEST: Mapping[str, Spec] = {
    "wikiqa-test": ("wikiqa:test", "answerable", False, None),
    "trec-test": ("trecqa-clean:test", "both", False, None),
    "squad1-dev": ("squad1:dev", "answerable", False, None),
    "wikiqa-test-400": ("wikiqa:test", "answerable", True, None),
    "trec-test-400": ("trecqa-clean:test", "both", True, None),
    "squad1-dev-400": ("squad1:dev", "answerable", True, 500),
}
MEASURES = ("MAP", "MRR", "P@1")
ALPHAS = (0.3, 0.4, 0.5)
ALPHA_DEPTHS = (4, 6, 8, 10, 12)
HELD_OUT = "squadshifts:dev"

Figures = dict[str, Any]
State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class World:
    """Folders and datasets, which are read once before processes are forked."""

    root: Path
    general: Path
    work: Path
    device: str

    @cached_property
    def tokeniser(self) -> Any:
        return load_tokenizer(self.general)

    @cached_property
    def transfer(self) -> Any:
        return load_transfer_sets(SETS, self.tokeniser, self.work / "negatives.npz", root=self.root)

    @cached_property
    def dev_sets(self) -> dict[str, CascadeDevSet]:
        return self.dev(DEV)

    def dev(self, specs: Mapping[str, Spec]) -> dict[str, CascadeDevSet]:
        found = {}
        for name, (source, which, padded, most) in specs.items():
            questions = data.load_dataset(source, root=self.root)
            if padded:
                questions = data.pad(questions, to=PADDED_TO, same_topic=True)  # the harder lists
            kept = data.filter_questions(questions, which)
            found[name] = CascadeDevSet.of(
                kept if most is None else sample(kept, most), self.tokeniser
            )
        return found

    def teacher(self) -> CascadeNetwork:
        shape = CascadeShape((SHAPE.depths[-1],), reader=False)
        return CascadeNetwork.start(self.general, shape).to(self.device).eval()

    def network(self, state: Mapping[str, torch.Tensor] | None = None) -> CascadeNetwork:
        torch.manual_seed(1)
        network = CascadeNetwork.start(self.general, SHAPE)
        if state is not None:
            network.load_state_dict(dict(state))
        return network.to(self.device).eval()

    def state(self, name: str) -> State:
        """`start`, `VARIANT-SEED`, `VARIANT-mean`, or a mean with the share of the way to it."""
        stem, _, share = name.partition("@")
        path = self.work / f"{stem}.safetensors"
        if stem.endswith("-mean") and not path.is_file():
            variant = stem.removesuffix("-mean")
            runs = sorted(self.work.glob(f"{variant}-[0-9].safetensors"))
            save_file(average_weights([load_file(one) for one in runs]), path)
        found = load_file(path)
        return interpolate_weights(self.state("start"), found, float(share)) if share else found

    def keep(self, name: str, network: CascadeNetwork) -> None:
        found = {key: value.cpu().contiguous() for key, value in network.state_dict().items()}
        save_file(found, self.work / f"{name}.safetensors")

    def put(self, name: str, figures: Figures) -> None:
        (self.work / f"{name}.json").write_text(json.dumps(figures), encoding="utf-8")
        print(name, json.dumps(figures)[:1500], flush=True)


def fit(world: World, seconds: float) -> None:
    """Fit new classifiers and the reader to a frozen encoder."""
    lists, reading = world.transfer
    network = world.network()
    start = time.perf_counter()
    recipe = replace(FIT, objective=TAUGHT, keep_last=True, max_seconds=seconds)
    train_cascade(network, [CascadePhase(lists, recipe, reading, world.teacher())])
    world.keep("start", network)
    world.put("train-start", {"seconds": round(time.perf_counter() - start)})


def refit(world: World, name: str, seconds: float) -> None:
    """Fit the early classifiers again to the chosen weights."""
    lists, _ = world.transfer
    network = world.network(world.state(name))
    recipe = replace(FIT, objective=VARIANTS["unread"].objective, keep_last=True, paragraphs=0)
    phase = CascadePhase(
        lists, replace(recipe, learning_rate=3e-4, max_seconds=seconds), None, world.teacher()
    )
    train_cascade(network, [phase])
    world.keep(f"{name.replace('@', '-')}-refit", network)


def train(world: World, variant: str, seed: int, seconds: float) -> None:
    lists, reading = world.transfer
    recipe = replace(VARIANTS[variant], seed=seed, max_seconds=seconds)
    network, teacher = world.network(world.state("start")), world.teacher()
    steps: list[int] = []
    phase = CascadePhase(lists, recipe, reading if recipe.paragraphs else None, teacher)
    history = train_cascade(network, [phase], on_step=lambda step: steps.append(step.total))
    world.keep(f"{variant}-{seed}", network)
    row = {"steps": len(steps), "of": steps[-1], "loss": [round(one.loss, 4) for one in history]}
    world.put(f"train-{variant}-{seed}", row)


def candidate(world: World, name: str, sets: Mapping[str, CascadeDevSet]) -> None:
    """Figures by depth, and full depth compared with the general model per question."""
    network = world.network(world.state(name))
    beside = world.teacher()
    figures: Figures = {}
    for own, dev in sets.items():
        scores = _scores(network, dev)
        figures[own] = _by_depth(dev, dict(zip(SHAPE.depths, scores, strict=True)))
        general = _scored(dev, _scores(beside, dev)[-1])
        figures[own]["general"] = _percent(general)
        apart = 100 * (_scored(dev, scores[-1])["MAP"] - general["MAP"])
        figures[own]["beside"] = [round(float(each.mean()), 2) for each in (apart, abs(apart))]
    paragraphs = data.load_paragraphs(HELD_OUT, root=world.root)
    figures["read-shifts"] = measure_reading(network, world.tokeniser, paragraphs)
    world.put(f"cand-{name}", figures)


def _scores(network: CascadeNetwork, dev: CascadeDevSet) -> np.ndarray:
    return score_pairs(network, dev.table, dev.template, dev.first, dev.second, limit=dev.limit)


def _scored(dev: CascadeDevSet, scores: np.ndarray) -> dict[str, Any]:
    cuts = np.cumsum([len(question.candidates) for question in dev.questions])[:-1]
    hits = map(sort_by_score, np.split(scores.astype(np.float64), cuts))
    run = Run.from_hits("network", zip(dev.questions, hits, strict=True))
    return dict(score_run(run, make_qrels(dev.questions), measures=MEASURES))


def _percent(found: Mapping[str, Any]) -> list[float]:
    return [round(100 * float(found[name].mean()), 2) for name in MEASURES]


def _by_depth(dev: CascadeDevSet, scores: Mapping[int, np.ndarray]) -> Figures:
    figures: Figures = {str(d): _percent(_scored(dev, row)) for d, row in scores.items()}
    for alpha in ALPHAS:
        row, cost = _dropped(dev, scores, alpha)
        figures[f"alpha {alpha}"] = [*_percent(_scored(dev, row)), round(cost, 3)]
    return figures


def _dropped(
    dev: CascadeDevSet, scores: Mapping[int, np.ndarray], alpha: float
) -> tuple[np.ndarray, float]:
    """Scores that rank dropped candidates below kept ones, and the cost relative to full depth."""
    sizes = [len(question.candidates) for question in dev.questions]
    ends = np.cumsum(sizes)
    made, layers = np.empty(ends[-1]), 0
    depths = [depth for depth in ALPHA_DEPTHS if depth in scores]
    for end, size in zip(ends, sizes, strict=True):
        rows, before = np.arange(end - size, end), 0
        for depth in depths:
            layers += len(rows) * (depth - before)
            before, own = depth, scores[depth][rows]
            made[rows] = depth * 1000.0 + own
            rows = rows[np.argsort(-own, kind="stable")[: len(rows) - int(alpha * len(rows))]]
    return made, layers / (ends[-1] * depths[-1])


class _Reading(nn.Module):
    """A linear reader on the last layer of an encoder."""

    def __init__(self, reader: AdapterReader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, batch: Any) -> Any:
        return SimpleNamespace(ends=self.reader(batch))


def reader(world: World, name: str, rank: int, seconds: float) -> None:
    """Train a reader's adapter on an encoder in float."""
    folder = save_cascade(world.network(world.state(name)), world.tokeniser, world.work / name)
    source = CascadeCheckpoint.read(folder)
    tokeniser = WordPiece.load(folder / "tokenizer.json")
    paragraphs = [one for own in SETS[:2] for one in data.load_paragraphs(own, root=world.root)]
    examples = answer_examples(paragraphs, tokeniser, positions=source.config.encoder.positions)
    layout = replace(source.config, adapter=Adapter(0, rank))
    torch.manual_seed(1)
    made = AdapterReader(layout, source.tensors).to(world.device)
    steps: list[int] = []
    recipe = ReaderRecipe(max_seconds=seconds, seed=1)
    train_reader(
        made,
        examples,
        word_piece_template(tokeniser),
        recipe,
        on_step=lambda step: steps.append(step.done),
    )
    figures = read_held_out(world, made, tokeniser)
    world.put(f"reader-{name}-{rank}", {"steps": len(steps), "rank": rank, **figures})
    save_file({k: torch.from_numpy(v) for k, v in made.tensors().items()},
              world.work / f"reader-{name}-{rank}.safetensors")  # fmt: skip


def read_held_out(world: World, made: AdapterReader, tokeniser: WordPiece) -> Figures:
    held = data.load_paragraphs(HELD_OUT, root=world.root)
    asked = [(q, one.text) for one in held for q in one.questions if q.answers]
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(text, len(numbers)) for text in (q.text, of)] for q, of in asked]
    texts = list(numbers)
    first, second = np.array(rows, np.int64).T
    pieces = WordPieceTokenizer(tokeniser)
    table = TokenTable.of(texts, pieces)
    network: Any = _Reading(made)
    found = read_spans(network, table, word_piece_template(tokeniser), first, second)
    said = {}
    for (question, text), (begin, end, _, _) in zip(asked, found, strict=True):
        places = tokeniser.tokens_with_offsets(text)
        said[question.id] = text[places[int(begin)][1] : places[int(end)][2]] if begin >= 0 else ""
    golds = {q.id: [gold.text for gold in q.answers] for q, _ in asked}
    return dict(score_phrases(said, golds).percent)


def together(
    jobs: Iterable[tuple[Callable[..., Any], tuple[Any, ...]]],
    meanwhile: Callable[[], Any] = lambda: None,
) -> None:
    """Run jobs in parallel on one device, each in its own process."""
    parting = mp.get_context("fork")
    running = [parting.Process(target=work, args=given) for work, given in jobs]
    for one in running:
        one.start()
    meanwhile()
    for one in running:
        one.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[*_PARTS], nargs="+")
    for name in ("data", "general", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--variants", nargs="+", default=[*VARIANTS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=240.0, help="Seconds of each training.")
    parser.add_argument("--fit-seconds", type=float, default=math.inf)
    parser.add_argument("--shares", nargs="+", default=[*map(str, SHARES)])
    parser.add_argument("--state", nargs="+", default=["still-mean"])
    parser.add_argument("--folder", type=Path, help="An exported folder, for `tests`.")
    parser.add_argument("--rank", type=int, default=24)
    given = parser.parse_args()
    world = World(given.data, given.general, given.work, given.device)
    for part in given.part:
        start = time.perf_counter()
        _PARTS[part](world, given)
        print(f"{part}: {time.perf_counter() - start:.0f} s", flush=True)


def _train(world: World, given: argparse.Namespace) -> None:
    _ = world.transfer  # read before processes are forked
    if not (world.work / "start.safetensors").exists():
        together([(fit, (world, given.fit_seconds))])
    runs = [pair.split(":") for pair in given.variants]  # NAME or NAME:SEED
    jobs = [
        (train, (world, name, seed, given.seconds))
        for name, *own in runs
        for seed in (map(int, own) if own else given.seeds)
        if not (world.work / f"{name}-{seed}.safetensors").exists()
    ]
    together(jobs, meanwhile=lambda: world.dev_sets)


def _candidates(world: World, given: argparse.Namespace) -> None:
    sets = world.dev_sets
    names = [one.partition(":")[0] for one in given.variants]
    together(
        [(world.state, (f"{name}-mean",)) for name in names]
    )  # torch must not be used in the parent
    points = [
        f"{name}-mean" + (f"@{share}" if float(share) < 1 else "")
        for name in names
        for share in given.shares
    ]
    again = sorted(path.stem for path in world.work.glob("*-refit.safetensors"))
    chosen = ["start", *points, *again]
    for at in range(0, len(chosen), 5):
        together([(candidate, (world, name, sets)) for name in chosen[at : at + 5]])


def _refit(world: World, given: argparse.Namespace) -> None:
    names = [one.partition(":")[0] for one in given.variants]
    together([(world.state, (f"{name}-mean",)) for name in names])
    together(
        [
            (refit, (world, f"{name}-mean@{share}", given.fit_seconds))
            for name in names
            for share in given.shares
            if float(share) < 1
        ]
    )


def _readers(world: World, given: argparse.Namespace) -> None:
    _ = world.tokeniser
    together([(reader, (world, name, given.rank, given.seconds)) for name in given.state])


def tests(world: World, folder: Path, sets: Mapping[str, CascadeDevSet]) -> None:
    """An exported folder in torch, at every depth and with drop rates."""
    network = torch_network(folder).to(world.device)
    depths = network.shape.depths
    world.put(
        f"test-{folder.name}",
        {
            own: _by_depth(dev, dict(zip(depths, _scores(network, dev), strict=True)))
            for own, dev in sets.items()
        },
    )


def _tests(world: World, given: argparse.Namespace) -> None:
    together([(tests, (world, given.folder, world.dev(TEST)))])


def _join(world: World, _: argparse.Namespace) -> None:
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in _json(world.work)}
    means = {
        name.removeprefix("cand-"): _means(rows)
        for name, rows in found.items()
        if name.startswith("cand-")
    }
    save("cascade_runs", {"means over dev sets": means, **found}, "torch")


def _means(rows: Figures) -> Figures:
    """By depth: MAP unpadded, MAP and P@1 padded; full depth compared with the general model."""
    plain = [name for name in DEV if not name.endswith("-400")]
    padded = [name for name in DEV if name.endswith("-400")]

    def mean(names: Sequence[str], key: str, at: int) -> float:
        return round(float(np.mean([rows[name][key][at] for name in names])), 2)

    figures: Figures = {
        key: [mean(plain, key, 0), mean(padded, key, 0), mean(padded, key, 2)]
        for key in (*map(str, SHAPE.depths), "general")
    }
    return figures | {
        "MAP apart": mean(plain, "beside", 1),
        "MAP apart, padded": mean(padded, "beside", 1),
        "reading": rows["read-shifts"],
    }


def _json(folder: Path) -> Sequence[Path]:
    return sorted(folder.glob("*.json"))


_PARTS: Mapping[str, Callable[[World, argparse.Namespace], None]] = {
    "train": _train,
    "refit": _refit,
    "candidates": _candidates,
    "readers": _readers,
    "tests": _tests,
    "join": _join,
}

if __name__ == "__main__":
    main()
