"""
Is it luck? Intervals and paired tests over the values of single questions.

All draws come from a seed, so the same figures come out each time. The randomisation test is the
one to report: it assumes nothing about how the values are spread. The t-test stands beside it
because papers print it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, UnknownNameError, require_extra
from .evaluate import Evaluation
from .measures import FloatArray, parse_measure

__all__ = [
    "Comparison",
    "Interval",
    "bootstrap_interval",
    "compare",
    "randomization_test",
    "t_test",
]

_BLOCK = 1 << 22  # numbers held at a time, about 32 MB
_ROUNDING = 1e-12  # sums of the same numbers in another order may differ by this much, relatively


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, both included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ranker `a` against ranker `b` by one measure: percent, points of percent, and odds."""

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
            f"A comparison needs the same questions in the same order, got "
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
    data = _column(values)
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence}.")
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
    The two-sided p-value of the paired randomisation test on the difference of means.

    Under the null hypothesis each question's two values could as well be swapped. p is the share of
    random swappings at least as far apart as what was seen, which counts as one of them; so it lies
    in (0, 1], its smallest value is 1 / (samples + 1), and swapping a and b leaves it unchanged.
    """
    differences = _differences(a, b)
    moved = differences[differences != 0]  # a swap of equal values changes nothing
    rng = np.random.default_rng(seed)
    seen = abs(moved.sum()) - _ROUNDING * np.abs(moved).sum()
    as_far = 0
    for rows in _blocks(samples, len(moved)):
        swapped = rng.integers(2, size=(rows, len(moved)), dtype=np.int8)
        sums = (1.0 - 2.0 * swapped) @ moved
        as_far += int((np.abs(sums) >= seen).sum())
    return (as_far + 1) / (samples + 1)


def t_test(a: ArrayLike, b: ArrayLike) -> float:
    """The two-sided p-value of the paired t-test; 1 where there is no difference to test."""
    differences = _differences(a, b)
    if len(differences) < 2 or not differences.any():
        return 1.0
    # scipy.special, not scipy.stats: the same distribution, and it imports in a third of the time.
    special = require_extra("scipy.special", purpose="The t-test", extra="eval")
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    if error == 0:
        return 0.0
    return float(2 * special.stdtr(len(differences) - 1, -abs(differences.mean() / error)))


def _blocks(samples: int, width: int) -> Iterator[int]:
    """Numbers of rows that add up to `samples`, each block small enough to hold."""
    if samples < 1:
        raise InputError(f"samples must be at least 1, got {samples}.")
    rows = max(1, _BLOCK // max(1, width))
    for start in range(0, samples, rows):
        yield min(rows, samples - start)


def _column(values: ArrayLike) -> FloatArray:
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or not len(data) or not np.isfinite(data).all():
        raise InputError(f"Expected a list of finite values, one a question, got {data!r}.")
    return data


def _differences(a: ArrayLike, b: ArrayLike) -> FloatArray:
    left, right = _column(a), _column(b)
    if len(left) != len(right):
        raise InputError(
            f"A paired test needs as many values on both sides, got {len(left)} and {len(right)}."
        )
    return left - right
