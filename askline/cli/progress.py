"""Progress on stderr for what takes more than two seconds, and nothing for what does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["progress"]

_PATIENCE_SECONDS = 2.0


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Gives a function to call after each of `total` steps. Silent where stderr is no terminal."""
    bar = _LateBar(what, total)
    try:
        yield bar.step
    finally:
        bar.close()


class _LateBar:
    """A bar that appears only once the work has lasted longer than a person waits gladly."""

    def __init__(self, what: str, total: int) -> None:
        self.what = what
        self.total = total
        self.done = 0
        self.started = time.monotonic()
        self.bar: Progress | None = None

    def step(self) -> None:
        self.done += 1
        if self.bar is None and time.monotonic() - self.started > _PATIENCE_SECONDS:
            self.bar = _bar()
            self.bar.add_task(self.what, total=self.total, completed=self.done)
            self.bar.start()
        elif self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(
        *(TextColumn(column) if isinstance(column, str) else column for column in columns),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
