"""What could not be read, on stderr, after everything else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .lines import harmless

if TYPE_CHECKING:
    from ..errors import Problem

__all__ = ["SOME_FAILED", "from_here", "show_problems"]

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
