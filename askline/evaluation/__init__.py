"""
Measure rankings, and test whether differences are statistically significant.

Units: values of single questions are fractions, 0 to 1, as in trec_eval; everything that is
reported (means, differences, intervals, tables, JSON) is in percent, 0 to 100, as in papers. Names
say which: `values` are fractions, `percent` is percent.

Ties: the order of the hits is the ranking. The ranker has decided equal scores, and no measure
decides them again. Run files hold scores only, so `read_run` takes a tie rule.
"""

from __future__ import annotations

from .calibration import (
    Abstention,
    IsotonicRegression,
    PlattScaling,
    ReliabilityBin,
    auroc,
    choose_threshold,
    expected_calibration_error,
    reliability_bins,
)
from .measures import (
    DEFAULT_MEASURES,
    Measure,
    PhraseScores,
    exact_match,
    f1,
    normalize_phrase,
    parse_measure,
    parse_measures,
    score_phrases,
    score_run,
)
from .ranker_evaluation import Evaluation, evaluate, markdown_table
from .runs import Qrels, RankedList, Run, make_qrels, read_qrels, read_run, write_qrels, write_run
from .significance import (
    Comparison,
    Interval,
    bootstrap_interval,
    compare,
    randomization_test,
    t_test,
)

__all__ = [
    "DEFAULT_MEASURES",
    "Abstention",
    "Comparison",
    "Evaluation",
    "Interval",
    "IsotonicRegression",
    "Measure",
    "PhraseScores",
    "PlattScaling",
    "Qrels",
    "RankedList",
    "ReliabilityBin",
    "Run",
    "auroc",
    "bootstrap_interval",
    "choose_threshold",
    "compare",
    "evaluate",
    "exact_match",
    "expected_calibration_error",
    "f1",
    "make_qrels",
    "markdown_table",
    "normalize_phrase",
    "parse_measure",
    "parse_measures",
    "randomization_test",
    "read_qrels",
    "read_run",
    "reliability_bins",
    "score_phrases",
    "score_run",
    "t_test",
    "write_qrels",
    "write_run",
]
