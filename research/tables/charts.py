"""
Charts of the report as SVG: points, lines, a legend, two axes.

Colors come from the page's style sheet, so that a chart is readable in light and dark mode; outside
such a page the fallbacks of `var()` give the light one. A chart without figures is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import ceil, floor, log10
from typing import Any

from .report_rows import ReportTable
from .result_files import ResultFiles

__all__ = ["Axis", "Chart", "Series", "charts"]

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
    """Points of one name, joined by a row or not; a label for each point is shown on hovering."""

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


_NOT_DRAWN = ("bm25", "bm25s", "jaccard", "jaccard % 100 >> cascade", "cascade")
_KEPT = ("jaccard", "bm25", "idf-overlap", "cosinet", "compare-aggregate")


def charts(results: ResultFiles, tables: Iterable[ReportTable]) -> list[str]:
    """Each picture as SVG."""
    found = list(tables)
    drawn: list[Callable[[], Chart]] = [
        lambda: _by_cost(results),
        lambda: _by_parameters(results, found),
        lambda: _by_kept(results),
        lambda: _grid(results),
        lambda: _by_candidates(results),
        lambda: _reliability(results),
    ]
    return [picture for draw in drawn if (picture := draw().svg())]


def _by_cost(results: ResultFiles) -> Chart:
    """The cascade by depth and by drop ratio."""
    rows = _object(results.at("cascade_runs", "test-shipped", "wikiqa-test-400"))
    depths = [(int(key), own) for key, own in rows.items() if key.isdigit()]
    full = max((depth for depth, _ in depths), default=1)
    last = max(_list(results.at("cascade_cost", "depths")), default=full)  # in what ships
    single = [(100 * depth / full, own[2], f"{depth} layers") for depth, own in depths]
    dropped = [(100 * own[3], own[2], key) for key, own in rows.items() if "alpha" in key]
    tuned = [
        (100 * row["token-layers"] * last / full, row["P@1"], row["row"])
        for row in _list(results.at("cascade_cost", "WikiQA, 243 questions, 400 candidates"))
        if "tuned" in row["row"]
    ]
    series = (
        _series("one depth for all", single, line=True),
        _series("a share dropped", dropped),
        _series("tuned schedule", tuned),
    )
    return Chart(
        "WikiQA test, 400 candidates: P@1 by cost",
        Axis("layers computed, relative to all twelve", low=0, unit=" %"),
        Axis("P@1, %"),
        tuple(own for own in series if own.points),
    )


def _by_parameters(results: ResultFiles, tables: Iterable[ReportTable]) -> Chart:
    """Cosinet's Table 4, theirs and ours, and the small transformers."""
    table = next((own for own in tables if own.table.id == "cosinet-4"), None)
    theirs, ours = [], []
    for row in table.rows if table else ():
        quality, _, parameters, _ = row.cells
        if quality.published and parameters.published:
            theirs.append((parameters.published, quality.published, row.name))
        if quality.ours and parameters.ours:
            ours.append((parameters.ours.value, quality.ours.value, row.name))
    small = [
        (row["parameters"], row["test"]["MAP"], f"{row['depth']} layers, seed {row['seed']}")
        for row in _list(results.at("transformers", "rows", "adapt_wikiqa"))
    ]
    series = (
        _series("published", theirs),
        _series("ours", ours),
        _series("transfer and adapt, ours", small),
    )
    return Chart(
        "WikiQA test: MAP by parameters",
        Axis("parameters", log=True),
        Axis("MAP, %"),
        tuple(own for own in series if own.points),
    )


def _by_kept(results: ResultFiles) -> Chart:
    """Figure 2 of the Sequential rerankers."""
    rows = _object(results.at("sequential", "wikiqa:test padded to 1300"))
    series = []
    for name in _KEPT:
        kept = rows.get(name, {}).get("kept", {})
        points = [(float(keep), own["P@1"], f"{name}, {keep} kept") for keep, own in kept.items()]
        if points:
            series.append(_series(name, points, line=True))
    return Chart(
        "WikiQA test, 1,300 candidates: P@1 by the number of candidates that the first stage keeps",
        Axis("candidates kept for the cascade", log=True, low=1, high=1000),
        Axis("P@1, %"),
        tuple(series),
    )


def _grid(results: ResultFiles) -> Chart:
    """Figure 2 of the Cascade Transformer."""
    settings = _list(results.at("cascade_grid", "settings"))
    points = [(100 * row[4], row[5], ", ".join(map(str, row[:4]))) for row in settings]
    same = [(x, y, label) for x, y, label in points if len(set(label.split(", "))) == 1]
    series = [_series("four ratios", points, faint=True), _series("the same four times", same)]
    return Chart(
        "Four dev sets, 20 candidates: every setting of four drop ratios",
        Axis("layers computed, relative to full depth", unit=" %"),
        Axis("P@1, %", least=6),
        tuple(own for own in series if own.points),
    )


def _by_candidates(results: ResultFiles) -> Chart:
    """Beside what people use, on two cores; the cascade alone on a GPU and by processor time."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in _list(results.at("peers", "rows")):
        if row["system"] not in _NOT_DRAWN:
            found.setdefault(row["system"], []).append((row["candidates"], row["ms p50"]))
    for row in _list(results.at("cascade_gpu", "rows")):
        if row["schedule"] == "full depth":
            found.setdefault("cascade, one H200", []).append((row["candidates"], row["ms"]))
    for way, rows in _object(results.at("engine_growth", "ways")).items():
        own = [(int(count), row["processor ms"]) for count, row in rows.items()]
        found[f"cascade({way}), processor time"] = own
    series = [
        _series(name, [(float(x), y, f"{name}, {x:,}") for x, y in sorted(own)], line=True)
        for name, own in found.items()
    ]
    return Chart(
        "Milliseconds per question by the number of candidates",
        Axis("candidates", log=True),
        Axis("ms, median", log=True),
        tuple(series),
    )


def _reliability(results: ResultFiles) -> Chart:
    curves = _object(results.at("calibration", "reliability"))
    series = [
        _series(
            name,
            [(100 * own["said"], 100 * own["true"], f"{own['pairs']:,} pairs") for own in bins],
            line=True,
        )
        for name, bins in curves.items()
    ]
    return Chart(
        "Calibration: SQuAD v2.0 dev",
        Axis("predicted probability, %", low=0, high=100),
        Axis("share of right answers, %", low=0, high=100),
        tuple(series),
        diagonal=True,
    )


def _series(
    name: str,
    points: Iterable[tuple[float, float, str]],
    *,
    line: bool = False,
    faint: bool = False,
) -> Series:
    own = list(points)
    labels = tuple(f"{label}: {y:.2f}" for _, y, label in own)
    return Series(name, tuple((x, y) for x, y, _ in own), labels, line, faint)


def _object(found: list[Any]) -> dict[str, Any]:
    return found[0] if found and isinstance(found[0], dict) else {}


def _list(found: list[Any]) -> list[Any]:
    return found[0] if found and isinstance(found[0], list) else []
