"""
The shipped first stage beside its own recipe trained again: does it gain on dev sets?

    python -m askline.training.first_stage --data DIR --out FOLDER [--seed N]
    ASKLINE_DATA=DIR python -m research.benchmarks.first_stage_again NAME=FOLDER …

Dev sets alone, for a choice between weights is made by them: success at 1, 3 and 5 as the sets are,
and at 100, 50 and 20 padded to 1,300 candidates. Writes research/results/first_stage_again.json.
"""

from __future__ import annotations

import argparse

import numpy as np

from askline import data
from askline.evaluation import randomisation_test
from askline.rankers.cosinet import Cosinet
from askline.types import QuestionSet

from . import report
from .first_stage import PADDED_TO, first_answers

PLAIN = ("selqa:dev", "wikiqa:dev", "trecqa:dev")
PADDED = ("selqa:dev", "wikiqa:dev")
SHIPPED = "shipped"


def main() -> None:
    """Measure each, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1] if __doc__ else None)
    parser.add_argument("folders", nargs="+", metavar="NAME=FOLDER")
    named = dict(one.split("=", 1) for one in parser.parse_args().folders)
    rankers = {SHIPPED: Cosinet.load()}
    rankers |= {name: Cosinet.load(folder) for name, folder in named.items()}
    figures = {}
    for name, depths, questions in sets():
        ranks = {label: first_answers(ranker, questions) for label, ranker in rankers.items()}
        figures[name] = rows(ranks, depths)
        for label, row in figures[name].items():
            print(f"{name:32} {label:12} {row}")
    print(f"Wrote {report.save('first_stage_again', figures)}.")


def sets() -> list[tuple[str, tuple[int, ...], QuestionSet]]:
    """Name, depths and questions of each."""
    root = report.data_root()
    plain = [(name, (1, 3, 5), data.load(name, root=root)) for name in PLAIN]
    padded = [
        (
            f"{name} padded to {PADDED_TO}",
            (100, 50, 20),
            data.pad(data.load(name, root=root), PADDED_TO),
        )
        for name in PADDED
    ]
    return [(name, depths, data.select(of, "answerable")) for name, depths, of in plain + padded]


def rows(ranks: dict[str, np.ndarray], depths: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Success in percent at each depth, and by how likely chance the difference to the shipped."""
    found = {}
    for label, own in ranks.items():
        row: dict[str, float] = {"questions": len(own)}
        for depth in depths:
            hit, other = own < depth, ranks[SHIPPED] < depth
            row[f"@{depth}"] = round(100 * float(hit.mean()), 1)
            if label != SHIPPED:
                row[f"@{depth} p"] = round(randomisation_test(hit * 1.0, other * 1.0), 3)
        found[label] = row
    return found


if __name__ == "__main__":
    main()
