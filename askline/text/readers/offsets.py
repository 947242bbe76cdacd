"""
A text put together from pieces of an original, and the way back from the one to the other.

The map is monotone: of two characters of the text, the later one never comes from an earlier place.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right

__all__ = [
    "Segments",
    "TextBuilder",
    "line_starts",
]

_TOGETHER = 4096  # pieces are joined so many at a time, for a short string takes 50 bytes
_LINE_END = re.compile(r"\n|\r\n?")


class Segments:
    """
    Pieces of a text with the spans of the original they came from, twelve bytes a piece.

    A piece as long as its span is a copy, character for character. Any other stands for its span as
    a whole, as `&` does for `&amp;`; a span may be empty where the text has something of its own.
    """

    def __init__(self) -> None:
        self._text = array("I")
        self._start = array("I")
        self._end = array("I")
        self._length = 0

    def add(self, length: int, start: int, end: int) -> None:
        """The next piece of the text, of at least one character."""
        copied = end - start == length
        if copied and self._text and self._end[-1] == start and self._is_copy(-1):
            self._end[-1] = end
        else:
            self._text.append(self._length)
            self._start.append(start)
            self._end.append(end)
        self._length += length

    def start(self, offset: int) -> int:
        """Where the character at `offset` starts in the original."""
        at = bisect_right(self._text, offset) - 1
        if at < 0:
            return 0
        if self._is_copy(at):
            return min(self._start[at] + offset - self._text[at], self._end[at])
        return self._start[at] if offset < self._length else self._end[at]

    def end(self, offset: int) -> int:
        """Where the character before `offset` ends in the original."""
        at = bisect_right(self._text, offset - 1) - 1
        if at < 0:
            return 0
        if self._is_copy(at):
            return min(self._start[at] + offset - self._text[at], self._end[at])
        return self._end[at]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original of `text[start:end]`; an empty span stays empty."""
        first = self.start(start)
        return (first, self.end(end)) if end > start else (first, first)

    def __len__(self) -> int:
        return len(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Segments) and (
            (self._text, self._start, self._end) == (other._text, other._start, other._end)
        )

    __hash__ = None  # type: ignore[assignment]

    def _is_copy(self, at: int) -> bool:
        following = at + 1
        last = self._text[following] if 0 < following < len(self._text) else self._length
        return self._end[at] - self._start[at] == last - self._text[at]


class TextBuilder:
    """Gathers the pieces; `length` is how long the text has become."""

    def __init__(self) -> None:
        self.segments = Segments()
        self.length = 0
        self._pieces: list[str] = []
        self._joined: list[str] = []

    def add(self, piece: str, start: int, end: int) -> None:
        """Text that stands for `original[start:end]`."""
        if piece:
            self._pieces.append(piece)
            if len(self._pieces) == _TOGETHER:
                self._joined.append("".join(self._pieces))
                self._pieces.clear()
            self.segments.add(len(piece), start, end)
            self.length += len(piece)

    def gap(self, piece: str, at: int) -> None:
        """Text of our own, such as a line break, at a place of the original."""
        self.add(piece, at, at)

    def text(self) -> str:
        """Everything so far."""
        return "".join([*self._joined, *self._pieces])


def line_starts(text: str) -> array[int]:
    """Where each line starts. Lines end as editors count them: at \\n, \\r\\n or a lone \\r."""
    starts = array("I", (0,))
    starts.extend(match.end() for match in _LINE_END.finditer(text))
    return starts
