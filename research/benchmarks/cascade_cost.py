"""
Cost and loss of the shipped drop schedule, beside full depth and the paper's rule.

    ASKLINE_DATA=DIR python -m research.benchmarks.cascade_cost --scores DIR [--model DIR]

Measured on WikiQA, TrecQA (clean) and SQuAD-sent, each question padded to 400 candidates, and on
WikiQA padded to 1,300. Everything is computed from score tables, one file per set, which `--model
DIR` creates with the engine if they are missing. `--device cuda` creates them with torch in
bfloat16; `--tables 2/6` creates only the second sixth of those of all sets, dev sets for other
benchmarks among them, so that several processes can share the work. Of the schedule, the numbers of
candidates count here and not the cutoffs (`research.benchmarks.cutoffs`). Writes
research/results/cascade_cost.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import askline
from askline import data
from askline.engine.layerwise import LayerwiseEncoder
from askline.evaluation import markdown_table
from askline.evaluation.significance import bootstrap_interval
from askline.rankers.cascade import shipped_folder
from askline.rankers.schedule import DropFraction, Schedule, Step
from askline.tuning import ScoreTable, score_set
from askline.tuning.schedule_fitting import fingerprint
from askline.tuning.schedule_search import Trial, measure
from askline.tuning.score_tables import CandidateLists, make_lists, with_first_stage
from askline.types import QuestionSet

from . import common
from .common import evenly

PADDED, LONG = 400, 1_300
SAMPLE = {"squadshifts:dev": 1_000, "squad2:dev": 1_000}  # at even steps through the set
LONG_SAMPLE = {"selqa:dev": 250}
LONG_SETS = ("wikiqa:dev", "selqa:dev", "wikiqa:test")
DEV = ("wikiqa:dev", "trecqa-clean:dev", "selqa:dev", "squadshifts:dev")
TEST = {"wikiqa:test": "WikiQA", "trecqa-clean:test": "TrecQA", "squad2:dev": "SQuAD-sent"}
FIRST = "cosinet"
CUTS = (120, 100, 20)
"""What the first stage keeps: as tuned with the schedule, the default and the fastest."""
# Soldaini & Moschitti (2020), table 3: P@1 on ASNQ and the saving, full depth being 53.2.
PUBLISHED = {0.3: (52.9, -37), 0.4: (52.5, -45), 0.5: (52.4, -51)}
PUBLISHED_DEPTHS = (4, 6, 8, 10, 12)
Row = dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """Score tables by set and length, from files or from the engine."""

    folder: Path
    model: Path | None
    first_layers: float
    device: str = ""
    """Device of torch, which then scores instead of the engine."""

    def load(self, name: str, pad: int, *, light: bool = True) -> ScoreTable | None:
        path = self.folder / f"scores.{name.replace(':', '_')}.{pad}.npz"
        if pad == LONG and name not in LONG_SETS:
            return None
        if not path.is_file() and self.model is None:
            return None
        if not path.is_file() and self.model is not None:
            tag = fingerprint(self.model)
            score_set(
                self._encoder(self.model), questions(name, pad), model=tag, pad=pad, path=path
            )
        table = ScoreTable.load(path)
        return self._lit(table, path) if light else table

    def _encoder(self, model: Path) -> LayerwiseEncoder:
        if not self.device:
            return askline.Cascade.load(model).encoder
        from research.torch_engine.torch_encoder import TorchEncoder

        from .cascade_gpu import torch_network, torch_tokenizer

        return TorchEncoder(torch_network(model).to(self.device), torch_tokenizer(model))

    def _lit(self, table: ScoreTable, path: Path) -> ScoreTable:
        """The table with the order of the first stage, which is stored beside it."""
        kept = path.with_name(path.name.replace("scores.", "first."))
        if kept.is_file():
            with np.load(kept) as found:
                if tuple(found["questions"].tolist()) == table.questions:
                    return table.with_first_stage_scores(found["light"], self.first_layers)
        ranker = askline.load(FIRST)
        lists = questions(table.name, table.pad)
        lit = with_first_stage(table, lists, ranker, layers=self.first_layers)
        np.savez_compressed(kept, light=np.asarray(lit.first_stage), questions=lit.questions)
        return lit


def questions(name: str, pad: int) -> QuestionSet:
    """The padded set, restricted to questions with an answer, then sampled."""
    found = data.filter_questions(
        data.pad(data.load_dataset(name, root=common.data_root()), pad), "answerable"
    )
    wanted = (SAMPLE if pad == PADDED else SAMPLE | LONG_SAMPLE).get(name)
    return evenly(found, wanted)


def make_some(tables: Tables, part: str) -> None:
    """Create a share of all tables, longest first."""
    wanted = [(name, pad) for pad in (LONG, PADDED) for name in (*reversed(DEV), *TEST)]
    number, _, of = part.partition("/")
    for name, pad in wanted[int(number) - 1 :: int(of)]:
        tables.load(name, pad, light=False)
        print(name, pad, flush=True)


def main() -> None:
    """Measure, print, save."""
    tables, options = _arguments()
    if options.tables:
        make_some(tables, options.tables)
        return
    cascade = askline.Cascade.load(options.model or shipped_folder())
    figures: dict[str, Any] = {
        "depths": list(cascade.encoder.depths),
        "first layers": tables.first_layers,
        "in sequence (SR), at 4, 6, 8, 10, 12": {
            str(alpha): round(_in_sequence(PUBLISHED_DEPTHS, PADDED, alpha), 3)
            for alpha in PUBLISHED
        },
    }
    for name, label in TEST.items():
        for pad in (PADDED, LONG):
            table = tables.load(name, pad)
            if table is not None:
                title = f"{label}, {len(table.questions)} questions, {pad} candidates"
                figures[title] = rows = measured(table, cascade.schedule)
                print(f"\n{title}\n{_shown(rows)}")
    figures["published, ASNQ"] = {str(alpha): own for alpha, own in PUBLISHED.items()}
    print(f"Wrote {common.save('cascade_cost', figures)}.")


def measured(table: ScoreTable, schedule: Schedule) -> list[Row]:
    """Every row on one test set."""
    lists = make_lists([table], int(table.sizes.min()))
    count = lists.count
    full = measure(lists, ())
    rows = [_row("full depth", full, full, (), lists)]
    theirs = tuple(depth for depth in lists.depths if depth in PUBLISHED_DEPTHS)
    for depths, where in ((theirs, f"at {', '.join(map(str, theirs))}"), (lists.depths, "at all")):
        for alpha in PUBLISHED:
            rows.append(_scheduled(f"α {alpha} {where}", DropFraction(depths, alpha), full, lists))
            rows[-1]["the same in sequence (SR)"] = round(_in_sequence(depths, count, alpha), 3)
    rows.append(_scheduled("tuned", schedule, full, lists))
    for cut in CUTS:
        keeps = (Step(0, cut), *schedule.plan(cut)[:-1])
        rows.append(_row(f"{FIRST} % {cut} >> tuned", measure(lists, keeps), full, keeps, lists))
        rest = measure(lists, keeps[:1])
        rows.append(_row(f"{FIRST} % {cut} >> full depth", rest, full, keeps[:1], lists))
    return rows


def _scheduled(name: str, schedule: Schedule, full: Trial, lists: CandidateLists) -> Row:
    keeps = schedule.plan(lists.count)[:-1]
    return _row(name, measure(lists, keeps), full, keeps, lists)


def _row(name: str, trial: Trial, full: Trial, keeps: Sequence[Step], lists: CandidateLists) -> Row:
    apart = 100 * (trial.precision - full.precision)
    interval = bootstrap_interval(apart)
    labels = ranked_labels(lists, keeps)
    return {
        "row": name,
        "P@1": round(100 * float(trial.precision.mean()), 2),
        "MAP": round(100 * float(trial.average_precision.mean()), 2),
        "MRR": round(100 * float(reciprocal_ranks(labels).mean()), 2),
        "nDCG@10": round(100 * float(ndcg(labels, 10).mean()), 2),
        "P@1 against full depth": round(float(apart.mean()), 2),
        "95 %": [round(interval.low, 2), round(interval.high, 2)],
        "token-layers": round(float(trial.cost.mean()), 4),
        "candidate-layers": round(_candidate_layers(keeps, lists), 4),
        "keeps": {str(step.depth): step.keep for step in keeps},
    }


def ranked_labels(lists: CandidateLists, keeps: Sequence[Step]) -> NDArray[np.bool_]:
    """(questions, count) the labels in the final order: what is dropped last comes first."""
    rows = np.tile(np.arange(lists.count), (len(lists), 1))
    dropped: list[NDArray[np.int64]] = []
    for step in (*keeps, Step(lists.depths[-1], lists.count)):
        by_depth = lists.ranks[lists.depths.index(step.depth)] if step.depth else lists.first_stage
        assert by_depth is not None
        order = np.argsort(np.take_along_axis(by_depth, rows, axis=1), axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1)
        dropped.insert(0, rows[:, step.keep :])
        rows = rows[:, : step.keep]
    return np.take_along_axis(lists.labels, np.concatenate([rows, *dropped], axis=1), axis=1)


def reciprocal_ranks(labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Of each question's first answer; 0 if it has none."""
    return np.asarray(labels.any(axis=1) / (1 + labels.argmax(axis=1)), float)


