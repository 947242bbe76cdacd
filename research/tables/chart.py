"""
Small charts as SVG: points, lines, a legend, two axes.

Colours come from the page's style sheet, so that a chart is readable on light and on dark; outside
such a page the fallbacks of `var()` give the light one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import ceil, floor, log10

__all__ = ["Axis", "Chart", "Series"]

_WIDTH, _HEIGHT = 870, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 300, 46, 54
_FALLBACK = ("#0072b2", "#d55e00", "#009e73", "#9a5fb5", "#a87900", "#5b6b7a", "#c2185b", "#3b3b3b")
_COUNT = len(_FALLBACK)


@dataclass(frozen=True, slots=True)
class Axis:
    """A name, a range, and whether equal steps are factors."""

    name: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    unit: str = ""
    least: float = 0.0
    """A range smaller than this is widened, lest small differences look large."""

    def fitted(self, values: Sequence[float]) -> Axis:
        """With a range that holds these values, ends being round where they are not given."""
        low, high = min(values), max(values)
        least = self.least or (1.0 if low == high and not self.log else 0.0)
        room = max(0.0, least - (high - low)) / 2
        low, high = low - room, high + room
        if self.log:
            return replace(
                self,
                low=self.low or 10 ** floor(log10(low)),
                high=self.high or 10 ** ceil(log10(high) + 1e-9),
            )
        step = _step(max(high - low, 1e-9))
        return replace(
            self,
            low=floor(low / step) * step if self.low is None else self.low,
            high=ceil(high / step) * step if self.high is None else self.high,
        )

    def share(self, value: float) -> float:
        """Where on the axis, from 0 to 1."""
        assert self.low is not None
        assert self.high is not None
        if self.log:
            return log10(value / self.low) / log10(self.high / self.low)
        return (value - self.low) / ((self.high - self.low) or 1.0)

    @property
    def ticks(self) -> list[float]:
        """Round values within the range."""
        assert self.low is not None
        assert self.high is not None
        if self.log:
            first, last = round(log10(self.low)), round(log10(self.high))
            return [10.0**power for power in range(first, last + 1)]
        step = _step(self.high - self.low)
        first = ceil(self.low / step - 1e-9)
        last = floor(self.high / step + 1e-9)
        return [place * step for place in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name, joined by a line or not; a label for each point is shown on hovering."""

    name: str
    points: tuple[tuple[float, float], ...]
    labels: tuple[str, ...] = ()
    line: bool = False
    faint: bool = False
    written: bool = False
    """Whether the labels stand beside the points."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Several series over the same axes."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    diagonal: bool = False

    def svg(self) -> str:
        """The picture; it stands by itself and runs nothing."""
        points = [point for own in self.series for point in own.points]
        if not points:
            return ""
        fitted = replace(
            self,
            x=self.x.fitted([x for x, _ in points]),
            y=self.y.fitted([y for _, y in points]),
        )
        body = "\n".join(fitted._parts())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'aria-label="{escape(self.title)}" font-family="system-ui, sans-serif" '
            f'font-size="12">\n{body}\n</svg>'
        )

    def _parts(self) -> Iterator[str]:
        yield _text(_LEFT, 20, self.title, kind="ink", size=15, weight="600")
        yield from self._axes()
        if self.diagonal:
            yield (
                f'<path d="M{_LEFT} {_HEIGHT - _BOTTOM}L{_WIDTH - _RIGHT} {_TOP}" '
                'stroke="var(--soft, #888)" stroke-dasharray="4 4" fill="none"/>'
            )
        for place, own in enumerate(self.series):
            yield from self._drawn(own, place)
        yield from _legend(self.series)

    def _axes(self) -> Iterator[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        for value in self.x.ticks:
            x = self._x(value)
            yield _rule(x, _TOP, x, bottom)
            yield _text(x, bottom + 17, _told(value, self.x), anchor="middle")
        for value in self.y.ticks:
            y = self._y(value)
            yield _rule(_LEFT, y, right, y)
            yield _text(_LEFT - 8, y + 4, _told(value, self.y), anchor="end")
        yield _text((_LEFT + right) / 2, bottom + 40, self.x.name, anchor="middle", kind="ink")
        yield _text(12, _TOP - 10, self.y.name, kind="ink")

    def _drawn(self, own: Series, place: int) -> Iterator[str]:
        places = [(self._x(x), self._y(y)) for x, y in own.points]
        if own.line:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            dashes = ' stroke-dasharray="5 4"' if place >= _COUNT else ""
            yield (
                f'<polyline points="{path}" fill="none" stroke="{_paint(place)}" '
                f'stroke-width="2"{dashes}/>'
            )
        radius, opacity = (2.5, 0.35) if own.faint else (4.5, 1)
        for number, (x, y) in enumerate(places):
            label = own.labels[number] if own.labels else own.name
            yield (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {_fill(place)} '
                f'fill-opacity="{opacity}"><title>{escape(label)}</title></circle>'
            )
            if own.written:
                yield _text(x + 7, y - 6, label, size=11)

    def _x(self, value: float) -> float:
        return _LEFT + self.x.share(value) * (_WIDTH - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - self.y.share(value) * (_HEIGHT - _TOP - _BOTTOM)


def _legend(series: Sequence[Series]) -> Iterator[str]:
    for place, own in enumerate(series):
        y = _TOP + 8 + 20 * place
        yield f'<circle cx="{_WIDTH - _RIGHT + 16}" cy="{y}" r="4.5" {_fill(place)}/>'
        yield _text(_WIDTH - _RIGHT + 26, y + 4, own.name, kind="ink")


def _paint(place: int) -> str:
    colour = place % _COUNT
    return f"var(--series-{colour}, {_FALLBACK[colour]})"


def _fill(place: int) -> str:
    """Full; where the colours come round a second time, hollow, with dashes between."""
    if place < _COUNT:
        return f'fill="{_paint(place)}"'
    return f'fill="var(--paper, #fff)" stroke="{_paint(place)}" stroke-width="2"'


def _step(span: float) -> float:
    """A round number of which the span holds four to ten."""
    base: float = 10 ** floor(log10(span / 4))
    return next(base * factor for factor in (1, 2, 5, 10) if span / (base * factor) <= 8)


_SHORT: tuple[tuple[float, str], ...] = ((1e9, " G"), (1e6, " M"), (1e3, " k"))


def _told(value: float, axis: Axis) -> str:
    for size, mark in _SHORT:
        if axis.log and value >= size:
            return f"{value / size:g}{mark}{axis.unit}"
    return f"{round(value, 6):g}{axis.unit}"


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="var(--rule, #e4e4e4)" '
        'fill="none"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    kind: str = "soft",
    size: int = 12,
    weight: str = "400",
) -> str:
    paint = {"ink": "var(--ink, #222)", "soft": "var(--soft, #666)"}[kind]
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}" fill="{paint}">{escape(text)}</text>'
    )
