"""Tables for a person: aligned, no frame, numbers to the right, coloured only on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["print_table"]


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """The first column is text, the others are figures."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for number, name in enumerate(header):
        right = number > 0
        table.add_column(name, justify="right" if right else "left", no_wrap=right)
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False)
    if title:
        console.print(f"[dim]{title}[/dim]")
    console.print(table)