def ndcg(labels: NDArray[np.bool_], cut: int) -> NDArray[np.float64]:
    """As trec_eval's ndcg_cut."""
    gains = 1 / np.log2(np.arange(2, labels.shape[1] + 2))
    gains[cut:] = 0
    best = np.cumsum(gains)[np.maximum(1, labels.sum(axis=1)) - 1]
    return np.asarray(labels @ gains / best, float)


def _candidate_layers(keeps: Sequence[Step], lists: CandidateLists) -> float:
    """Cost relative to full depth, including that of the first stage in layers."""
    spent = lists.first_stage_layers * lists.count if keeps and not keeps[0].depth else 0.0
    steps = [Step(0, lists.count), *keeps, Step(lists.depths[-1], 0)]
    spent += sum(before.keep * (after.depth - before.depth) for before, after in pairwise(steps))
    return spent / (lists.depths[-1] * lists.count)


def _in_sequence(depths: tuple[int, ...], count: int, alpha: float) -> float:
    """Cost of separate encoders for each depth, where every stage starts at its first layer."""
    plan = DropFraction(depths, alpha).plan(count)
    entered = [count, *(step.keep for step in plan[:-1])]
    spent = sum(number * step.depth for number, step in zip(entered, plan, strict=True))
    return spent / (depths[-1] * count)


