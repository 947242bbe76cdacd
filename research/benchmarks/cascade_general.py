"""
A cascade at full depth beside the general model, one classifier at the end, question by question.

    ASKLINE_DATA=DIR python -m research.benchmarks.cascade_general GENERAL_INT8 GENERAL_FLOAT \\
        [--on SET …] [--most N]

The general model is given as two runtime folders that `askline export` makes, in int8 and in
float32. The cascade is the shipped one, in int8 as it is and in float32 by the numbers that its
int8 weights stand for (`--cascade DIR` takes another). The difference in MAP and P@1 stands with
its 95 % interval and the paired randomisation test. `--most` takes so many questions of a longer
set, at even steps. It writes research/results/cascade_general.json.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import askline
from askline import data
from askline.evaluation import Evaluation, evaluate
from askline.evaluation.significance import compare
from askline.models.cascade_config import CascadeLayout
from askline.models.folder import ModelFolder, write_folder
from askline.rankers.cascade import shipped_folder
from askline.rankers.schedule import Keeps
from askline.training.reader.network import float_tensors

from . import report
from .sampling import evenly

SETS = ("wikiqa:test", "trecqa-clean:test", "squad1:dev")
MEASURES = ("MAP", "P@1")


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("general_int8", type=Path)
    parser.add_argument("general_float", type=Path)
    parser.add_argument("--cascade", type=Path, default=shipped_folder())
    parser.add_argument("--on", nargs="+", default=SETS, metavar="SET")
    parser.add_argument("--most", type=int, help="Questions of a set, at even steps.")
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        pairs = {
            "int8": (given.cascade, given.general_int8),
            "float32": (in_float(given.cascade, Path(folder)), given.general_float),
        }
        for precision, (cascade, general) in pairs.items():
            for name in given.on:
                left, right = (_evaluated(each, name, given.most) for each in (cascade, general))
                own = figures.setdefault(precision, {})
                own[name] = {measure: _row(left, right, measure) for measure in MEASURES}
                print(precision, name, own[name], flush=True)
                report.save("cascade_general", figures, "onnxruntime")


def in_float(cascade: Path, target: Path) -> Path:
    """A runtime folder of the same weights in float32; without a reader, which nothing asks."""
    found = ModelFolder.open(cascade, kind="cascade")
    layout = CascadeLayout.from_config(found.config, path=cascade)
    plain = replace(layout, precision="float32", reader=False, adapter=None)
    tensors = {
        name: value
        for name, value in float_tensors(found.stored()).items()
        if not name.startswith(("reader.", "adapter."))
    }
    return write_folder(
        target / "float32",
        config=plain.to_config(),
        tensors=tensors,
        card=f"{cascade.name} in float32",
        files={"tokenizer.json": (cascade / "tokenizer.json").read_bytes()},
    )


def _evaluated(folder: Path, name: str, most: int | None) -> Evaluation:
    ranker = askline.Cascade.load(folder)
    whole = replace(ranker, schedule=Keeps(ranker.encoder.depths))  # nobody is dropped
    questions = data.select(data.load(name, root=report.data_root()), "answerable")
    return evaluate(whole, evenly(questions, most), measures=MEASURES)


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
