"""
Cosinet's tables 4 and 5 beside ours: every row trained with several seeds, then measured.

    ASKLINE_DATA=DIR python -m benchmarks.light_rankers --vectors FILE --device cuda --jobs 16
    ASKLINE_DATA=DIR python -m benchmarks.light_rankers --vectors FILE --time

The second form trains Cosinet list + BiRNN on WikiQA with two threads and prints seconds alone.
Recipes are fixed in `light_rows.py`; they were chosen by cross-validation on WikiQA train and dev.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import torch

from askline import data
from askline.evaluation import markdown_table
from askline.models.layouts import Layout
from askline.models.vectors import WordVectors
from askline.training import EncodedSet, Trained, encode, parameter_count, train
from askline.training.measuring import DevSet
from askline.types import QuestionSet

from .light_rows import BASELINES, SQUAD, SQUAD_TRAIN, WIKIQA, Row
from .report import data_root, save

Figures = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One training, by the place of its row in `light_rows`."""

    table: str
    place: int
    seed: int
    vectors: str
    device: str
    until: float
    """Jobs that would start later than this are left out."""

    @property
    def row(self) -> Row:
        return (WIKIQA if self.table == "wikiqa" else SQUAD)[self.place]


@cache
def questions(name: str) -> QuestionSet:
    """A set by its name, or several by their names with plus signs between."""
    parts = [data.load(part, root=data_root()) for part in name.split("+")]
    found = (question for part in parts for question in data.select(part, "answerable"))
    return QuestionSet(name, tuple(found))


@cache
def word_vectors(path: str) -> WordVectors:
    return WordVectors.load(path)


@cache
def encoded(name: str, layout: Layout, vectors: str, device: str) -> EncodedSet:
    table = word_vectors(vectors)
    return encode(questions(name), table, layout, device=device)


def measured(trained: Trained, name: str, numbers: EncodedSet) -> Figures:
    return DevSet(questions(name), numbers).measure(trained.network)


def run(job: Job) -> list[Figures]:
    """Train one row with one seed: its figures, and those after adaptation where it is adapted."""
    if time.time() > job.until:
        return []
    torch.set_num_threads(1)
    row = job.row

    def numbers(name: str) -> EncodedSet:
        return encoded(name, row.encoding, job.vectors, job.device)

    def figures(table: str, label: str, trained: Trained, sets: Sequence[str]) -> Figures:
        dev, test = (measured(trained, name, numbers(name)) for name in sets)
        return {
            "table": table,
            "row": label,
            "seed": job.seed,
            "parameters": parameter_count(trained.network),
            "seconds": trained.seconds,
            "dev": dev,
            "test": test,
        }

    recipe = replace(row.recipe, seed=job.seed)
    if job.table == "wikiqa":
        trained = train(row.layout, numbers("wikiqa:train"), recipe)
        return [figures("wikiqa", row.label, trained, ("wikiqa:dev", "wikiqa:test"))]
    trained = train(row.layout, numbers("+".join(SQUAD_TRAIN)), recipe)
    done = [figures("squad", row.label, trained, ("squadshifts:dev", "squad2:dev"))]
    if row.adapt is not None:
        state = trained.network.state_dict()
        adapted = replace(row.adapt, seed=job.seed)
        trained = train(row.layout, numbers("wikiqa:train"), adapted, start=state)
        label = f"{row.label}, after the SQuAD-like sets"
        done.append(figures("wikiqa", label, trained, ("wikiqa:dev", "wikiqa:test")))
    return done


def summary(table: str, done: Sequence[Figures], rows: Sequence[Row]) -> list[Figures]:
    """Mean and deviation over seeds, rows in the order of the table."""
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


def report(done: Sequence[Figures], options: argparse.Namespace) -> Path:
    tables = {
        "baselines": [asdict(line) for line in BASELINES],
        "wikiqa": summary("wikiqa", done, WIKIQA),
        "squad": summary("squad", done, SQUAD),
        "runs": list(done),
        "vectors": str(word_vectors(options.vectors)),
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "jobs at once": options.jobs,
    }
    return save("light_rankers", tables, "torch")


def tables(options: argparse.Namespace) -> None:
    until = time.time() + options.limit
    jobs = [
        Job(table, place, seed, options.vectors, options.device, until)
        for seed in range(options.seeds)
        for table, rows in (("squad", SQUAD), ("wikiqa", WIKIQA))
        for place, row in enumerate(rows)
        if table in options.tables and options.rows in row.label
    ]
    jobs.sort(key=lambda job: job.row.cost)  # what is broken off then has most rows done
    done: list[Figures] = []
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for figures in pool.imap_unordered(run, jobs):
            done.extend(figures)
            report(done, options)
    print(f"\nWikiQA test\n{shown(summary('wikiqa', done, WIKIQA), ('MAP', 'MRR'))}")
    print(f"\nSQuAD-sent\n{shown(summary('squad', done, SQUAD), ('P@1', 'MRR'))}")
    print(f"\nKept in {report(done, options)}")


def training_time(options: argparse.Namespace) -> None:
    """Seconds of Cosinet list + BiRNN on WikiQA: reading and encoding apart, training apart."""
    torch.set_num_threads(2)
    row = next(row for row in WIKIQA if row.label == "Cosinet list + BiRNN")
    start = time.perf_counter()
    numbers = encoded("wikiqa:train", row.layout, options.vectors, options.device)
    encoding = time.perf_counter() - start
    seconds = [train(row.layout, numbers, row.recipe).seconds for _ in range(3)]
    figures = {"device": options.device, "threads": 2, "encoding": round(encoding, 2)}
    figures |= {"training": [round(one, 2) for one in seconds], "median": round(median(seconds), 2)}
    print(figures)
    print(f"Kept in {save(f'light_rankers_time_{options.device}', figures, 'torch')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1] if __doc__ else None)
    parser.add_argument("--vectors", required=True, help="a file that WordVectors.save wrote")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=1, help="trainings at once")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", default="wikiqa,squad")
    parser.add_argument("--rows", default="", help="only rows whose label has this in it")
    parser.add_argument("--limit", type=float, default=1e9, help="start no job after these seconds")
    parser.add_argument("--time", action="store_true", help="only time one training")
    options = parser.parse_args()
    training_time(options) if options.time else tables(options)


if __name__ == "__main__":
    main()
