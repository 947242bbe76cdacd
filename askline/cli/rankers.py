"""`askline rankers`: list the names of the rankers."""

from __future__ import annotations

import click

__all__ = ["rankers"]


@click.command(short_help="List the rankers.")
def rankers() -> None:
    """
    List the names of the rankers, for --ranker and SPEC.

    A SPEC is a name (bm25), a name with options (cosinet('DIR')), or a pipeline: A % 20 >> B ranks
    with A and ranks A's first 20 again with B.
    """
    from ..rankers.registry import ranker_names

    for name in ranker_names():
        click.echo(name)
