"""
Ranking measures by name, computed by trec_eval (through pytrec_eval).

`MAP`, `MRR`, `P@k`, `R@k`, `nDCG@k` and `Success@k`: the same names in code, on the command line
and in tables. `R@k` is the share of the answers among the first k; `Success@k` is 1 if at least one
answer is among them. First stages are measured by `Success@k`, which some papers call recall.
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

_WITHOUT_CUTOFF = {"MAP": "map", "MRR": "recip_rank"}
_WITH_CUTOFF = {"P": "P", "R": "recall", "Success": "success", "nDCG": "ndcg_cut"}
_KNOWN_NAMES = (*_WITHOUT_CUTOFF, *(f"{name}@k" for name in _WITH_CUTOFF))
_MAX_CUTOFF = 999_999_999


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its name here and in trec_eval."""

    name: str
    trec_name: str

    def __str__(self) -> str:
        return self.name


def parse_measure(name: str) -> Measure:
    """`"nDCG@10"` → the measure. Names are case-sensitive."""
    if name in _WITHOUT_CUTOFF:
        return Measure(name, _WITHOUT_CUTOFF[name])
    base, at, cutoff = name.partition("@")
    if base not in _WITH_CUTOFF or not at or not re.fullmatch(r"-?[0-9]+", cutoff):
        raise UnknownNameError("measure", name, _KNOWN_NAMES)
    if len(cutoff) > len(str(_MAX_CUTOFF)) or int(cutoff) < 1:
        raise InputError(f"k must be from 1 to {_MAX_CUTOFF}, got {cutoff} in measure {name!r}.")
    return Measure(f"{base}@{int(cutoff)}", f"{_WITH_CUTOFF[base]}_{int(cutoff)}")


def parse_measures(names: str | Iterable[str]) -> tuple[Measure, ...]:
    """Measures from a list of names or a comma-separated text; repeated names count once."""
    parts = names.split(",") if isinstance(names, str) else names
    measures = tuple(dict.fromkeys(parse_measure(part.strip()) for part in parts))
    if not measures:
        known = ", ".join(_KNOWN_NAMES)
        raise InputError(f"Expected at least one measure, got none. Known: {known}.")
    return measures


def score_run(
    run: Run, qrels: Qrels, *, measures: str | Iterable[str] = DEFAULT_MEASURES
) -> dict[str, FloatArray]:
    """
    Measure name → one fraction per question of `qrels`, in their order.

    A question without an answer or without a ranking in the run counts 0 (trec_eval's `-c`);
    questions that are in the run only are ignored.
    """
    wanted = parse_measures(measures)
    pytrec_eval = require_extra("pytrec_eval", purpose="Measuring a ranking", extra="eval")
    gains: dict[str, dict[str, int]] = {}
    scores: dict[str, Mapping[str, float]] = {}
    scores_by_length: dict[int, Mapping[str, float]] = {}
    for row, (question, relevance) in enumerate(qrels.items()):
        ranked = run.rankings.get(question)
        gain = _gains_by_rank(ranked, relevance) if ranked else {}
        if ranked and gain:
            count = len(ranked.ids)
            if count not in scores_by_length:
                scores_by_length[count] = _falling_scores(count)
            gains[str(row)] = gain
            scores[str(row)] = scores_by_length[count]
    evaluator = pytrec_eval.RelevanceEvaluator(gains, {measure.trec_name for measure in wanted})
    results: Mapping[str, Mapping[str, float]] = evaluator.evaluate(scores)
    values = {measure.name: np.zeros(len(qrels)) for measure in wanted}
    for row_text, result in results.items():
        for measure in wanted:
            values[measure.name][int(row_text)] = result[measure.trec_name]
    return values


def _falling_scores(count: int) -> Mapping[str, float]:
    """
    A ranking of `count` candidates for trec_eval, whose ids are their ranks from 0.

    trec_eval sorts by score as float32, and equal scores by id, descending. Strictly falling whole
    numbers leave no ties, and with ranks as ids, all lists of one length share one mapping.
    """
    return {str(rank): float(count - rank) for rank in range(count)}


def _gains_by_rank(ranked: RankedList, relevance: Mapping[str, int]) -> dict[str, int]:
    """Rank → relevance of the answers; answers that were not ranked get ranks past the end."""
    answers = {id_: gain for id_, gain in relevance.items() if gain > 0}
    gains = {str(rank): answers.pop(id_) for rank, id_ in enumerate(ranked.ids) if id_ in answers}
    count = len(ranked.ids)
    return gains | {str(count + extra): gain for extra, gain in enumerate(answers.values())}
