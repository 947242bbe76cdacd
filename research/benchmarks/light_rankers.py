"""
Cosinet's Tables 4 and 5: every row trained with several seeds and measured.

    python -m research.benchmarks.light_rankers --vectors FILE --device cuda --jobs 16
    python -m research.benchmarks.light_rankers --vectors FILE --time

The recipes below were chosen by cross-validation (research/notes/light-rankers.md). Writes
research/results/light_rankers.json. The second form times one training, of Cosinet list + BiRNN on
WikiQA, and writes research/results/light_rankers_time_DEVICE.json.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev
from tempfile import TemporaryDirectory
from typing import Any

import torch

from askline import data
from askline.evaluation import markdown_table
from askline.models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    ListLayerKind,
    RelationalCNNConfig,
)
from askline.models.word_vectors import WordVectors
from askline.training.light.encoded_questions import EncodedQuestions, encode_questions
from askline.training.light.light_networks import parameter_count
from askline.training.light.light_training import (
    LightDevSet,
    LightRecipe,
    TrainedLightRanker,
    export_light_ranker,
    train_light_ranker,
)
from askline.types import QuestionSet

from .common import data_root, load, save


@dataclass(frozen=True)
class Source:
    """Word vectors, device and cache folder."""

    vectors: str
    """A file that WordVectors.save wrote."""
    device: str
    folder: str
    """Encoded sets are cached here for all processes, because encoding is slow."""


@cache
def questions(name: str) -> QuestionSet:
    """Questions with an answer; a plus sign joins the names of several sets."""
    parts = [data.load_dataset(part, root=data_root()) for part in name.split("+")]
    found = (question for part in parts for question in data.filter_questions(part, "answerable"))
    return QuestionSet(name, tuple(found))


@cache
def word_vectors(path: str) -> WordVectors:
    """Read once per process."""
    return WordVectors.load(path)


@cache
def encoded(name: str, layout: LightConfig, source: Source) -> EncodedQuestions:
    """An encoded set on the device; the first process that needs it writes the cache."""
    reads = "_".join(layout.input_channels) or "words"
    file = Path(source.folder) / f"{name.replace(':', '-')}_{reads}_{layout.vector_scale:g}.pt"
    if not file.exists():
        found = encode_questions(questions(name), word_vectors(source.vectors), layout)
        half = file.with_suffix(f".{os.getpid()}")
        torch.save(found, half)
        half.replace(file)
    kept: EncodedQuestions = torch.load(file, weights_only=False)
    return kept.to(source.device)


@dataclass(frozen=True)
class Row:
    """One row of a table."""

    label: str
    layout: LightConfig
    recipe: LightRecipe
    published: tuple[float, float] | None = None
    adapt: LightRecipe | None = None
    """For SQuAD rows: recipe of a further training on WikiQA, which is a separate row there."""
    turn: int = 0
    """Rows with a lower turn are started first."""

    @property
    def encoding(self) -> LightConfig:
        """The layout for encoding, which does not depend on the list layer."""
        if isinstance(self.layout, (CosinetConfig, CompareAggregateConfig)):
            return replace(self.layout, list_layer="none")
        return self.layout


@dataclass(frozen=True)
class Baseline:
    """Published figures of rankers without training."""

    label: str
    wikiqa: tuple[float, float]
    squad: tuple[float, float]


BASELINES = (
    Baseline("RR", (64.21, 64.26), (30.55, 53.53)),
    Baseline("WO", (51.02, 51.24), (65.48, 77.90)),
    Baseline("WO+RR", (68.25, 69.43), (73.12, 83.60)),
)

COSINET, CA = CosinetConfig(), CompareAggregateConfig()
# Three input channels: 6,000 more parameters.
RICH = CosinetConfig(channels=("related", "exact", "idf"))

# Learning rates by cross-validation: research/notes/light-rankers.md.
POINT = LightRecipe(loss="point", learning_rate=4e-3, batch_size=4)
ALONE = LightRecipe(learning_rate=4e-3, batch_size=4)
LISTS = LightRecipe(learning_rate=1e-3, batch_size=16)
CA_POINT = LightRecipe(loss="point", learning_rate=2e-3, batch_size=4)
CA_ALONE = LightRecipe(learning_rate=2e-3, batch_size=4)
CA_LISTS = LightRecipe(learning_rate=5e-4, batch_size=4)
REL = LightRecipe(loss="point", learning_rate=1e-3, batch_size=4)

_NAMES: dict[ListLayerKind, str] = {
    "rnn": "RNN",
    "birnn": "BiRNN",
    "lstm": "LSTM",
    "bilstm": "BiLSTM",
}
_COSINET_LISTS: dict[ListLayerKind, tuple[float, float]] = {
    "rnn": (74.78, 76.35),
    "birnn": (75.62, 77.13),
    "lstm": (74.31, 75.78),
    "bilstm": (75.32, 76.85),
}
_CA_LISTS: dict[ListLayerKind, tuple[float, float]] = {
    "rnn": (74.73, 76.35),
    "birnn": (74.97, 76.44),
    "lstm": (74.82, 76.42),
    "bilstm": (74.27, 75.74),
}
REPORTED = {
    "Cosinet list + RNN": (66.08, 60.17),
    "Cosinet list + BiRNN": (66.3, 60.20),
    "Cosinet list + LSTM": (66.9, 61.23),
    "Cosinet list + BiLSTM": (67.4, 61.69),
}
"""The project report's figures for these rows on WikiQA, MAP and MRR."""


