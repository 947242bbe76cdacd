"""
A cascade at full depth beside the general model that it was made from, question by question.

    ASKLINE_DATA=DIR python -m benchmarks.cascade_general CASCADE_DIR GENERAL_DIR [--on SET …]

Both are runtime folders that `askline export` makes, in float32: the general model is a cascade
with its one classifier. The difference in MAP and P@1 stands with its 95 % interval and the paired
randomisation test. It writes results/cascade_general.json.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import askline
from askline import data
from askline.evaluation import Evaluation, evaluate
from askline.evaluation.significance import compare
from askline.rankers.schedule import Keeps

from . import report

SETS = ("wikiqa:test", "trecqa-clean:test")
MEASURES = ("MAP", "P@1")


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("cascade")
    parser.add_argument("general")
    parser.add_argument("--on", nargs="+", default=SETS, metavar="SET")
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    for name in given.on:
        left, right = (_evaluated(folder, name) for folder in (given.cascade, given.general))
        figures[name] = {measure: _row(left, right, measure) for measure in MEASURES}
        print(name, figures[name])
    print(f"Wrote {report.save('cascade_general', figures, 'onnxruntime')}.")


def _evaluated(folder: str, name: str) -> Evaluation:
    ranker = askline.Cascade.load(folder)
    whole = replace(ranker, schedule=Keeps(ranker.encoder.depths))  # nobody is dropped
    questions = data.select(data.load(name, root=report.data_root()), "answerable")
    return evaluate(whole, questions, measures=MEASURES)


def _row(cascade: Evaluation, general: Evaluation, measure: str) -> dict[str, Any]:
    found = compare(cascade, general, measure)
    return {
        "questions": len(cascade.question_ids),
        "cascade": round(found.percent_a, 2),
        "general": round(found.percent_b, 2),
        "difference": round(found.difference, 2),
        "95 %": [round(found.interval.low, 2), round(found.interval.high, 2)],
        "p, randomisation": round(found.p_randomisation, 3),
        "better, equal, worse": [found.wins, found.ties, found.losses],
    }


if __name__ == "__main__":
    main()
