"""`askline cache`: list and delete what the commands keep: indexes, and graphs of models."""

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
    from ..engine.user_folders import CachedFolder

__all__ = ["cache"]

_DAY = 86_400.0
_EXIT_IN_USE = 1


@click.group(invoke_without_command=True)
@click.pass_context
def cache(ctx: click.Context) -> None:
    """
    List or delete what askline keeps in your cache folder.

    These are the indexes of `askline ask PATH`, and the prepared graphs of models, with which the
    next command starts faster. Without a command, it lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@cache.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """
    List the cached indexes, then the prepared graphs, with their sizes and ages.

    The age is the time since the last question.
    """
    from ..corpus.cache import cached_indexes
    from ..engine.graph_cache import cached_graphs
    from ..engine.user_folders import user_folder

    indexes, graphs = cached_indexes(), cached_graphs()
    found = [*indexes, *graphs]
    if as_json:
        records = [asdict(each) | {"kind": "index"} for each in indexes]
        records += [asdict(each) | {"kind": "graphs"} for each in graphs]
        click.echo(json.dumps(records, ensure_ascii=False))
        return
    if not found:
        click.echo(f"The cache is empty: {user_folder('cache')}")
        return
    names = [*map(_name, indexes), *(f"graphs of {_name(each)}" for each in graphs)]
    rows = [
        [name, _size(each.size_bytes), _age(each.age_seconds)]
        for name, each in zip(names, found, strict=True)
    ]
    print_table(["paths", "size", "age"], rows)
    total = _size(sum(each.size_bytes for each in found))
    click.secho(f"{total} in {user_folder('cache')}", dim=True, err=True)


@cache.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())
@click.option("--all", "everything", is_flag=True, help="Delete everything.")
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=POSITIVE_NUMBER,
    help="Delete those that answered no question for DAYS days.",
)
def clear(paths: tuple[str, ...], *, everything: bool, days: float | None) -> None:
    """
    Delete cached indexes and prepared graphs.

    With PATHs, those of these files and folders, and of what is inside them. The files themselves
    are not touched.

    \b
    Examples:
      askline cache clear notes/
      askline cache clear --older-than 30
      askline cache clear --all
    """
    from ..corpus.cache import cached_indexes, delete_cached_index
    from ..engine.graph_cache import cached_graphs, delete_cached_graphs

    if everything and (paths or days):
        raise click.UsageError("--all deletes everything: leave out PATHs and --older-than.")
    if not (everything or paths or days):
        raise click.UsageError("Give PATHs, --older-than DAYS or --all.")
    roots = [os.path.abspath(os.path.expanduser(path)) for path in paths]

    def is_chosen(each: CachedFolder) -> bool:
        return (not roots or _is_inside(each.paths, roots)) and (
            days is None or each.age_seconds >= days * _DAY
        )

    chosen = list(filter(is_chosen, cached_indexes()))
    in_use = [each for each in chosen if not delete_cached_index(each.folder)]
    graphs = list(filter(is_chosen, cached_graphs()))
    for each in graphs:
        delete_cached_graphs(each.folder)
    deleted = [each for each in [*chosen, *graphs] if each not in in_use]
    freed = _size(sum(each.size_bytes for each in deleted))
    click.echo(f"{len(deleted):,} deleted: {freed}")
    for index in in_use:
        click.echo(f"In use and not deleted: {_name(index)}", err=True)
    if in_use:
        click.get_current_context().exit(_EXIT_IN_USE)


def _is_inside(paths: Sequence[str], roots: Sequence[str]) -> bool:
    """Whether all paths of an index are among the roots or inside them."""
    return bool(paths) and all(
        any(path == root or path.startswith(os.path.join(root, "")) for root in roots)
        for path in paths
    )


def _name(cached: CachedFolder) -> str:
    names = ", ".join(_short_path(path) for path in cached.paths)
    return replace_controls(names) or f"unknown, in {cached.folder}"


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
