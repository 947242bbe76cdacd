"""
Statistics of the sets, and baselines without training, with intervals.

    ASKLINE_DATA=DIR python -m research.benchmarks.sets

The counts of Cosinet's Table 2 and the Cascade Transformer's Table 1. P@1 and MAP of a random
order are computed exactly. Intervals are 95 % bootstrap intervals over questions. Writes
research/results/sets.json.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from askline import data, load
from askline.errors import InputError
from askline.evaluation import bootstrap_interval, evaluate, markdown_table
from askline.types import QuestionSet

from .common import data_root, save

SETS = (
    *("wikiqa:train", "wikiqa:dev", "wikiqa:test"),
    *("trecqa:train-all", "trecqa-clean:dev", "trecqa-clean:test", "trecqa:test"),
    *("squad1:dev", "squad2:dev", "selqa:dev", "fquad:valid"),
)
MEASURED = ("wikiqa:test", "trecqa-clean:test", "squad2:dev")
BASELINES = ("rr", "wo", "wo(ties=reversed)", "wo+rr")
Row = dict[str, Any]


def counted(name: str) -> Row:
    """Statistics over all questions and over those with an answer."""
    whole = data.load_dataset(name, root=data_root())
    return {
        "all": _counts(whole),
        "answerable": _counts(data.filter_questions(whole, "answerable")),
    }


def _counts(questions: QuestionSet) -> Row:
    found = data.compute_statistics(questions)
    return {
        "questions": found.questions,
        "sentences": found.candidates,
        "answered %": round(found.percent_answerable, 2),
        "with both labels": found.both,
        "candidates a question": round(found.candidates_per_question, 2),
        "answers a question": round(found.positives_per_question, 2),
        "question words": round(found.question_words, 2),
        "candidate words": round(found.candidate_words, 2),
        "random": _random(questions),
    }


def _random(questions: QuestionSet) -> Row:
    """Expected measures of a random order; questions without an answer count 0."""
    sizes = [(len(question.candidates), _answers(question)) for question in questions]
    return {
        "P@1": round(100 * float(np.mean([some / max(size, 1) for size, some in sizes])), 2),
        "MAP": round(100 * float(np.mean([_expected(size, some) for size, some in sizes])), 2),
    }


def _answers(question: Any) -> int:
    return sum(candidate.is_answer for candidate in question.candidates)


def _expected(size: int, answers: int) -> float:
    """
    Expected average precision of a random order.

    An answer is at rank r with probability 1/size, and each of the r - 1 ranks before it holds one
    of the other answers with probability (answers - 1) / (size - 1).
    """
    if not answers:
        return 0.0
    places = np.arange(1, size + 1)
    others = (answers - 1) / (size - 1) if size > 1 else 0.0
    return float(np.mean((1 + (places - 1) * others) / places))


def baselines(name: str) -> Row:
    questions = data.filter_questions(data.load_dataset(name, root=data_root()), "answerable")
    rows: Row = {}
    for spec in BASELINES:
        done = evaluate(load(spec), questions, measures="MAP,MRR,P@1")
        rows[spec] = {measure: round(value, 2) for measure, value in done.percent.items()}
        for measure, values in done.values.items():
            interval = bootstrap_interval(100 * values)
            rows[spec][f"{measure} 95 %"] = [round(interval.low, 2), round(interval.high, 2)]
    return rows


def main() -> None:
    counts = {}
    for name in SETS:
        try:
            counts[name] = counted(name)
        except InputError:
            continue  # this dataset is not available
    figures = {"sets": counts, "baselines": {name: baselines(name) for name in MEASURED}}
    header = ["set", *(key for key in counts["wikiqa:test"]["all"] if key != "random")]
    cells = [[name, *(str(own["all"][key]) for key in header[1:])] for name, own in counts.items()]
    print(markdown_table(header, cells))
    for name, rows in figures["baselines"].items():
        print(f"\n{name}, questions with an answer")
        for spec, row in rows.items():
            print(f"  {spec:18} {row}")
    print(f"\nSaved to {save('sets', figures, 'pytrec_eval-terrier')}")


if __name__ == "__main__":
    main()