def _lists(
    name: str,
    layout: CosinetConfig | CompareAggregateConfig,
    recipe: LightRecipe,
    published: Mapping[ListLayerKind, tuple[float, float]],
    *,
    adapt: LightRecipe | None = None,
    turn: int = 0,
    later: int = 0,
) -> tuple[Row, ...]:
    """A row for each list layer; those without a published figure get the turn `later`."""
    return tuple(
        Row(
            f"{name} list + {label}",
            replace(layout, list_layer=kind),
            recipe,
            published.get(kind),
            adapt,
            turn if kind in published else later,
        )
        for kind, label in _NAMES.items()
    )


WIKIQA: tuple[Row, ...] = (
    Row("Cosinet", COSINET, POINT, (70.95, 72.86)),
    Row("Cosinet list", COSINET, ALONE, (71.22, 73.07)),
    *_lists("Cosinet", COSINET, LISTS, _COSINET_LISTS),
    Row("CA", CA, CA_POINT, (72.03, 73.39), turn=1),
    Row("CA list", CA, CA_ALONE, (71.43, 73.55), turn=1),
    *_lists("CA", CA, CA_LISTS, _CA_LISTS, turn=1),
    Row("Rel-CNN", RelationalCNNConfig(), REL),
    Row("Cosinet list, three channels", RICH, replace(ALONE, dropout=0.2)),
    Row(
        "Cosinet list + BiRNN, three channels",
        replace(RICH, list_layer="birnn"),
        replace(LISTS, dropout=0.2),
    ),
)

# Training sets for SQuAD-sent; SQuAD's own train file was not available.
SQUAD_TRAIN = "squadshifts:train+squad1:train"

# Chosen without the test sets, as are the rates of adaptation.
_LONG = LightRecipe(learning_rate=2e-3, batch_size=32, epochs=2, dropout=0.2)
_ADAPT = LightRecipe(learning_rate=2e-3, batch_size=16, dropout=0.4)
_CA_LONG = LightRecipe(learning_rate=5e-4, batch_size=32, epochs=2)
_CA_ADAPT = LightRecipe(learning_rate=1e-3, batch_size=16, dropout=0.2)
# Networks that read the list need a lower rate.
_ADAPT_LISTS, _CA_ADAPT_LISTS = (
    replace(_ADAPT, learning_rate=5e-4),
    replace(_CA_ADAPT, learning_rate=2e-4),
)
_COSINET_SQUAD: dict[ListLayerKind, tuple[float, float]] = {"birnn": (86.18, 91.97)}
_CA_SQUAD: dict[ListLayerKind, tuple[float, float]] = {"birnn": (86.32, 92.05)}

SQUAD: tuple[Row, ...] = (
    Row(
        "Cosinet",
        COSINET,
        replace(_LONG, loss="point"),
        (86.18, 91.81),
        replace(_ADAPT, loss="point"),
        turn=2,
    ),
    Row("Cosinet list", COSINET, _LONG, (85.12, 91.16), _ADAPT, turn=2),
    *_lists("Cosinet", COSINET, _LONG, _COSINET_SQUAD, adapt=_ADAPT_LISTS, turn=2, later=6),
    Row(
        "CA",
        CA,
        replace(_CA_LONG, loss="point"),
        (85.71, 91.49),
        replace(_CA_ADAPT, loss="point"),
        turn=2,
    ),
    Row("CA list", CA, _CA_LONG, (85.17, 90.69), _CA_ADAPT, turn=2),
    *_lists("CA", CA, _CA_LONG, _CA_SQUAD, adapt=_CA_ADAPT_LISTS, turn=2, later=7),
    Row(
        "Rel-CNN",
        RelationalCNNConfig(),
        replace(_LONG, loss="point", learning_rate=1e-3),
        adapt=replace(_ADAPT, loss="point", learning_rate=1e-3),
        turn=2,
    ),
    Row(
        "Cosinet list + BiRNN, three channels",
        replace(RICH, list_layer="birnn"),
        _LONG,
        adapt=_ADAPT_LISTS,
        turn=2,
    ),
)


