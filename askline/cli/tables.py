"""Tables and long lines for a person; without colour and never wrapped when not on a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .lines import wrapped

if TYPE_CHECKING:
    from ..types import StageReport

__all__ = ["print_funnel", "print_hanging", "print_table"]


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
