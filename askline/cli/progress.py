"""
Progress on stderr for what takes more than two seconds, and nothing for what does not.

On a terminal it is a bar or a count that moves. In a file or a pipe, where that would be thousands
of characters, it is a line a minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import click

__all__ = ["progress_bar", "progress_count", "step_logger"]

_PATIENCE_SECONDS = 2.0
_PAUSE_SECONDS = 0.2
_LINE_SECONDS = 60.0
_STEP_SECONDS = 20.0


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Gives a function to call after each of `total` steps."""
    if not sys.stderr.isatty():
        yield _lines(what, total)
        return
    show_from = time.monotonic() + _PATIENCE_SECONDS
    with click.progressbar(
        length=total, label=what, file=sys.stderr, show_pos=True, hidden=True
    ) as bar:

        def step() -> None:
            if bar.hidden and time.monotonic() > show_from:
                bar.hidden = False
            bar.update(1)

        yield step


@contextmanager
def progress_count(what: str) -> Iterator[Callable[[], None]]:
    """The same where nobody knows how many steps there will be: a count that grows."""
    if not sys.stderr.isatty():
        yield _lines(what)
        return
    show_from = time.monotonic() + _PATIENCE_SECONDS
    count = 0
    shown = False

    def step() -> None:
        nonlocal count, shown, show_from
        count += 1
        if time.monotonic() > show_from:
            show_from = time.monotonic() + _PAUSE_SECONDS
            shown = True
            click.echo(f"\r{what}: {count:,}", nl=False, err=True)

    try:
        yield step
    finally:
        if shown:
            click.echo(f"\r{what}: {count:,}", err=True)


class StepLogger(Protocol):
    """Hears of a step."""

    def __call__(self, what: str, done: int, of: int, more: str = "") -> None:
        """What learns, how many steps are done, of how many, and what else is to be said."""
        ...


def step_logger() -> StepLogger:
    """Gives a function to call after each step of a training; it says one in twenty seconds."""
    due = time.monotonic() + _STEP_SECONDS

    def step(what: str, done: int, of: int, more: str = "") -> None:
        nonlocal due
        if time.monotonic() < due and done < of:
            return
        due = time.monotonic() + _STEP_SECONDS
        click.echo(f"{what}  step {done:,} of {of:,}  {more}".rstrip(), err=True)

    return step


def _lines(what: str, total: int | None = None) -> Callable[[], None]:
    """How far it is, once a minute."""
    begun = time.monotonic()
    next_line = begun + _LINE_SECONDS
    count = 0

    def step() -> None:
        nonlocal count, next_line
        count += 1
        now = time.monotonic()
        if now < next_line:
            return
        next_line = now + _LINE_SECONDS
        said = f"{what}: {count:,}"
        if total is not None:
            left = (now - begun) / count * (total - count)
            said += f" of {total:,}, about {_duration(left)} left"
        click.echo(said, err=True)

    return step


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