Figures = dict[str, Any]
TRANSFERRED = "after the SQuAD-like sets"


@dataclass(frozen=True)
class Job:
    """One training of a row, by its index."""

    table: str
    place: int
    seed: int
    source: Source
    until: float
    """Jobs that would start later are skipped."""
    keep: str | None = None
    """Folder for the models of the first seed on the SQuAD-like sets."""

    @property
    def row(self) -> Row:
        return ROWS[self.table][self.place]


ROWS = {"wikiqa": WIKIQA, "squad": SQUAD}
TRAIN = {"wikiqa": "wikiqa:train", "squad": SQUAD_TRAIN}
MEASURED = {"wikiqa": ("wikiqa:dev", "wikiqa:test"), "squad": ("squadshifts:dev", "squad2:dev")}


def prepare(job: Job) -> None:
    """Encode the training set of a row into the cache."""
    encoded(TRAIN[job.table], job.row.encoding, job.source)


def run(job: Job) -> list[Figures]:
    """Train one row with one seed; its figures, and those after adaptation to WikiQA."""
    if time.time() > job.until:
        return []
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")  # affects GPUs only
    row = job.row
    trained = _trained(job, job.table, row.recipe)
    done = [_figures(job, job.table, row.label, trained)]
    if job.keep and job.table == "squad" and job.seed == 0:
        folder = Path(job.keep) / row.label.replace(" ", "-").lower()
        export_light_ranker(trained, folder, vectors=word_vectors(job.source.vectors))
    if row.adapt is not None:
        trained = _trained(job, "wikiqa", row.adapt, trained.network.state_dict())
        done.append(_figures(job, "wikiqa", f"{row.label}, {TRANSFERRED}", trained))
    return done


def _trained(
    job: Job, table: str, recipe: LightRecipe, start: Mapping[str, torch.Tensor] | None = None
) -> TrainedLightRanker:
    numbers = encoded(TRAIN[table], job.row.encoding, job.source)
    return train_light_ranker(job.row.layout, numbers, replace(recipe, seed=job.seed), start=start)


def _figures(job: Job, table: str, label: str, trained: TrainedLightRanker) -> Figures:
    dev, test = (
        LightDevSet(questions(name), encoded(name, job.row.encoding, job.source)).measure(
            trained.network
        )
        for name in MEASURED[table]
    )
    return {
        "table": table,
        "row": label,
        "seed": job.seed,
        "parameters": parameter_count(trained.network),
        "seconds": trained.seconds,
        "dev": dev,
        "test": test,
    }


def summary(table: str, done: Sequence[Figures], rows: Sequence[Row]) -> list[Figures]:
    """Mean and standard deviation over seeds, rows in the order of the table."""
    published = {row.label: row.published for row in rows}
    labels = dict.fromkeys([*published, *(one["row"] for one in done if one["table"] == table)])
    out: list[Figures] = []
    for label in labels:
        own = [one for one in done if one["table"] == table and one["row"] == label]
        if not own:
            continue
        line: Figures = {"row": label, "parameters": own[0]["parameters"], "seeds": len(own)}
        line["seconds"] = round(fmean(one["seconds"] for one in own), 1)
        for part in ("dev", "test"):
            for name in own[0][part]:
                values = [one[part][name] for one in own]
                line[f"{part} {name}"] = round(fmean(values), 2)
                line[f"{part} {name} ±"] = round(stdev(values), 2) if len(values) > 1 else None
        line["published"] = published.get(label)
        line["reported"] = REPORTED.get(label) if table == "wikiqa" else None
        out.append(line)
    return out


def shown(lines: Sequence[Figures], names: Sequence[str]) -> str:
    def cells(line: Figures) -> list[str]:
        ours = [f"{line[f'test {name}']:.2f} ± {line[f'test {name} ±'] or 0:.1f}" for name in names]
        theirs = "/".join(map(str, line["published"])) if line["published"] else "–"
        tail = [f"{line['dev MAP']:.2f}", f"{line['parameters']:,}", str(line["seconds"])]
        return [line["row"], theirs, *ours, *tail]

    header = ["row", "published", *names, "dev MAP", "parameters", "seconds"]
    return markdown_table(header, list(map(cells, lines)))


def report(done: Sequence[Figures], options: argparse.Namespace, device: str) -> Path:
    tables = {
        "baselines": [asdict(line) for line in BASELINES],
        "wikiqa": summary("wikiqa", done, WIKIQA),
        "squad": summary("squad", done, SQUAD),
        "runs": list(done),
        "vectors": str(word_vectors(options.vectors)),
        "device": device,
        "jobs at once": options.jobs,
    }
    return save("light_rankers", tables, "torch")


