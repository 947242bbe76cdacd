"""Figures as a reader sees them, the same in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Iterator

from .lines import Cell
from .places import Figure

__all__ = ["COUNTS", "Notes", "difference", "number", "ours", "printed", "shown_measures"]

COUNTS = {"questions", "sentences", "parameters"}
_LOWER_IS_BETTER = {"seconds", "cost"}


def number(value: float, measure: str) -> str:
    """With as many places as the measure deserves; true minus signs."""
    if measure in COUNTS:
        return f"{value:,.0f}"
    if measure == "seconds":
        text = f"{value:,.0f}" if abs(value) >= 20 else f"{value:.3g}"
    elif measure == "cost":
        text = f"{value:+.0f} %"
    else:
        text = f"{value:.2f}"
    return text.replace("-", "−")


def printed(cell: Cell) -> str:
    """What the paper has."""
    if cell.published is None:
        return "–"
    spread = f" ± {cell.deviation:.1f}" if cell.deviation is not None else ""
    return number(cell.published, cell.measure) + spread


def ours(figure: Figure | None, measure: str) -> str:
    """What was measured, with its deviation over seeds or its interval over questions."""
    if figure is None:
        return "–"
    text = number(figure.value, measure)
    if figure.deviation is not None and measure not in COUNTS | _LOWER_IS_BETTER:
        return f"{text} ± {figure.deviation:.1f}"
    if figure.interval is not None:
        low, high = figure.interval
        return f"{text} ({low:.1f} to {high:.1f})"
    return text


def difference(cell: Cell) -> str:
    """Ours less theirs; nothing for counts, which are equal or not."""
    apart = cell.difference
    if apart is None or cell.measure in COUNTS | _LOWER_IS_BETTER:
        return ""
    return f"{apart:+.2f}".replace("-", "−")


def shown_measures(measure: str) -> str:
    """A column's head."""
    words = {"cost": "cost against full depth", "answered": "answered, %", "seconds": "seconds"}
    return words.get(measure, measure)


class Notes:
    """Remarks that many rows share, each told once under a letter."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, text: str) -> str:
        """The remark's letter; nothing for nothing."""
        return self._marks.setdefault(text, _letter(len(self._marks))) if text else ""

    def told(self) -> Iterator[tuple[str, str]]:
        """Letters with their remarks."""
        return ((mark, text) for text, mark in self._marks.items())


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"a{number - 25}"
