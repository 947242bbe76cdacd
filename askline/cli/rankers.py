"""`askline rankers`: the names that a spec may use."""

from __future__ import annotations

import click

__all__ = ["rankers"]


@click.command()
def rankers() -> None:
    """List the rankers that a spec may name."""
    from ..rankers.registry import ranker_names

    for name in ranker_names():
        click.echo(name)
