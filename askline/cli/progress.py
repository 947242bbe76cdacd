"""Progress on stderr for what takes more than two seconds, and nothing for what does not."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

__all__ = ["counting", "progress"]

_PATIENCE_SECONDS = 2.0
_PAUSE_SECONDS = 0.2


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Gives a function to call after each of `total` steps. Silent where stderr is no terminal."""
    show_from = time.monotonic() + _PATIENCE_SECONDS if sys.stderr.isatty() else float("inf")
    with click.progressbar(
        length=total, label=what, file=sys.stderr, show_pos=True, hidden=True
    ) as bar:

        def step() -> None:
            if bar.hidden and time.monotonic() > show_from:
                bar.hidden = False
            bar.update(1)

        yield step


@contextmanager
def counting(what: str) -> Iterator[Callable[[], None]]:
    """The same where nobody knows how many steps there will be: a count that grows."""
    show_from = time.monotonic() + _PATIENCE_SECONDS if sys.stderr.isatty() else float("inf")
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
