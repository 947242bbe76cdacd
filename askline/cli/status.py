"""`askline status`: show what an index holds."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from .options import allow_partial_option, json_option
from .output import print_missing_shards, print_not_read, relative_place

if TYPE_CHECKING:
    from ..corpus import CorpusStatus

__all__ = ["status"]

_ENOUGH_CHARACTERS = 100_000  # for bytes per character to be meaningful


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path())
@allow_partial_option
@json_option
def status(folder: str, *, allow_partial: bool, as_json: bool) -> None:
    """
    Show what an index holds, and what was not read.

    \b
    Example:
      askline status DIR
      askline status postgresql://localhost/library
    """
    from ..corpus import Corpus

    with Corpus.open(folder, must_exist=True, allow_partial=allow_partial) as corpus:
        found = corpus.status()
        paths = [corpus.source_path(problem.path) for problem in found.unreadable]
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False))
        return
    for name, value in _rows(found):
        click.echo(f"{name:<12}{value}")
    print_missing_shards(found.missing_shards, err=False)
    for problem, path in zip(found.unreadable, paths, strict=True):
        shown = replace(problem, path=path or problem.path)
        click.echo(f"  {relative_place(str(shown))}")
    print_not_read(found.not_read, err=False)


def _rows(found: CorpusStatus) -> list[tuple[str, str]]:
    search = "up to date" if found.searchable else "updated with the next question"
    shards = [] if found.shards is None else [("shards", f"{found.shards:,}")]
    return [
        *shards,
        ("documents", f"{found.documents:,}"),
        ("sentences", f"{found.sentences:,}"),
        ("characters", f"{found.characters:,}"),
        ("store", _size(found.store_bytes, found)),
        ("search", f"{_size(found.search_bytes, found)}, {search}"),
        ("phrases", _phrases(found)),
        ("writer", f"process {found.writer}" if found.writer else "none"),
        ("unreadable", f"{len(found.unreadable):,}"),
    ]


def _phrases(found: CorpusStatus) -> str:
    if found.phrases is None:
        return "none"
    state = "up to date" if found.encoded else "updated when they are next used"
    return f"{found.phrases:,}, {_size(found.phrase_bytes, found)}, {state}"


def _size(count: int, found: CorpusStatus) -> str:
    """Bytes, and bytes per character for a large index."""
    if found.characters < _ENOUGH_CHARACTERS:
        return f"{count:,} bytes"
    return f"{count:,} bytes ({count / found.characters:.2f} per character)"
