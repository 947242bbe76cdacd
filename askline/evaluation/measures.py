"""
Measures by name, computed by trec_eval (through pytrec_eval).

`MAP`, `MRR`, `P@k`, `R@k`, `nDCG@k` and `Success@k`: the same names in code, on the command line
and in tables. `R@k` is the share of the answers found among the first k; `Success@k` is 1 if any is
found there, which is how first stages are judged (and what some papers call recall).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, UnknownNameError, require_extra
from .runs import Qrels, RankedList, Run

__all__ = [
    "DEFAULT_MEASURES",
    "FloatArray",
    "Measure",
    "parse_measure",
    "parse_measures",
    "score_run",
]

FloatArray: TypeAlias = NDArray[np.float64]

DEFAULT_MEASURES = ("MAP", "MRR", "P@1", "nDCG@10")

_WHOLE = {"MAP": "map", "MRR": "recip_rank"}
_CUT = {"P": "P", "R": "recall", "Success": "success", "nDCG": "ndcg_cut"}
_FORMS = (*_WHOLE, *(f"{name}@k" for name in _CUT))
_MAX_CUT = 999_999_999


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure under our name and under trec_eval's."""

    name: str
    trec_name: str

    def __str__(self) -> str:
        return self.name


def parse_measure(name: str) -> Measure:
    """`"nDCG@10"` → the measure. Names are read to the letter, capitals included."""
    if name in _WHOLE:
        return Measure(name, _WHOLE[name])
    base, at, cut = name.partition("@")
    if base not in _CUT or not at or not re.fullmatch(r"-?[0-9]+", cut):
        raise UnknownNameError("measure", name, _FORMS)
    if len(cut) > len(str(_MAX_CUT)) or int(cut) < 1:
        raise InputError(f"k must be from 1 to {_MAX_CUT}, got {cut} in measure {name!r}.")
    return Measure(f"{base}@{int(cut)}", f"{_CUT[base]}_{int(cut)}")


def parse_measures(names: str | Iterable[str]) -> tuple[Measure, ...]:
    """Several names, or one text with commas between them; a name given twice counts once."""
    parts = names.split(",") if isinstance(names, str) else names
    measures = tuple(dict.fromkeys(parse_measure(part.strip()) for part in parts))
    if not measures:
        raise InputError(f"Expected at least one measure, got none. Known: {', '.join(_FORMS)}.")
    return measures


def score_run(
    run: Run, qrels: Qrels, *, measures: str | Iterable[str] = DEFAULT_MEASURES
) -> dict[str, FloatArray]:
    """
    Each measure's value for each question of `qrels`, in their order, as fractions 0 to 1.

    A question without an answer, or one that the run does not hold, counts 0 (trec_eval's `-c`);
    questions that only the run holds are left out. Leaving questions out is the caller's choice.
    """
    wanted = parse_measures(measures)
    pytrec_eval = require_extra("pytrec_eval", purpose="Measuring a ranking", extra="eval")
    gains: dict[str, dict[str, int]] = {}
    places: dict[str, Mapping[str, float]] = {}
    ladders: dict[int, Mapping[str, float]] = {}
    for row, (question, relevance) in enumerate(qrels.items()):
        ranked = run.rankings.get(question)
        gain = _gains_by_place(ranked, relevance) if ranked else {}
        if ranked and gain:
            count = len(ranked.ids)
            if count not in ladders:
                ladders[count] = _ladder(count)
            gains[str(row)] = gain
            places[str(row)] = ladders[count]
    evaluator = pytrec_eval.RelevanceEvaluator(gains, {measure.trec_name for measure in wanted})
    results: Mapping[str, Mapping[str, float]] = evaluator.evaluate(places)
    values = {measure.name: np.zeros(len(qrels)) for measure in wanted}
    for row_text, result in results.items():
        for measure in wanted:
            values[measure.name][int(row_text)] = result[measure.trec_name]
    return values


def _ladder(count: int) -> Mapping[str, float]:
    """
    A ranking as trec_eval takes it, the places from 0 standing for the candidates.

    trec_eval sorts by score as float32 and equal scores by name, downwards. Strictly falling whole
    numbers leave it nothing to settle, and names that are places let all lists of a length share
    one mapping, whatever the candidates are called.
    """
    return {str(place): float(count - place) for place in range(count)}


def _gains_by_place(ranked: RankedList, relevance: Mapping[str, int]) -> dict[str, int]:
    """Place → relevance of the answers; answers that were not ranked get places past the end."""
    answers = {id_: gain for id_, gain in relevance.items() if gain > 0}
    gains = {str(place): answers.pop(id_) for place, id_ in enumerate(ranked.ids) if id_ in answers}
    count = len(ranked.ids)
    return gains | {str(count + extra): gain for extra, gain in enumerate(answers.values())}
