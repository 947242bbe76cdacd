"""
Progress on stderr for work that takes longer than two seconds.

On a terminal it is a bar or a growing count. In a file or a pipe it is one line per minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Protocol

import click

__all__ = ["StepLogger", "progress_bar", "progress_count", "progress_files", "step_logger"]

_DELAY_SECONDS = 2.0
_REFRESH_SECONDS = 0.2
_LINE_SECONDS = 60.0
_STEP_SECONDS = 20.0
_LEAST_BYTES = 5e6  # read before the time left is estimated; less gives hours for a small folder


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of `total` steps."""
    if not sys.stderr.isatty():
        yield _line_logger(label, total)
        return
    show_from = time.monotonic() + _DELAY_SECONDS
    with click.progressbar(
        length=total, label=label, file=sys.stderr, show_pos=True, hidden=True
    ) as bar:

        def step() -> None:
            if bar.hidden and time.monotonic() > show_from:
                bar.hidden = False
            bar.update(1)

        yield step


@contextmanager
def progress_count(label: str) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each step, for work of unknown length."""
    if not sys.stderr.isatty():
        yield _line_logger(label)
        return
    show_from = time.monotonic() + _DELAY_SECONDS
    count = 0
    shown = False

    def step() -> None:
        nonlocal count, shown, show_from
        count += 1
        if time.monotonic() > show_from:
            show_from = time.monotonic() + _REFRESH_SECONDS
            shown = True
            click.echo(f"\r{label}: {count:,}", nl=False, err=True)

    try:
        yield step
    finally:
        if shown:
            click.echo(f"\r{label}: {count:,}", err=True)


@contextmanager
def progress_files(measure: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """
    Yield a function to call with the bytes of each file.

    Shows the files and megabytes so far, the speed, and what is left. `measure` returns the bytes
    of all files; it is called in a thread of its own, and only if the work takes long enough to be
    shown.
    """
    is_terminal = sys.stderr.isatty()
    started = time.monotonic()
    show_from = started + (_DELAY_SECONDS if is_terminal else _LINE_SECONDS)
    files = size = width = 0
    is_measured = False
    total: list[int] = []

    def line() -> str:
        seconds = max(time.monotonic() - started, 1e-3)
        speed = size / seconds
        text = f"Files: {files:,}, {size / 1e6:,.0f} MB"
        if total and total[0] >= size:
            text += f" of {total[0] / 1e6:,.0f} MB"
        text += f", {speed / 1e6:.1f} MB/s"
        if total and total[0] >= size >= min(total[0] / 50, _LEAST_BYTES):
            text += f", about {_duration((total[0] - size) / speed)} left"
        return text

    def step(more: int) -> None:
        nonlocal files, size, width, show_from, is_measured
        files, size = files + 1, size + more
        if not is_measured and time.monotonic() > started + _DELAY_SECONDS:
            is_measured = True
            Thread(target=lambda: total.append(measure()), daemon=True).start()
        if time.monotonic() <= show_from:
            return
        show_from = time.monotonic() + (_REFRESH_SECONDS if is_terminal else _LINE_SECONDS)
        text = line()
        if is_terminal:
            click.echo(f"\r{text:{width}}", nl=False, err=True)
        else:
            click.echo(text, err=True)
        width = max(width, len(text))

    try:
        yield step
    finally:
        if width and is_terminal:
            click.echo(f"\r{line():{width}}", err=True)


class StepLogger(Protocol):
    """Called after each training step."""

    def __call__(self, what: str, done: int, of: int, more: str = "") -> None:
        """`what` names the run, `done` of `of` steps are done, `more` is added to the line."""
        ...


def step_logger() -> StepLogger:
    """A function that prints a training step every twenty seconds, and the last step."""
    due = time.monotonic() + _STEP_SECONDS

    def step(what: str, done: int, of: int, more: str = "") -> None:
        nonlocal due
        if time.monotonic() < due and done < of:
            return
        due = time.monotonic() + _STEP_SECONDS
        click.echo(f"{what}  step {done:,} of {of:,}  {more}".rstrip(), err=True)

    return step


def _line_logger(label: str, total: int | None = None) -> Callable[[], None]:
    """A step function that prints one line per minute."""
    started = time.monotonic()
    next_line = started + _LINE_SECONDS
    count = 0

    def step() -> None:
        nonlocal count, next_line
        count += 1
        now = time.monotonic()
        if now < next_line:
            return
        next_line = now + _LINE_SECONDS
        line = f"{label}: {count:,}"
        if total is not None:
            remaining = (now - started) / count * (total - count)
            line += f" of {total:,}, about {_duration(remaining)} left"
        click.echo(line, err=True)

    return step


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
