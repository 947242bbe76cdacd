"""`askline cache`: list and delete the indexes that `askline ask PATH` keeps."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .options import POSITIVE_NUMBER, json_option
from .output import print_table, relative_path, replace_controls

if TYPE_CHECKING:
    from ..corpus.cache import CachedIndex

__all__ = ["cache"]

_DAY = 86_400.0
_EXIT_IN_USE = 1


@click.group(invoke_without_command=True)
@click.pass_context
def cache(ctx: click.Context) -> None:
    """
    List or delete the indexes that `askline ask PATH` keeps.

    Without a command, it lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@cache.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """
    List the cached indexes with their sizes and ages.

    The age is the time since the last question.
    """
    from ..corpus.cache import cache_root, cached_indexes

    found = cached_indexes()
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], ensure_ascii=False))
        return
    if not found:
        click.echo(f"The cache is empty: {cache_root()}")
        return
    rows = [[_name(each), _size(each.size_bytes), _age(each.age_seconds)] for each in found]
    print_table(["paths", "size", "age"], rows)
    total = _size(sum(each.size_bytes for each in found))
    click.secho(f"{total} in {cache_root()}", dim=True, err=True)


@cache.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())
@click.option("--all", "everything", is_flag=True, help="Delete all cached indexes.")
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=POSITIVE_NUMBER,
    help="Delete those that answered no question for DAYS days.",
)
def clear(paths: tuple[str, ...], *, everything: bool, days: float | None) -> None:
    """
    Delete cached indexes.

    With PATHs, those of these files and folders, and of what is inside them. The files themselves
    are not touched.

    \b
    Examples:
      askline cache clear notes/
      askline cache clear --older-than 30
      askline cache clear --all
    """
    from ..corpus.cache import cached_indexes, delete_cached_index

    if everything and (paths or days):
        raise click.UsageError("--all deletes everything: leave out PATHs and --older-than.")
    if not (everything or paths or days):
        raise click.UsageError("Give PATHs, --older-than DAYS or --all.")
    roots = [os.path.abspath(os.path.expanduser(path)) for path in paths]
    chosen = [
        each
        for each in cached_indexes()
        if (not roots or _is_inside(each.paths, roots))
        and (days is None or each.age_seconds >= days * _DAY)
    ]
    in_use = [each for each in chosen if not delete_cached_index(each.folder)]
    deleted = [each for each in chosen if each not in in_use]
    freed = _size(sum(each.size_bytes for each in deleted))
    click.echo(f"{len(deleted):,} deleted: {freed}")
    for each in in_use:
        click.echo(f"In use and not deleted: {_name(each)}", err=True)
    if in_use:
        click.get_current_context().exit(_EXIT_IN_USE)


def _is_inside(paths: Sequence[str], roots: Sequence[str]) -> bool:
    """Whether all paths of an index are among the roots or inside them."""
    return bool(paths) and all(
        any(path == root or path.startswith(os.path.join(root, "")) for root in roots)
        for path in paths
    )


def _name(index: CachedIndex) -> str:
    names = ", ".join(_short_path(path) for path in index.paths)
    return replace_controls(names) or f"unknown, in {index.folder}"


def _short_path(path: str) -> str:
    """Relative to the current folder or to the home folder, if it is inside one of them."""
    relative = relative_path(path)
    home = os.path.join(os.path.expanduser("~"), "")
    return f"~/{path.removeprefix(home)}" if relative.startswith(home) else relative


def _size(size_bytes: int) -> str:
    if size_bytes < 1_000_000:
        return f"{size_bytes / 1000:.0f} kB"
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes < 1e9 else f"{size_bytes / 1e9:.2f} GB"


def _age(seconds: float) -> str:
    for size, unit in ((_DAY, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
