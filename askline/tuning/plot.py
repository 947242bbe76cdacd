"""An SVG plot of P@1 against cost, with one Pareto front per list length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from .schedule_search import Trial
from .tuning_results import ALPHAS, LengthResult, TuningResult

__all__ = ["results_svg"]

_WIDTH, _HEIGHT = 760, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 170, 56, 56
# A palette that color-blind people can distinguish (Okabe and Ito).
_COLORS = ("#0072B2", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#888888")
_SHOWN_RANGE = 8.0  # percentage points of P@1 below the best; worse points are cut off


def results_svg(tuned: TuningResult) -> str:
    """A self-contained SVG file with a light background, without scripts and web fonts."""
    lines = [(f"{row.count} candidates", row) for row in reversed(tuned.rows)]
    for pipeline in tuned.pipelines:
        lines.insert(0, (f"{pipeline.count}, first stage", pipeline))
    axes = _Axes.around([result for _, result in lines])
    parts = [*_frame(axes, tuned)]
    labels = _spread([axes.y(result.front[-1].p1) for _, result in lines])
    for number, ((name, result), label) in enumerate(zip(lines, labels, strict=True)):
        color = _COLORS[number % len(_COLORS)]
        parts += _curve(axes, name, result, color, label)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="system-ui, sans-serif" font-size="12" '
        f'fill="#333">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


@dataclass(frozen=True, slots=True)
class _Axes:
    low: int
    high: int

    @classmethod
    def around(cls, results: Sequence[LengthResult]) -> _Axes:
        values = [100 * result.front[-1].p1 for result in results]
        chosen = [100 * result.choice.trial.p1 for result in results]
        low = max(min(chosen) - 2, max(values) - _SHOWN_RANGE * 2, 0)
        return cls(int(min(low, min(values) - 2)), min(100, int(max(values)) + 2))

    def x(self, cost: float) -> float:
        return _LEFT + min(1.0, cost) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, share: float) -> float:
        height = _HEIGHT - _TOP - _BOTTOM
        return _TOP + height * (self.high - 100 * share) / (self.high - self.low)

    def shows(self, trial: Trial) -> bool:
        return 100 * trial.p1 >= self.low


def _frame(axes: _Axes, tuned: TuningResult) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    yield _text(_LEFT, 22, "P@1 against cost, dev sets", size=15, weight="bold")
    note = "○ chosen schedule    × same fraction dropped at every depth, α " + ", ".join(
        map(str, ALPHAS)
    )
    yield _text(_LEFT, 40, note, fill="#666")
    for tenth in range(0, 11, 2):
        x = axes.x(tenth / 10)
        yield _grid_line(x, _TOP, x, bottom)
        yield _text(x, bottom + 18, f"{10 * tenth} %", anchor="middle")
    step = 1 if axes.high - axes.low <= 10 else 2
    for value in range(axes.low, axes.high + 1, step):
        y = axes.y(value / 100)
        yield _grid_line(_LEFT, y, right, y)
        yield _text(_LEFT - 8, y + 4, str(value), anchor="end")
    x = axes.x(tuned.budget)
    yield f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="#999" stroke-dasharray="4 4"/>'
    yield _text(x + 4, bottom - 6, f"budget {tuned.budget:.0%}", fill="#666")
    middle = (_LEFT + right) / 2
    yield _text(middle, bottom + 40, "token-layers, relative to full depth", anchor="middle")
    yield _text(16, _TOP - 10, "P@1, %")


def _curve(axes: _Axes, name: str, result: LengthResult, color: str, label: float) -> Iterator[str]:
    front = [trial for trial in result.front if axes.shows(trial)]
    points = " ".join(f"{axes.x(trial.mean_cost):.1f},{axes.y(trial.p1):.1f}" for trial in front)
    yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>'
    for trial in filter(axes.shows, result.fixed_fractions):
        x, y = axes.x(trial.mean_cost), axes.y(trial.p1)
        path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        yield f'<path d="{path}" stroke="{color}" stroke-width="1.5"/>'
    x, y = axes.x(result.choice.trial.mean_cost), axes.y(result.choice.trial.p1)
    yield (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="white" stroke="{color}" '
        f'stroke-width="2.5"><title>{escape(_tooltip(result.choice.trial))}</title></circle>'
    )
    end = axes.x(front[-1].mean_cost) if front else _LEFT
    yield (
        f'<path d="M{end:.1f} {axes.y(result.front[-1].p1):.1f}L{_WIDTH - _RIGHT + 6} '
        f'{label:.1f}" stroke="{color}" stroke-width="0.75" stroke-dasharray="2 3"/>'
    )
    yield _text(_WIDTH - _RIGHT + 10, label + 4, name, fill=color, weight="bold")


def _spread(heights: Sequence[float], room: float = 16.0) -> list[float]:
    """Move labels down from these heights as far as needed so that they do not overlap."""
    order = sorted(range(len(heights)), key=lambda own: heights[own])
    spread = list(heights)
    for above, own in pairwise(order):
        spread[own] = max(spread[own], spread[above] + room)
    return spread


def _tooltip(trial: Trial) -> str:
    keeps = ", ".join(f"{step.keep} after layer {step.depth}" for step in trial.keeps)
    return f"P@1 {100 * trial.p1:.1f} at {trial.mean_cost:.1%}: {keeps or 'full depth'}"


def _grid_line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#e5e5e5"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 12,
    fill: str = "#333",
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )
