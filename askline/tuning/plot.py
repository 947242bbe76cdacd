"""The fronts as an SVG picture: P@1 against cost, a line for each length of list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from .results import ALPHAS, LengthResult, TuningResult
from .schedule_search import Trial

__all__ = ["results_svg"]

_WIDTH, _HEIGHT = 760, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 170, 56, 56
# Told apart by people who are colour-blind too (Okabe and Ito).
_COLOURS = ("#0072B2", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#888888")
_POINTS_SHOWN = 8.0  # percentage points of P@1 below the best; what is worse is cut off


def results_svg(tuned: TuningResult) -> str:
    """A picture that stands by itself, light background, no scripts, no fonts to fetch."""
    lines = [(f"{row.count} candidates", row) for row in reversed(tuned.rows)]
    for whole in tuned.pipelines:
        lines.insert(0, (f"{whole.count}, first stage", whole))
    axes = _Axes.around([found for _, found in lines])
    parts = [*_frame(axes, tuned)]
    labels = _spread([axes.y(found.front[-1].p1) for _, found in lines])
    for (name, found), colour, at in zip(lines, _cycle(len(lines)), labels, strict=True):
        parts += _line(axes, name, found, colour, at)
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
    def around(cls, found: Sequence[LengthResult]) -> _Axes:
        values = [100 * own.front[-1].p1 for own in found]
        chosen = [100 * own.choice.trial.p1 for own in found]
        low = max(min(chosen) - 2, max(values) - _POINTS_SHOWN * 2, 0)
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
    note = "○ schedule taken    × the same share dropped everywhere, α " + ", ".join(
        map(str, ALPHAS)
    )
    yield _text(_LEFT, 40, note, fill="#666")
    for tenth in range(0, 11, 2):
        x = axes.x(tenth / 10)
        yield _rule(x, _TOP, x, bottom)
        yield _text(x, bottom + 18, f"{10 * tenth} %", anchor="middle")
    step = 1 if axes.high - axes.low <= 10 else 2
    for value in range(axes.low, axes.high + 1, step):
        y = axes.y(value / 100)
        yield _rule(_LEFT, y, right, y)
        yield _text(_LEFT - 8, y + 4, str(value), anchor="end")
    x = axes.x(tuned.budget)
    yield f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="#999" stroke-dasharray="4 4"/>'
    yield _text(x + 4, bottom - 6, f"budget {tuned.budget:.0%}", fill="#666")
    middle = (_LEFT + right) / 2
    yield _text(middle, bottom + 40, "token-layers, relative to full depth", anchor="middle")
    yield _text(16, _TOP - 10, "P@1, %")


def _line(axes: _Axes, name: str, found: LengthResult, colour: str, label: float) -> Iterator[str]:
    front = [trial for trial in found.front if axes.shows(trial)]
    points = " ".join(f"{axes.x(trial.price):.1f},{axes.y(trial.p1):.1f}" for trial in front)
    yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for trial in filter(axes.shows, found.rule):
        x, y = axes.x(trial.price), axes.y(trial.p1)
        path = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        yield f'<path d="{path}" stroke="{colour}" stroke-width="1.5"/>'
    x, y = axes.x(found.choice.trial.price), axes.y(found.choice.trial.p1)
    yield (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="white" stroke="{colour}" '
        f'stroke-width="2.5"><title>{escape(_told(found.choice.trial))}</title></circle>'
    )
    end = axes.x(front[-1].price) if front else _LEFT
    yield (
        f'<path d="M{end:.1f} {axes.y(found.front[-1].p1):.1f}L{_WIDTH - _RIGHT + 6} '
        f'{label:.1f}" stroke="{colour}" stroke-width="0.75" stroke-dasharray="2 3"/>'
    )
    yield _text(_WIDTH - _RIGHT + 10, label + 4, name, fill=colour, weight="bold")


def _spread(places: Sequence[float], room: float = 16.0) -> list[float]:
    """Labels at about these heights that do not lie on each other."""
    order = sorted(range(len(places)), key=lambda own: places[own])
    found = list(places)
    for above, own in pairwise(order):
        found[own] = max(found[own], found[above] + room)
    return found


def _told(trial: Trial) -> str:
    keeps = ", ".join(f"{step.keep} after layer {step.depth}" for step in trial.keeps)
    return f"P@1 {100 * trial.p1:.1f} at {trial.price:.1%}: {keeps or 'full depth'}"


def _cycle(count: int) -> list[str]:
    return [_COLOURS[place % len(_COLOURS)] for place in range(count)]


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
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
