"""
How good is a ranking, and is the difference real?

Units, everywhere in this room: values of single questions are fractions, 0 to 1, as trec_eval
gives them; what is reported (means, differences, intervals, tables, JSON) is percent, 0 to 100, as
papers print it. A name says which: `values` are fractions, `percent` is percent.

Ties, everywhere: the order of the hits is the ranking. Equal scores were settled by the ranker, and
no measure settles them again. Runs read from files have scores only, so `read_run` asks for a rule.
"""

from __future__ import annotations

from .calibration import (
    Abstention,
    IsotonicRegression,
    PlattScaling,
    auroc,
    choose_threshold,
    expected_calibration_error,
)
from .evaluate import Evaluation, evaluate
from .markdown_tables import evaluation_rows, markdown_table
from .measures import DEFAULT_MEASURES, Measure, parse_measure, parse_measures, score_run
from .phrase_scores import PhraseScores, exact_match, f1, normalize_phrase, score_phrases
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
    "Run",
    "auroc",
    "bootstrap_interval",
    "choose_threshold",
    "compare",
    "evaluate",
    "evaluation_rows",
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
    "score_phrases",
    "score_run",
    "t_test",
    "write_qrels",
    "write_run",
]
