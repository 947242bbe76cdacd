"""`askline status`: what an index holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .options import as_json
from .problems import from_here

if TYPE_CHECKING:
    from ..corpus import Status

__all__ = ["status"]


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path())
@as_json
def status(folder: str, *, as_json: bool) -> None:
    """Show what an index holds, and which files could not be read."""
    from ..corpus import Corpus

    with Corpus.open(folder, must_exist=True) as corpus:
        found = corpus.status()
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False))
        return
    for name, value in _lines(found):
        click.echo(f"{name:<12}{value}")
    for problem in found.unreadable:
        click.echo(f"  {from_here(str(problem))}")


def _lines(found: Status) -> list[tuple[str, str]]:
    text = found.characters or 1
    search = "up to date" if found.searchable else "behind, completed at the next question"
    return [
        ("documents", f"{found.documents:,}"),
        ("sentences", f"{found.sentences:,}"),
        ("characters", f"{found.characters:,}"),
        ("store", f"{found.store_bytes:,} bytes, {found.store_bytes / text:.2f} a character"),
        ("search", f"{found.search_bytes:,} bytes, {found.search_bytes / text:.2f} a character"),
        ("", search),
        ("writer", f"process {found.writer}" if found.writer else "none"),
        ("unreadable", f"{len(found.unreadable):,}"),
    ]
