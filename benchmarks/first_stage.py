"""
The first stage beside lexical rankers: what it keeps for the next stage, and how fast.

Recall of an answer in the top 100, 50 and 20 on the WikiQA test questions with an answer, each
padded to 1,300 candidates; Success at 1, 3 and 5 on SelQA dev and on SQuAD-sent (v1.1 dev). Run it
from the checkout: `ASKLINE_DATA=DIR python -m benchmarks.first_stage`. It writes
results/first_stage.json.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

import askline
from askline import data
from askline.types import Question, QuestionSet, Ranker

from . import report

RANKERS = ("jaccard", "idf-overlap", "bm25", "cosinet")
PADDED_TO = 1_300
TIMED = 40  # questions of the padded set, each ranked by every ranker in turn


def main() -> None:
    """Measure, print a table, save the figures."""
    root = report.data_root()
    rankers = {name: askline.load(name) for name in RANKERS}
    wikiqa = data.select(data.pad(data.load("wikiqa:test", root=root), PADDED_TO), "answerable")
    figures: dict[str, object] = {
        f"wikiqa:test padded to {PADDED_TO}, recall %": _table(rankers, wikiqa, (100, 50, 20)),
        "candidates a second": _speeds(rankers, wikiqa.questions[:TIMED]),
    }
    for name in ("selqa:dev", "squad1:dev"):
        sets = data.select(data.load(name, root=root), "answerable")
        figures[f"{name}, success %"] = _table(rankers, sets, (1, 3, 5))
    for title, rows in figures.items():
        print(title)
        for name, row in rows.items():  # type: ignore[attr-defined]
            print(f"  {name:12} {row}")
    print(f"Wrote {report.save('first_stage', figures, 'numpy')}.")


def _table(
    rankers: dict[str, Ranker], questions: QuestionSet, depths: Sequence[int]
) -> dict[str, dict[str, float]]:
    return {name: _found(ranker, questions, depths) for name, ranker in rankers.items()}


def _found(ranker: Ranker, questions: QuestionSet, depths: Sequence[int]) -> dict[str, float]:
    """The share of questions, in percent, with an answer among the first so many."""
    ranks = np.array([_rank(ranker, question) for question in questions])
    return {f"@{depth}": round(100 * float((ranks < depth).mean()), 1) for depth in depths}


def _rank(ranker: Ranker, question: Question) -> int:
    """Where the first answer stands, from 0."""
    hits = ranker.rank(question.text, question.texts)
    return next(place for place, hit in enumerate(hits) if question.candidates[hit.index].is_answer)


def _speeds(rankers: dict[str, Ranker], questions: Sequence[Question]) -> dict[str, int]:
    """
    Of whole calls of `rank`, the rankers in turn on each question.

    The median over the questions, for other work on the machine disturbs single calls.
    """
    seconds: dict[str, list[float]] = {name: [] for name in rankers}
    for question in questions:
        texts = question.texts
        for name, ranker in rankers.items():
            start = time.perf_counter()
            ranker.rank(question.text, texts)
            seconds[name].append((time.perf_counter() - start) / len(texts))
    return {name: round(1 / float(np.median(taken))) for name, taken in seconds.items()}


if __name__ == "__main__":
    main()
