"""Tables and long lines for a person; without colour and never wrapped when not on a terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

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
        click.secho("  ".join([first.ljust(widths[0]), *figures]), bold=number == 0)


def print_hanging(margin: str, text: str, **style: Any) -> None:
    """A text beside its margin; on a terminal it is wrapped, and later lines stand below it."""
    if not sys.stdout.isatty():
        click.echo(margin + text)
        return
    room = max(20, shutil.get_terminal_size().columns - len(margin))
    first, *others = textwrap.wrap(text, room) or [""]
    click.echo(margin + click.style(first, **style))
    for line in others:
        click.echo(" " * len(margin) + click.style(line, **style))


def print_funnel(stages: Sequence[StageReport]) -> None:
    """Stage by stage: how many came in, how many went on, and what that took."""
    print_table(
        ["stage", "in", "kept", "ms"],
        [
            [stage.ranker, str(stage.entered), str(stage.kept), f"{1000 * stage.seconds:.2f}"]
            for stage in stages
        ],
    )
