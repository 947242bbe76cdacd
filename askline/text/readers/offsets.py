"""
Build a text from pieces of an original, and map offsets in the text back to the original.

The map is monotone: a later character of the text never comes from an earlier place.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

__all__ = [
    "Segments",
    "TextBuilder",
    "line_starts",
    "replace_surrogates",
]

_PIECES_PER_JOIN = 4096  # joined early to save memory: a short string takes 50 bytes
_LINE_END = re.compile(r"\n|\r\n?")
_SURROGATES = re.compile("[\ud800-\udfff]")


class Segments:
    """
    The pieces of a text with their spans in the original, twelve bytes per piece.

    A piece as long as its span is a copy, character for character. Any other piece stands for its
    span as a whole, as `&` does for `&amp;`. The span of text that is not in the original, such as
    an added line break, is empty.
    """

    def __init__(self) -> None:
        self._text = array("I")
        self._start = array("I")
        self._end = array("I")
        self._length = 0
        self._copied_to = -1  # the end of the last piece in the original, if it is a copy

    def add(self, length: int, start: int, end: int) -> None:
        """Append a piece of `length` characters (at least one) for `original[start:end]`."""
        is_copy = end - start == length
        if is_copy and start == self._copied_to:
            self._end[-1] = end
        else:
            self._text.append(self._length)
            self._start.append(start)
            self._end.append(end)
        self._copied_to = end if is_copy else -1
        self._length += length

    def start(self, offset: int) -> int:
        """The start in the original of the character at `offset`."""
        at = bisect_right(self._text, offset) - 1
        if at < 0:
            return 0
        if self._is_copy(at):
            return min(self._start[at] + offset - self._text[at], self._end[at])
        return self._start[at] if offset < self._length else self._end[at]

    def end(self, offset: int) -> int:
        """The end in the original of the character before `offset`."""
        at = bisect_right(self._text, offset - 1) - 1
        if at < 0:
            return 0
        if self._is_copy(at):
            return min(self._start[at] + offset - self._text[at], self._end[at])
        return self._end[at]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span of `text[start:end]` in the original; an empty span stays empty."""
        first = self.start(start)
        return (first, self.end(end)) if end > start else (first, first)

    def spans(self, starts: Sequence[int], ends: Sequence[int]) -> tuple[list[int], list[int]]:
        """The `span` of each of many parts of the text that are in order and not empty."""
        firsts: list[int] = []
        lasts: list[int] = []
        text, first, last = self._text.tolist(), self._start.tolist(), self._end.tolist()
        text.append(self._length)
        at, shift, limit = -1, 0, -1  # the piece, and its shift and end if it is a copy
        pieces = len(first)
        for start, end in zip(starts, ends, strict=True):
            if start >= limit:
                while at + 1 < pieces and text[at + 1] <= start:
                    at += 1
                is_copy = at >= 0 and last[at] - first[at] == text[at + 1] - text[at]
                shift, limit = (first[at] - text[at], text[at + 1]) if is_copy else (0, -1)
            firsts.append(start + shift if start < limit else self.start(start))
            if end <= limit:
                lasts.append(end + shift)
                continue
            final = max(at, 0)  # the piece of the last character
            while final + 1 < pieces and text[final + 1] < end:
                final += 1
            if not pieces:
                lasts.append(0)
            elif last[final] - first[final] == text[final + 1] - text[final]:
                lasts.append(min(first[final] + end - text[final], last[final]))
            else:
                lasts.append(last[final])
        return firsts, lasts

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """The pieces of `text[start:end]`: their spans in the text, then in the original."""
        at = max(bisect_right(self._text, start) - 1, 0)
        while start < end:
            following = at + 1
            last = self._text[following] if following < len(self._text) else self._length
            stop = min(end, last)
            yield start, stop, *self.span(start, stop)
            start, at = stop, following

    def through(self, outer: Segments) -> Segments:
        """
        The same text mapped to the original of its original.

        `outer` maps the text that these pieces were taken from to its own original.
        """
        result = Segments()
        for first, last, start, end in self.pieces(0, self._length):
            if start == end:
                at = outer.end(start) if start else outer.start(0)
                result.add(last - first, at, at)
            elif end - start == last - first:
                for left, right, *span in outer.pieces(start, end):
                    result.add(right - left, *span)
            else:
                result.add(last - first, *outer.span(start, end))
        return result

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
    """Collects the pieces of a text; `length` is the length so far."""

    def __init__(self) -> None:
        self.segments = Segments()
        self.length = 0
        self._pieces: list[str] = []
        self._joined: list[str] = []

    def add(self, piece: str, start: int, end: int) -> None:
        """Append the text of `original[start:end]`."""
        length = len(piece)
        if length:
            pieces = self._pieces
            pieces.append(piece)
            if len(pieces) == _PIECES_PER_JOIN:
                self._joined.append("".join(pieces))
                pieces.clear()
            self.segments.add(length, start, end)
            self.length += length

    def add_whole(self, piece: str, start: int, end: int) -> None:
        """
        Append text that stands for `original[start:end]` and may be longer or shorter.

        If it is no copy, its first character has the whole span, so that no two spans overlap.
        """
        if len(piece) == end - start:
            self.add(piece, start, end)
        else:
            self.add(piece[:1], start, end)
            self.add(piece[1:], end, end)

    def insert(self, piece: str, at: int) -> None:
        """Append text that the original does not have, such as a line break, at its offset `at`."""
        self.add(piece, at, at)

    def text(self) -> str:
        """The text so far."""
        return "".join([*self._joined, *self._pieces])


def line_starts(text: str) -> array[int]:
    """The offset of each line. Lines end at \\n, \\r\\n or a single \\r, as in text editors."""
    if "\r" not in text:  # several times as fast as the pattern
        starts = array("I", accumulate([len(line) + 1 for line in text.split("\n")], initial=0))
        starts.pop()
        return starts
    starts = array("I", (0,))
    starts.extend(match.end() for match in _LINE_END.finditer(text))
    return starts


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which JSON escapes can name and UTF-8 cannot."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