def _shown(rows: Sequence[Row]) -> str:
    header = ["row", "P@1", "MAP", "P@1 against full depth", "95 %", "token-layers", "keeps"]
    return markdown_table(
        header,
        [
            [
                str(row["row"]),
                f"{row['P@1']:.2f}",
                f"{row['MAP']:.2f}",
                f"{row['P@1 against full depth']:+.2f}",
                f"{row['95 %'][0]:+.2f} to {row['95 %'][1]:+.2f}",
                f"{row['token-layers']:.1%}",
                ", ".join(f"{depth}:{keep}" for depth, keep in row["keeps"].items()),
            ]
            for row in rows
        ],
    )


def _arguments() -> tuple[Tables, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", type=Path, required=True, help="folder of score tables")
    parser.add_argument("--model", type=Path, help="exported folder, to compute missing tables")
    parser.add_argument("--device", default="", help="torch device, to score with torch")
    parser.add_argument(
        "--tables", default="", metavar="I/N", help="only create a share of the tables"
    )
    parser.add_argument("--first-layers", type=float, default=0.4, help="cost of the first stage")
    options = parser.parse_args()
    options.scores.mkdir(parents=True, exist_ok=True)
    found = Tables(options.scores, options.model, options.first_layers, options.device)
    return found, options


if __name__ == "__main__":
    main()
