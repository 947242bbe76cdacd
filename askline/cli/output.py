"""
Terminal output: tables, wrapped text, pipeline stages and unreadable files.

Text is wrapped only on a terminal; a pipe or a file gets whole lines. Colors are removed by click
when the output is not a terminal.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import click

from .terminal import link_text, uses_color

if TYPE_CHECKING:
    from ..corpus import MissingShard, NotReadFiles
    from ..errors import NotReadReason, Problem
    from ..types import StageReport

__all__ = [
    "EXIT_NO_ANSWER",
    "EXIT_SOME_UNREADABLE",
    "PLAIN",
    "Style",
    "describe_not_read",
    "display_width",
    "print_indented",
    "print_missing_shards",
    "print_not_read",
    "print_problems",
    "print_stages",
    "print_table",
    "relative_path",
    "relative_place",
    "replace_controls",
    "wrap",
]

EXIT_SOME_UNREADABLE = 3
EXIT_NO_ANSWER = 4

_MOST_PROBLEMS = 20
_MOST_KINDS = 5
_REASONS: dict[NotReadReason, str] = {
    "damaged": "damaged",
    "empty": "no text",
    "no column": "no column of text",
    "scan": "scanned pages without text",
    "password": "protected by a password",
    "too large": "too large",
    "limit": "over the limits of time or memory",
    "binary": "binary data",
    "unsupported": "format without a reader",
    "unreachable": "cannot be opened",
    "link": "link out of the folder",
    "hidden": "hidden",
    "ignored": "in .gitignore",
    "excluded": "left out by options",
    "packages": "installed packages",
}
_LEAST_TEXT_WIDTH = 20

_WIDE = frozenset("WF")
_ZERO_WIDTH = frozenset(("Mn", "Me", "Cf"))
# A file may contain escape sequences that move the cursor or rename the window.
_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], " ")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """
    Print a table: the first column left-aligned, the others right-aligned.

    On a terminal that is too narrow, a first cell that does not fit gets a line of its own.
    """
    if title:
        click.secho(title, dim=True)
    lines = [header, *rows]
    widths = [max(display_width(line[column]) for line in lines) for column in range(len(header))]
    if sys.stdout.isatty():
        figures_width = sum(2 + width for width in widths[1:])
        room = shutil.get_terminal_size().columns - figures_width
        if widths[0] > room:
            fitting = [width for line in lines if (width := display_width(line[0])) <= room]
            widths[0] = max(fitting, default=0)
    for number, (first, *others) in enumerate(lines):
        if display_width(first) > widths[0]:
            click.echo(first)
            first = ""
        cells = [first + " " * (widths[0] - display_width(first))]
        cells += [
            " " * (width - display_width(cell)) + cell
            for cell, width in zip(others, widths[1:], strict=True)
        ]
        line = "  ".join(cells).rstrip()
        click.echo(click.style(line, bold=True) if number == 0 else line)


def print_stages(stages: Sequence[StageReport]) -> None:
    """
    Print one row per pipeline stage: candidates in, candidates kept, milliseconds.

    Two columns appear only when they have values: `skipped`, the candidates that were not scored
    before the deadline, and `layers`, the computed layers relative to all candidates at full depth.
    """
    header = ["stage", "in", "kept", "ms"]
    rows = [
        [_stage_name(stage), str(stage.entered), str(stage.kept), f"{1000 * stage.seconds:.2f}"]
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


def _stage_name(stage: StageReport) -> str:
    return f"{stage.ranker} in context" if stage.in_context else stage.ranker


def print_wrapped(text: str, *, margin: int = 0, err: bool = True) -> None:
    """Print a message; on a terminal, long lines are wrapped and indented by `margin` + 2."""
    stream = sys.stderr if err else sys.stdout
    lines, indent = [text], " " * margin
    if stream.isatty():
        lines = wrap(text, max(_LEAST_TEXT_WIDTH, shutil.get_terminal_size().columns - margin - 2))
    click.echo(f"\n{indent}  ".join([indent + lines[0], *lines[1:]]), err=err)


def print_problems(problems: Sequence[Problem], *, most: int = _MOST_PROBLEMS) -> None:
    """Print the first problems to stderr, one per line."""
    if not problems:
        return
    click.echo(f"Could not read ({len(problems):,}):", err=True)
    for problem in problems[:most]:
        print_wrapped(relative_place(str(problem)), margin=2)
    if len(problems) > most:
        click.echo(f"  … and {len(problems) - most:,} more.", err=True)


def print_missing_shards(shards: Sequence[MissingShard], *, err: bool = True) -> None:
    """Print which shards of an index are not searched, and why."""
    for shard in shards:
        print_wrapped(replace_controls(f"Not searched: {shard.name}. {shard.problem}"), err=err)


def print_not_read(files: Sequence[NotReadFiles], *, err: bool = True) -> None:
    """Print what was not read: one line per reason, with the most frequent kinds."""
    if not files:
        return
    rows = _by_reason(files)
    count_width = max(len(count) for count, _, _ in rows)
    reason_width = max(len(reason) for _, reason, _ in rows)
    click.echo(f"Not read ({sum(each.count for each in files):,}):", err=err)
    for count, reason, kinds in rows:
        line = f"  {count:>{count_width}}  {reason:<{reason_width}}  {kinds}"
        click.echo(replace_controls(line).rstrip(), err=err)


def describe_not_read(files: Sequence[NotReadFiles]) -> str:
    """`12 binary data (.png 12), 3 hidden (folder 2, .md 1)`; `nothing` if there is nothing."""
    described = (f"{count} {reason} ({kinds})" for count, reason, kinds in _by_reason(files))
    return replace_controls(", ".join(described)) or "nothing"


def _by_reason(files: Sequence[NotReadFiles]) -> list[tuple[str, str, str]]:
    """The count, the words and the kinds of each reason."""
    rows = []
    for reason, group in groupby(files, key=lambda each: each.reason):
        found = list(group)
        kinds = [f"{each.kind} {each.count:,}" for each in found[:_MOST_KINDS]]
        if len(found) > _MOST_KINDS:
            kinds.append("…")
        count = sum(each.count for each in found)
        rows.append((f"{count:,}", _REASONS[reason], ", ".join(kinds)))
    return rows


class Style(NamedTuple):
    """How a part of a line looks; without color, only the text and its links are printed."""

    fg: str | None = None
    bold: bool | None = None
    dim: bool | None = None
    url: str = ""
    """What a terminal opens when the part is clicked."""


PLAIN = Style()


def print_indented(margin: str, *parts: str | tuple[str, Style]) -> None:
    """
    Print parts of a line after a margin.

    On a terminal, long lines are wrapped and indented by the margin's width. A no-break space is
    printed as a space and never ends a line.
    """
    styled = [(part, PLAIN) if isinstance(part, str) else part for part in parts]
    text = "".join(part for part, _ in styled)
    width = display_width(margin)
    room = max(_LEAST_TEXT_WIDTH, shutil.get_terminal_size().columns - width)
    lines = wrap(text, room) if sys.stdout.isatty() else [text]
    color, at = uses_color(), 0
    for number, line in enumerate(lines):
        at = max(at, text.find(line, at))  # skip the space that wrapping removed
        shown = "".join(
            _styled(part.replace("\u00a0", " "), style, color=color)
            for part, style in _between(styled, at, at + len(line))
        )
        click.echo((" " * width if number else margin) + shown, color=color)
        at += len(line)


def _between(
    parts: Sequence[tuple[str, Style]], start: int, end: int
) -> Iterator[tuple[str, Style]]:
    """The parts of a text between two offsets."""
    at = 0
    for part, style in parts:
        inside = part[max(0, start - at) : max(0, end - at)]
        if inside:
            yield inside, style
        at += len(part)


def _styled(text: str, style: Style, *, color: bool) -> str:
    fg, bold, dim, url = style
    if color and (fg or bold or dim):
        text = click.style(text, fg=fg, bold=bold, dim=dim)
    return link_text(text, url) if url else text


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most `width` columns, at spaces or before wide characters."""
    lines: list[str] = []
    start = break_at = used = 0  # start of the line, last place to break it, columns so far
    for at, character in enumerate(text):
        character_width = _character_width(character)
        if character == " " or character_width == 2:
            break_at = at
        used += character_width
        if used > width and character != " ":
            end = break_at if display_width(text[start:break_at]) else at
            lines.append(text[start:end].rstrip())
            start = end + 1 if text[end] == " " else end
            used = display_width(text[start : at + 1])
    lines.append(text[start:].rstrip())
    return lines


def display_width(text: str) -> int:
    """Terminal columns: two for an East Asian wide character, none for a combining mark."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def replace_controls(text: str) -> str:
    """Replace each control character with a space, so that offsets stay valid."""
    return text.translate(_CONTROLS)


def relative_place(place: str) -> str:
    """A place that starts with a path, relative to the current folder where possible."""
    if place.startswith("-:"):
        place = f"standard input{place[1:]}"
    return replace_controls(relative_path(place))


def relative_path(path: str) -> str:
    """An absolute path relative to the current folder, if it is inside it."""
    return path.removeprefix(os.path.join(os.getcwd(), ""))
