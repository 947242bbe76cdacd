"""
Statistical significance: bootstrap intervals and paired tests over the values per question.

All random draws are seeded, so results are reproducible. Report the randomization test: it assumes
nothing about the distribution of the values. The t-test is included because papers report it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, UnknownNameError, require_extra
from .measures import FloatArray, parse_measure
from .ranker_evaluation import Evaluation

__all__ = [
    "Comparison",
    "Interval",
    "bootstrap_interval",
    "compare",
    "randomization_test",
    "t_test",
]

_MAX_BLOCK_VALUES = 1 << 22  # values in memory at a time, about 32 MB
_ROUNDING = 1e-12  # relative difference between sums of the same numbers in another order


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, both included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ranker `a` against ranker `b` by one measure, in percent and percentage points."""

    a: str
    b: str
    question_set: str
    measure: str
    percent_a: float
    percent_b: float
    difference: float
    """`percent_a - percent_b`."""
    interval: Interval
    """95 % bootstrap interval of the difference."""
    p_randomization: float
    p_t: float
    wins: int
    """Questions on which `a` is better."""
    ties: int
    losses: int

    def as_dict(self) -> dict[str, object]:
        """For JSON; the interval is an object with `low` and `high`."""
        return asdict(self)


def compare(
    a: Evaluation, b: Evaluation, measure: str = "MAP", *, samples: int = 10_000, seed: int = 0
) -> Comparison:
    """Compare two evaluations question by question; they must be of the same question set."""
    if a.question_set != b.question_set or a.question_ids != b.question_ids:
        raise InputError(
            f"Expected two evaluations of the same questions in the same order, got "
            f"{a.question_set!r} ({len(a.question_ids)} questions) and "
            f"{b.question_set!r} ({len(b.question_ids)} questions)."
        )
    name = parse_measure(measure).name
    for evaluation in (a, b):
        if name not in evaluation.values:
            raise UnknownNameError("evaluated measure", name, evaluation.values)
    left, right = a.values[name], b.values[name]
    return Comparison(
        a=a.ranker,
        b=b.ranker,
        question_set=a.question_set,
        measure=name,
        percent_a=a.percent[name],
        percent_b=b.percent[name],
        difference=a.percent[name] - b.percent[name],
        interval=bootstrap_interval(100 * (left - right), samples=samples, seed=seed),
        p_randomization=randomization_test(left, right, samples=samples, seed=seed),
        p_t=t_test(left, right),
        wins=int((left > right).sum()),
        ties=int((left == right).sum()),
        losses=int((left < right).sum()),
    )


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, samples: int = 10_000, seed: int = 0
) -> Interval:
    """The percentile bootstrap interval of the mean, in the unit of `values`."""
    data = _checked_values(values)
    if not 0 < confidence < 1:
        raise InputError(f"`confidence` must be between 0 and 1, got {confidence}.")
    rng = np.random.default_rng(seed)
    means = np.concatenate(
        [
            data[rng.integers(len(data), size=(rows, len(data)))].mean(axis=1)
            for rows in _blocks(samples, len(data))
        ]
    )
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def randomization_test(
    a: ArrayLike, b: ArrayLike, *, samples: int = 10_000, seed: int = 0
) -> float:
    """
    The two-sided p-value of the paired randomization test on the difference of means.

    Under the null hypothesis, the two values of a question are exchangeable. p is the share of
    random exchanges whose difference is at least as large as the observed one, which is itself
    counted. So p is in (0, 1], at least 1 / (samples + 1), and symmetric in a and b.
    """
    differences = _differences(a, b)
    nonzero = differences[differences != 0]  # exchanging equal values changes nothing
    rng = np.random.default_rng(seed)
    observed = abs(nonzero.sum()) - _ROUNDING * np.abs(nonzero).sum()
    at_least = 0
    for rows in _blocks(samples, len(nonzero)):
        swapped = rng.integers(2, size=(rows, len(nonzero)), dtype=np.int8)
        sums = (1.0 - 2.0 * swapped) @ nonzero
        at_least += int((np.abs(sums) >= observed).sum())
    return (at_least + 1) / (samples + 1)


def t_test(a: ArrayLike, b: ArrayLike) -> float:
    """The two-sided p-value of the paired t-test; 1 if all differences are zero."""
    differences = _differences(a, b)
    if len(differences) < 2 or not differences.any():
        return 1.0
    # scipy.special instead of scipy.stats: the same distribution, a third of the import time.
    special = require_extra("scipy.special", purpose="The t-test", extra="eval")
    standard_error = differences.std(ddof=1) / np.sqrt(len(differences))
    if standard_error == 0:
        return 0.0
    t = differences.mean() / standard_error
    return float(2 * special.stdtr(len(differences) - 1, -abs(t)))


def _blocks(samples: int, width: int) -> Iterator[int]:
    """Numbers of rows that add up to `samples`, so that a block of rows fits into memory."""
    if samples < 1:
        raise InputError(f"`samples` must be at least 1, got {samples}.")
    rows = max(1, _MAX_BLOCK_VALUES // max(1, width))
    for start in range(0, samples, rows):
        yield min(rows, samples - start)


def _checked_values(values: ArrayLike) -> FloatArray:
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or not len(data) or not np.isfinite(data).all():
        raise InputError(f"Expected a list of finite values, one per question, got {data!r}.")
    return data


def _differences(a: ArrayLike, b: ArrayLike) -> FloatArray:
    left, right = _checked_values(a), _checked_values(b)
    if len(left) != len(right):
        raise InputError(
            f"A paired test needs two lists of equal length, got {len(left)} and {len(right)}."
        )
    return left - right
