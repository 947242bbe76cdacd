"""Text as lines of a terminal: its columns counted, and nothing in it that a terminal obeys."""

from __future__ import annotations

import unicodedata

__all__ = ["columns", "harmless", "wrapped"]

_WIDE = frozenset("WF")
_UNSEEN = frozenset(("Mn", "Me", "Cf"))
# What a file holds may move the cursor or change the title of the window; none of it is text.
_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], " ")


def harmless(text: str) -> str:
    """The same with a space for each control character, so places in it stay."""
    return text.translate(_CONTROLS)


def columns(text: str) -> int:
    """How many a terminal takes: two for an East Asian letter, none for an accent on its own."""
    return len(text) if text.isascii() else sum(map(_width, text))


def wrapped(text: str, room: int) -> list[str]:
    """Lines of at most `room` columns, broken at spaces or before a wide character if they can."""
    lines: list[str] = []
    start = place = used = 0  # of the line at hand, where it may end, its columns
    for at, character in enumerate(text):
        width = _width(character)
        if character == " " or width == 2:
            place = at
        used += width
        if used > room and character != " ":
            end = place if columns(text[start:place]) else at
            lines.append(text[start:end].rstrip())
            start = end + 1 if text[end] == " " else end
            used = columns(text[start : at + 1])
    lines.append(text[start:].rstrip())
    return lines


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _UNSEEN:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
