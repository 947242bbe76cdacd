"""Paragraphs, headings and running heads, from the places of the lines on the pages of a pdf."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from .document import BlockKind

__all__ = ["Box", "Line", "Paragraph", "paragraphs", "without_running_heads"]

_HEADING = 1.15  # times the size of the body text
_LONGEST_HEADING = 200  # characters; larger type for more than this is a lead, not a heading
_OTHER_SIZE = 0.12  # lines whose sizes differ by more do not belong together
_WIDE_STEP = 1.3  # times the usual step from line to line
_SHORT_LINE = 0.75  # of the width of the column
_RUNNING = 3  # pages that share a line at their edge, counted without digits
_CONTINUES = (",", "-", "–", "—", "(", "/", "&")


class Box(NamedTuple):
    """Where a line stands. It is two lines where a word was cut: then its ends differ in height."""

    left: float
    top: float
    bottom: float
    right: float
    last_bottom: float


class Line(NamedTuple):
    """The text of a line, and where it stands if that is known."""

    text: str
    box: Box | None = None

    @property
    def size(self) -> float:
        """The height of its type, 0 where it is not known."""
        return self.box.top - self.box.bottom if self.box else 0.0


class Paragraph(NamedTuple):
    """Lines that belong together."""

    text: str
    kind: BlockKind


def paragraphs(pages: Sequence[Sequence[Line]]) -> Iterator[list[Paragraph]]:
    """The paragraphs of each page, in order."""
    body = _body_size(pages)
    for page in pages:
        found: list[Paragraph] = []
        for column in _columns(page):
            for lines in _cut(column):
                found.append(_paragraph(lines, body))
        yield found


def without_running_heads(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The pages without first and last lines that several share, and without page numbers."""
    body = _body_size(pages)
    edges = Counter(
        key for page in pages for key in {_without_digits(line) for line in (*page[:1], *page[-1:])}
    )
    needed = max(_RUNNING, len(pages) // 10)

    def running(line: Line) -> bool:
        small = line.size <= body * _HEADING
        return small and edges[_without_digits(line)] >= needed

    cleaned = []
    for page in pages:
        first = 1 if page and running(page[0]) else 0
        last = len(page) - 1 if len(page) > first and running(page[-1]) else len(page)
        cleaned.append(list(page[first:last]))
    return cleaned


def _without_digits(line: Line) -> str:
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", line.text)


def _body_size(pages: Sequence[Sequence[Line]]) -> float:
    """The height of type that most characters have."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return max(sizes, key=lambda size: sizes[size], default=0.0)


def _columns(page: Sequence[Line]) -> Iterator[list[Line]]:
    """Runs of lines that go down the page: a line further up starts the next column."""
    column: list[Line] = []
    for line in page:
        if column and column[-1].box and line.box and line.box.bottom > column[-1].box.top:
            yield column
            column = []
        column.append(line)
    if column:
        yield column


def _cut(column: list[Line]) -> Iterator[list[Line]]:
    """A column cut into paragraphs."""
    boxes = [line.box for line in column if line.box]
    if len(boxes) < len(column):
        yield column
        return
    steps = [above.last_bottom - below.bottom for above, below in pairwise(boxes)]
    alike = [
        step
        for step, (above, below) in zip(steps, pairwise(column), strict=True)
        if not _differ(above, below)
    ]
    usual = sorted(alike)[len(alike) // 4] if alike else 0.0  # the gaps are among the larger ones
    left, right = min(box.left for box in boxes), max(box.right for box in boxes)
    full = left + (right - left) * _SHORT_LINE
    start = 0
    for at, step in enumerate(steps, 1):
        above, below = column[at - 1], column[at]
        short = boxes[at - 1].right < full and _looks_finished(above.text, below.text)
        if _differ(above, below) or short or step > usual * _WIDE_STEP:
            yield column[start:at]
            start = at
    yield column[start:]


def _differ(above: Line, below: Line) -> bool:
    return abs(above.size - below.size) > _OTHER_SIZE * max(above.size, below.size)


def _looks_finished(above: str, below: str) -> bool:
    return not above.endswith(_CONTINUES) and not below[:1].islower()


def _paragraph(lines: Sequence[Line], body: float) -> Paragraph:
    text = "\n".join(line.text for line in lines)
    large = min(line.size for line in lines) > body * _HEADING
    return Paragraph(text, "heading" if large and len(text) < _LONGEST_HEADING else "text")
