"""
Plots of askline's results with matplotlib: a funnel, a cost-quality front, a calibration curve.

    >>> from askline import load, plots
    >>> ranking = load().trace("Who wrote Emma?", documents)
    >>> plots.funnel(ranking).savefig("funnel.png")

Every function returns a `matplotlib.figure.Figure`, which a notebook shows. With `axes`, it draws
into axes of your own and returns their figure. Nothing is shown or saved, and no setting of
matplotlib is changed. Needs the extra `plots`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from .errors import InputError, require_extra
from .evaluation import (
    Evaluation,
    ReliabilityBin,
    expected_calibration_error,
    parse_measure,
    reliability_bins,
)
from .tuning.schedule_fitting import ALPHAS, LengthResult, TuningResult
from .tuning.schedule_search import Trial
from .types import Ranking, StageReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["calibration_curve", "cost_quality_front", "funnel"]

# A palette that color-blind people can distinguish (Okabe and Ito).
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#888888")
_ENTERED, _KEPT, _SKIPPED = "#BFDCEC", "#0072B2", "#E69F00"
_GRID, _FAINT = "#E5E5E5", "#666666"
_SHOWN_RANGE = 16.0  # percentage points of P@1 below the best; worse points are cut off
_ROOM_FOR_TEXT = 1.75  # the width of a funnel with the text beside its bars, in bar lengths


def funnel(ranking: Ranking, *, axes: Axes | None = None) -> Figure:
    """
    Draw how many candidates enter and leave each stage of a ranking, with time and cost.

    The cost is that of the stage as a share of all candidates at full depth. Candidates that a
    stage did not score because time was up are hatched.
    """
    if not ranking.stages:
        raise InputError("Expected a ranking with at least one stage, got none. Use `trace`.")
    stages = ranking.stages
    axes = axes or _new_axes(7.0, 1.4 + 0.42 * len(stages))
    rows = range(len(stages))
    entered = [stage.entered for stage in stages]
    skipped = [stage.skipped for stage in stages]
    scored = [stage.entered - stage.skipped for stage in stages]
    axes.barh(rows, entered, height=0.72, color=_ENTERED, label="entered")
    if any(skipped):
        axes.barh(
            rows,
            skipped,
            left=scored,
            height=0.72,
            facecolor="none",
            edgecolor=_SKIPPED,
            hatch="////",
            linewidth=0,
            label="not scored: time was up",
        )
    kept = [min(stage.kept, stage.entered) for stage in stages]
    axes.barh(rows, kept, height=0.36, color=_KEPT, label="kept")
    for row, stage in zip(rows, stages, strict=True):
        axes.annotate(
            _stage_text(stage),
            (stage.entered, row),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=_FAINT,
            fontsize="small",
        )
    axes.set_yticks(rows, [stage.ranker for stage in stages])
    axes.set_ylim(len(stages) - 0.5, -0.5)
    axes.set_xlim(0, _ROOM_FOR_TEXT * max(1, *entered))
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= max(entered)])
    axes.set_xlabel("candidates")
    axes.set_title(_funnel_title(ranking), loc="left", fontsize="medium")
    axes.tick_params(axis="y", length=0)
    _style(axes, grid="x")
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return _figure_of(axes)


def cost_quality_front(
    results: TuningResult | Iterable[Evaluation],
    *,
    measure: str = "P@1",
    axes: Axes | None = None,
) -> Figure:
    """
    Draw quality against cost, with the Pareto front: what no cheaper choice beats.

    Of evaluations, each ranker is a point: the measure against the median milliseconds per
    question. They must be of the same question set. Of a tuning result, there is one front per
    list length: P@1 against the cost relative to full depth, with the chosen schedule as a circle,
    the same fraction dropped at every depth as crosses, and the budget as a line.
    """
    if isinstance(results, TuningResult):
        if parse_measure(measure).name != "P@1":
            raise InputError(f"A tuning result is drawn by P@1, got measure={measure!r}.")
        return _draw_tuning(results, axes or _new_axes(8.0, 4.4))
    evaluations = list(results)
    name = parse_measure(measure).name
    _check_evaluations(evaluations, name)
    return _draw_evaluations(evaluations, name, axes or _new_axes(7.0, 4.0))


def calibration_curve(
    probabilities: ArrayLike | Mapping[str, ArrayLike],
    labels: ArrayLike,
    *,
    bins: int = 10,
    axes: Axes | None = None,
) -> Figure:
    """
    Draw observed frequency against predicted probability, over bins of equal width.

    A perfectly calibrated ranker lies on the diagonal. Bars are 95 % intervals (Wilson), and the
    legend has the expected calibration error (ECE) over the same bins. `labels` says which pairs
    are positive. A mapping draws several curves for the same pairs, each with its name.
    """
    named = probabilities if isinstance(probabilities, Mapping) else {"": probabilities}
    curves = {name: reliability_bins(own, labels, bins=bins) for name, own in named.items()}
    axes = axes or _new_axes(4.8, 4.6)
    axes.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1, label="perfect")
    for number, (name, found) in enumerate(curves.items()):
        error = expected_calibration_error(named[name], labels, bins=bins)
        _draw_bins(
            axes,
            found,
            _COLORS[number % len(_COLORS)],
            f"{name + ': ' if name else ''}ECE {error:.1%}, {_count(found):,} pairs",
        )
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("observed frequency")
    _style(axes, grid="both")
    # Above the axes: a curve may be anywhere inside.
    axes.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return _figure_of(axes)


def _stage_text(stage: StageReport) -> str:
    parts = [f"{stage.entered:,} → {stage.kept:,}", f"{1000 * stage.seconds:,.3g} ms"]
    if stage.cost is not None:
        parts.append(f"{stage.cost.token_share:.1%} of full depth")
    return " · ".join(parts)


def _funnel_title(ranking: Ranking) -> str:
    seconds = sum(stage.seconds for stage in ranking.stages)
    title = f"{ranking.stages[0].entered:,} candidates in {1000 * seconds:,.3g} ms"
    cost = ranking.cost
    return title if cost is None else f"{title}, {cost.token_share:.1%} of the cost of full depth"


def _check_evaluations(evaluations: Sequence[Evaluation], name: str) -> None:
    if not evaluations:
        raise InputError("Expected at least one evaluation, got none.")
    sets = list(dict.fromkeys(own.question_set for own in evaluations))
    if len(sets) > 1:
        raise InputError(f"Expected evaluations of one question set, got {', '.join(sets)}.")
    for own in evaluations:
        if name not in own.values:
            raise InputError(
                f"Expected evaluations with {name}, got {', '.join(own.values)} of {own.ranker}. "
                f"Pass measures={name!r} to `evaluate`."
            )


def _draw_evaluations(evaluations: Sequence[Evaluation], name: str, axes: Axes) -> Figure:
    points = sorted(
        (own.ms_per_question["p50"], -own.percent[name], own.ranker) for own in evaluations
    )
    front: list[tuple[float, float]] = []
    for ms, negative, ranker in points:
        quality = -negative
        is_best = not front or quality > front[-1][1]
        if is_best:
            front.append((ms, quality))
        color = _COLORS[0] if is_best else _COLORS[-1]
        axes.plot([ms], [quality], "o", color=color, zorder=3, gid=ranker)
        # A name stands where there is room: on the inner side of its point, and below the front.
        is_right_half = ms * ms > points[0][0] * points[-1][0]
        axes.annotate(
            ranker,
            (ms, quality),
            xytext=(-8 if is_right_half else 8, -3 if is_best else 3),
            textcoords="offset points",
            ha="right" if is_right_half else "left",
            va="top" if is_best else "bottom",
            color=color,
            fontsize="small",
        )
    axes.plot(
        *zip(*front, strict=True),
        color=_COLORS[0],
        drawstyle="steps-post",
        linewidth=1,
        alpha=0.6,
        label="Pareto front",
    )
    axes.set_xscale("log")
    low, high = points[0][0], points[-1][0]
    axes.set_xlim(low / 1.6, high * 1.6)
    axes.margins(y=0.15)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("median milliseconds per question")
    axes.set_ylabel(f"{name}, %")
    axes.set_title(
        f"{evaluations[0].question_set}: {len(evaluations[0].seconds):,} questions",
        loc="left",
        fontsize="medium",
    )
    _style(axes, grid="both")
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return _figure_of(axes)


def _draw_tuning(tuned: TuningResult, axes: Axes) -> Figure:
    lines = [(f"{own.count:,}, with first stage", own) for own in reversed(tuned.pipelines)]
    lines += [(f"{own.count:,} candidates", own) for own in reversed(tuned.rows)]
    results = [result for _, result in lines]
    low, high = _quality_range(results)
    for number, (name, result) in enumerate(lines):
        color = _COLORS[number % len(_COLORS)]
        axes.plot(*_curve(result.front), color=color, linewidth=1.8, label=name)
        axes.plot(*_curve(result.fixed_fractions), "x", color=color, markersize=6)
        axes.plot(
            *_curve([result.choice.trial]),
            "o",
            color=color,
            markerfacecolor="white",
            markeredgewidth=2,
            markersize=8,
            zorder=3,
        )
    budget = f"budget {tuned.budget:.0%}"
    axes.axvline(tuned.budget, color="#999999", linestyle="--", linewidth=1, label=budget)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(low, high)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("cost in token-layers, relative to full depth")
    axes.set_ylabel("P@1, %")
    axes.set_title(
        f"Dev sets. ○ chosen schedule, × the same fraction dropped at every depth "
        f"({', '.join(map(str, ALPHAS))})",
        loc="left",
        fontsize="medium",
    )
    _style(axes, grid="both")
    axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return _figure_of(axes)


def _curve(trials: Sequence[Trial]) -> tuple[list[float], list[float]]:
    return [trial.mean_cost for trial in trials], [100 * trial.p1 for trial in trials]


def _quality_range(results: Sequence[LengthResult]) -> tuple[float, float]:
    """Limits that show every chosen schedule and the top of every front, but not the worst."""
    best = [100 * result.front[-1].p1 for result in results]
    chosen = [100 * result.choice.trial.p1 for result in results]
    low = max(min(chosen) - 2, max(best) - _SHOWN_RANGE, 0)
    return min(low, min(best) - 2), min(100.5, max(*best, *chosen) + 2)


def _draw_bins(axes: Axes, found: Sequence[ReliabilityBin], color: str, label: str) -> None:
    intervals = [_wilson_interval(own) for own in found]
    frequencies = [own.frequency for own in found]
    axes.errorbar(
        [own.probability for own in found],
        frequencies,
        yerr=[
            [own - low for own, (low, _) in zip(frequencies, intervals, strict=True)],
            [high - own for own, (_, high) in zip(frequencies, intervals, strict=True)],
        ],
        color=color,
        marker="o",
        markersize=5,
        linewidth=1.6,
        elinewidth=1,
        capsize=2,
        label=label,
    )


def _wilson_interval(found: ReliabilityBin) -> tuple[float, float]:
    """The 95 % interval of a frequency; it contains the frequency and stays within 0 and 1."""
    n, p, z = found.count, found.frequency, 1.96
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    return min(p, max(0.0, center - half)), max(p, min(1.0, center + half))


def _count(found: Sequence[ReliabilityBin]) -> int:
    return sum(own.count for own in found)


def _new_axes(width: float, height: float) -> Axes:
    # Not pyplot, which keeps every figure in a global list.
    library: Any = require_extra("matplotlib.figure", purpose="A plot", extra="plots")
    figure = library.Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.subplots()
    return axes


def _figure_of(axes: Axes) -> Figure:
    """The whole figure, also of axes in a subfigure."""
    figure: Any = axes.figure
    root: Figure = figure.figure
    return root


def _style(axes: Axes, *, grid: str) -> None:
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis=grid, color=_GRID)  # type: ignore[arg-type]
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#999999")
