"""
The first stage beside lexical rankers: recall for the next stage, and speed.

    ASKLINE_DATA=DIR python -m research.benchmarks.first_stage [--ca FOLDER]

Success at 100, 50 and 20 on WikiQA test padded to 1,300 candidates; Success at 1, 3 and 5 on SelQA
dev and SQuAD-sent (v1.1 dev). FOLDER is a Compare-Aggregate model, trained as in
`research.benchmarks.sequential`; it ranks the padded questions. Writes
research/results/first_stage.json.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence

import numpy as np

import askline
from askline import data
from askline.rankers.base import Ranker
from askline.rankers.paper_networks import CompareAggregate
from askline.types import Question, QuestionSet

from . import common

RANKERS = ("jaccard", "idf-overlap", "bm25", "cosinet")
PADDED_TO = 1_300
TIMED = 40  # questions of the padded set that are timed

Row = dict[str, float]


def main() -> None:
    """Measure, print a table, save the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1] if __doc__ else None)
    parser.add_argument("--ca", metavar="FOLDER", help="a Compare-Aggregate model to compare")
    options = parser.parse_args()
    root = common.data_root()
    load = os.getloadavg()[0]
    rankers = {name: askline.load(name) for name in RANKERS}
    padded = data.filter_questions(
        data.pad(data.load_dataset("wikiqa:test", root=root), PADDED_TO), "answerable"
    )
    speeds = _speeds(rankers, padded.questions[:TIMED])  # first, while the machine is idle
    recall = {name: _found(ranker, padded, (100, 50, 20)) for name, ranker in rankers.items()}
    if options.ca:
        slow = {"compare-aggregate": CompareAggregate.load(options.ca)}
        recall |= {name: _found(ranker, padded, (100, 50, 20)) for name, ranker in slow.items()}
        speeds |= _speeds(slow, padded.questions[:: TIMED // 4])
    figures: dict[str, dict[str, Row]] = {
        f"wikiqa:test padded to {PADDED_TO}, recall %": recall,
        "candidates a second": speeds,
    }
    for name in ("selqa:dev", "squad1:dev"):
        sets = data.filter_questions(data.load_dataset(name, root=root), "answerable")
        rows = {label: _found(ranker, sets, (1, 3, 5)) for label, ranker in rankers.items()}
        figures[f"{name}, success %"] = rows
    for title, rows in figures.items():
        print(title)
        for name, row in rows.items():
            print(f"  {name:17} {row}")
    about = {"load before": round(load, 2), "threads": os.environ.get("OMP_NUM_THREADS", "default")}
    print(f"Wrote {common.save('first_stage', figures | about, 'numpy')}. {about}")


def _found(ranker: Ranker, questions: QuestionSet, depths: Sequence[int]) -> Row:
    """Share of questions with an answer among the first k, in percent."""
    ranks = first_answers(ranker, questions)
    shares = {f"@{depth}": round(100 * float((ranks < depth).mean()), 1) for depth in depths}
    return shares | {"questions": len(questions)}


def first_answers(ranker: Ranker, questions: QuestionSet) -> np.ndarray:
    """Rank of the first answer of each question, from 0."""
    return np.array([_rank(ranker, question) for question in questions])


def _rank(ranker: Ranker, question: Question) -> int:
    """Rank of the first answer, from 0."""
    hits = ranker.rank(question.text, question.texts)
    return next(place for place, hit in enumerate(hits) if question.candidates[hit.index].is_answer)


def _speeds(rankers: Mapping[str, Ranker], questions: Sequence[Question]) -> dict[str, Row]:
    """
    Candidates per second of `rank` calls: the median over questions, all rankers in turn.

    By wall clock and by processor time of all threads; other load on the machine affects only the
    first.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in rankers}
    for question in questions:
        texts = question.texts
        for name, ranker in rankers.items():
            wall, cpu = time.perf_counter(), time.process_time()
            ranker.rank(question.text, texts)
            spent = time.perf_counter() - wall, time.process_time() - cpu
            taken[name].append((spent[0] / len(texts), spent[1] / len(texts)))
    return {
        name: {
            "by the clock": round(1 / float(np.median([one[0] for one in each]))),
            "by processor time": round(1 / float(np.median([one[1] for one in each]))),
        }
        for name, each in taken.items()
    }


if __name__ == "__main__":
    main()
