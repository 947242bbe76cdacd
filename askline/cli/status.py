"""`askline status`: what an index holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .options import json_option
from .output import from_here

if TYPE_CHECKING:
    from ..corpus import CorpusStatus

__all__ = ["status"]

_MUCH_TEXT = 100_000


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path())
@json_option
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


def _lines(found: CorpusStatus) -> list[tuple[str, str]]:
    search = "up to date" if found.searchable else "behind, completed at the next question"
    return [
        ("documents", f"{found.documents:,}"),
        ("sentences", f"{found.sentences:,}"),
        ("characters", f"{found.characters:,}"),
        ("store", _size(found.store_bytes, found)),
        ("search", _size(found.search_bytes, found)),
        ("", search),
        *_phrases(found),
        ("writer", f"process {found.writer}" if found.writer else "none"),
        ("unreadable", f"{len(found.unreadable):,}"),
    ]


def _phrases(found: CorpusStatus) -> list[tuple[str, str]]:
    if found.phrases is None:
        return [("phrases", "none")]
    state = "up to date" if found.encoded else "behind, encoded when they are next asked for"
    return [("phrases", f"{found.phrases:,}, {_size(found.phrase_bytes, found)}"), ("", state)]


def _size(count: int, found: CorpusStatus) -> str:
    """In bytes, and for each character where there is enough text for that to mean something."""
    if found.characters < _MUCH_TEXT:
        return f"{count:,} bytes"
    return f"{count:,} bytes, {count / found.characters:.2f} a character"
