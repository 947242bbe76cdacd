"""
Lexical baselines: accuracy with each tie rule, and candidates per second, on every set.

    ASKLINE_DATA=DIR python -m research.benchmarks.lexical

Writes research/results/lexical.json.
"""

from __future__ import annotations

import time
from typing import Any

from askline import data, load
from askline.errors import InputError
from askline.evaluation import evaluate, markdown_table
from askline.text.words import TOKENIZER_NAME

from .common import data_root, save

MEASURES = "MAP,MRR,P@1"
BASELINES = (
    "rr",
    "wo(ties=original)",
    "wo",
    "wo(ties=reversed)",
    "wo+rr",
    "idf-overlap",
    "jaccard",
    "bm25",
    "random",
)
# Cosinet's tables 2, 4 and 5; SQuAD-sent is SQuAD v2.0 dev.
PUBLISHED = {
    ("wikiqa:test", "rr"): (64.21, 64.26, 46.09),
    ("wikiqa:test", "wo"): (51.02, 51.24, 32.51),
    ("wikiqa:test", "wo+rr"): (68.25, 69.43, 56.38),
    ("squad2:dev", "rr"): (53.53, 53.53, 30.55),
    ("squad2:dev", "wo"): (77.90, 77.90, 65.48),
    ("squad2:dev", "wo+rr"): (83.60, 83.60, 73.12),
}
PADDED_TO = 1_300
Rows = list[dict[str, Any]]


def reading() -> Rows:
    """Seconds to read each available set."""
    rows = []
    for name in data.dataset_names():
        start = time.perf_counter()
        try:
            questions = data.load_dataset(name, root=data_root())
        except InputError:
            continue  # this dataset is not available
        seconds = time.perf_counter() - start
        rows.append(
            {
                "set": name,
                "questions": len(questions),
                "candidates": questions.candidate_count,
                "seconds": round(seconds, 3),
            }
        )
    return rows


def accuracy() -> Rows:
    """Each baseline and the published figure, over answerable questions."""
    rows = []
    for name in ("wikiqa:test", "trecqa-clean:test", "squad2:dev"):
        questions = data.filter_questions(data.load_dataset(name, root=data_root()), "answerable")
        for spec in BASELINES:
            percent = evaluate(load(spec), questions, measures=MEASURES).percent
            published = PUBLISHED.get((name, spec), (None, None, None))
            rows.append(
                {"set": name, "ranker": spec, "questions": len(questions)}
                | {measure: round(value, 2) for measure, value in percent.items()}
                | {"published": published}
            )
    return rows


def speed() -> Rows:
    """Candidates per second with 1,300 candidates per question, one thread."""
    padded = data.pad(data.load_dataset("wikiqa:test", root=data_root()), to=PADDED_TO)
    padded = data.filter_questions(padded, "answerable")
    rows = []
    for spec in ("wo+rr", "idf-overlap", "jaccard", "bm25"):
        done = evaluate(load(spec), padded, measures="P@1,Success@100")
        seconds = float(done.seconds.sum())
        rows.append(
            {
                "ranker": spec,
                "candidates": done.candidates,
                "seconds": round(seconds, 2),
                "candidates_per_second": round(done.candidates / seconds),
                **{measure: round(value, 2) for measure, value in done.percent.items()},
            }
        )
    return rows


def main() -> None:
    figures = {
        "tokeniser": TOKENIZER_NAME,
        "reading": reading(),
        "accuracy": accuracy(),
        f"padded to {PADDED_TO}": speed(),
    }
    for title, rows in figures.items():
        if isinstance(rows, list):
            header = list(rows[0])
            cells = [
                [cell if isinstance(cell, (int, float)) else str(cell) for cell in row.values()]
                for row in rows
            ]
            print(f"\n{title}\n{markdown_table(header, cells)}")
    print(f"\nSaved to {save('lexical', figures, 'pytrec_eval-terrier')}")


if __name__ == "__main__":
    main()
