"""
Text as lines of a terminal: its columns counted, and nothing in it that a terminal obeys.

Tables and long lines for a person; without colour and never wrapped when not on a terminal.

What could not be read, on stderr, after everything else.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..errors import Problem
    from ..types import StageReport

__all__ = [
    "SOME_FAILED",
    "columns",
    "from_here",
    "harmless",
    "print_funnel",
    "print_hanging",
    "print_table",
    "show_problems",
    "wrapped",
]

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


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """The first column is text, the others are figures and stand to the right."""
    if title:
        click.secho(title, dim=True)
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for number, (first, *others) in enumerate(lines):
        figures = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        line = "  ".join([first.ljust(widths[0]), *figures]).rstrip()
        click.secho(line, bold=True if number == 0 else None)


def print_hanging(
    margin: str, text: str, *, mark: tuple[int, int] | None = None, **style: Any
) -> None:
    """
    A text beside its margin; on a terminal it is wrapped, and later lines stand below it.

    With a `mark`, the style goes to the characters between the two places alone.
    """
    room = max(20, shutil.get_terminal_size().columns - len(margin))
    lines = wrapped(text, room) if sys.stdout.isatty() else [text]
    start, end = mark or (0, len(text))
    at = 0
    for number, line in enumerate(lines):
        at = max(at, text.find(line, at))  # wrapping has left out the space before it
        first, last = (min(max(place - at, 0), len(line)) for place in (start, end))
        beside = " " * len(margin) if number else margin
        click.echo(beside + line[:first] + _styled(line[first:last], style) + line[last:])
        at += len(line)


def _styled(text: str, style: dict[str, Any]) -> str:
    return click.style(text, **style) if text else ""


def print_funnel(stages: Sequence[StageReport]) -> None:
    """
    Stage by stage: how many came in, how many went on, and what that took.

    Two more columns where they have something to say: how many were not judged in time, and the
    layers computed, relative to all candidates at full depth.
    """
    header = ["stage", "in", "kept", "ms"]
    rows = [
        [stage.ranker, str(stage.entered), str(stage.kept), f"{1000 * stage.seconds:.2f}"]
        for stage in stages
    ]
    if any(stage.skipped for stage in stages):
        header.append("skipped")
        rows = [[*row, str(stage.skipped)] for row, stage in zip(rows, stages, strict=True)]
    if any(stage.cost for stage in stages):
        header.append("layers")
        shares = [f"{stage.cost.token_share:.1%}" if stage.cost else "" for stage in stages]
        rows = [[*row, share] for row, share in zip(rows, shares, strict=True)]
    print_table(header, rows)


SOME_FAILED = 3
"""The exit code of a command that did what it should, except for some files."""

_SHOWN = 20


def show_problems(problems: Sequence[Problem]) -> None:
    """Each on a line, the first twenty of them."""
    if not problems:
        return
    click.echo(f"{len(problems):,} left out:", err=True)
    for problem in problems[:_SHOWN]:
        click.echo(f"  {from_here(str(problem))}", err=True)
    if len(problems) > _SHOWN:
        click.echo(f"  … and {len(problems) - _SHOWN:,} more.", err=True)


def from_here(place: str) -> str:
    """A place that begins with a path, as short as it can be said from the current folder."""
    if place.startswith("-:"):
        place = f"standard input{place[1:]}"
    return harmless(place.removeprefix(os.path.join(os.getcwd(), "")))