def tables(options: argparse.Namespace) -> None:
    until = time.time() + options.limit
    done = kept(options.again) if options.go_on else []
    had = {(one["table"], one["row"], one["seed"]) for one in done}
    with (
        TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(options.jobs) as pool,
    ):
        jobs = chosen(options, Source(options.vectors, options.device, folder), until)
        jobs = [job for job in jobs if (job.table, job.row.label, job.seed) not in had]
        device = pool.apply(device_name, (options.device,))
        ahead = {job.row.encoding: job for job in jobs if job.table == "squad"}
        pool.map_async(prepare, ahead.values(), chunksize=1)  # while other jobs run
        for figures in pool.imap_unordered(run, jobs):
            done.extend(figures)
            path = report(done, options, device)
            for one in figures:
                print(f"{one['table']} {one['row']}, seed {one['seed']}: {one['seconds']:.1f} s")
    print(f"\nWikiQA test\n{shown(summary('wikiqa', done, WIKIQA), ('MAP', 'MRR'))}")
    print(f"\nSQuAD-sent\n{shown(summary('squad', done, SQUAD), ('P@1', 'MRR'))}")
    print(f"\nSaved to {path}")


def kept(again: str | None) -> list[Figures]:
    """Runs of the existing file, without those of the table `again`."""

    def table(one: Figures) -> str:
        return "squad" if TRANSFERRED in one["row"] else str(one["table"])

    return [one for one in load("light_rankers")["runs"] if table(one) != again]


def chosen(options: argparse.Namespace, source: Source, until: float) -> list[Job]:
    """Jobs sorted by turn and seed, so that an interrupted run has most rows."""
    jobs = [
        Job(table, place, seed, source, until, options.keep)
        for table, rows in ROWS.items()
        for place, row in enumerate(rows)
        for seed in range(options.seeds)
        if table in options.tables and options.rows in row.label
    ]
    return sorted(jobs, key=lambda job: (job.row.turn, job.seed))


def device_name(device: str) -> str:
    """Called in another process: a process that has used the GPU cannot be forked."""
    return torch.cuda.get_device_name() if device == "cuda" else "cpu"


def training_time(options: argparse.Namespace) -> None:
    """Seconds to train Cosinet list + BiRNN on WikiQA."""
    load = os.getloadavg()[0]
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is imported
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures = pool.apply(timed, (options.vectors, options.device, options.times))
    figures |= {"load before": round(load, 2)}
    print(figures)
    print(f"Saved to {save(f'light_rankers_time_{options.device}', figures, 'torch')}")


def timed(vectors: str, device: str, times: int) -> Figures:
    """Seconds of encoding, and of training with one and with two torch threads."""
    row = next(row for row in WIKIQA if row.label == "Cosinet list + BiRNN")
    start = time.perf_counter()
    table, (on, dev) = word_vectors(vectors), map(questions, ("wikiqa:train", "wikiqa:dev"))
    numbers = encode_questions(on, table, row.encoding, device=device)
    held = LightDevSet(dev, encode_questions(dev, table, row.encoding, device=device))
    taken = round(time.perf_counter() - start, 2)
    figures: Figures = {"device": device, "vectors": str(table), "encoding": taken}
    for threads in (2, 1):
        torch.set_num_threads(threads)
        runs = [_clocked(row, numbers, held) for _ in range(times)]
        figures[f"threads: {threads}"] = {
            name: {"runs": taken, "median": round(median(taken), 2)}
            for name, taken in ((name, [run[name] for run in runs]) for name in runs[0])
        }
    return figures


def _clocked(row: Row, numbers: EncodedQuestions, dev: LightDevSet) -> dict[str, float]:
    """Seconds of one training, without and with the dev measures."""
    wall, cpu = time.perf_counter(), time.process_time()
    trained = train_light_ranker(row.layout, numbers, row.recipe, dev=dev)
    return {
        "training": round(trained.seconds, 2),
        "with dev measures": round(time.perf_counter() - wall, 2),
        "processor time": round(time.process_time() - cpu, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1] if __doc__ else None)
    parser.add_argument("--vectors", required=True, help="a file written by WordVectors.save")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel processes")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", default="wikiqa,squad")
    parser.add_argument("--rows", default="", help="only rows whose label contains this text")
    parser.add_argument("--limit", type=float, default=1e9, help="start no job after N seconds")
    parser.add_argument(
        "--go-on", action="store_true", help="only rows that are not in the result file"
    )
    parser.add_argument(
        "--again", choices=[*ROWS], help="with --go-on: train the rows of this table again"
    )
    parser.add_argument("--keep", help="folder for models of the SQuAD-like sets, first seed")
    parser.add_argument("--time", action="store_true", help="only time one training")
    parser.add_argument("--times", type=int, default=3, help="number of repetitions with --time")
    options = parser.parse_args()
    training_time(options) if options.time else tables(options)


if __name__ == "__main__":
    main()
