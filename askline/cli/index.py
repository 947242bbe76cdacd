"""`askline index`: files and folders into an index that can be asked again and again."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .options import json_option
from .output import SOME_FAILED, show_problems
from .progress import progress_count

if TYPE_CHECKING:
    from ..corpus import AddReport, Corpus

__all__ = ["index"]

_REST = 10  # a watcher rests ten times as long as it looked


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option("--out", "folder", type=click.Path(), required=True, help="The folder of the index.")
@click.option(
    "--phrases",
    is_flag=True,
    help="Encode the phrases too, for ask --phrases and --nearest; from then on they follow.",
)
@click.option(
    "--phrase-model",
    "model",
    metavar="DIR",
    type=click.Path(),
    help="Encode by the model that `askline train phrases` wrote, not by the one that comes along.",
)
@click.option("--remove", is_flag=True, help="Take the PATHs out of the index.")
@click.option("--watch", is_flag=True, help="Go on, and follow every change until stopped.")
@click.option(
    "--every",
    "seconds",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="With --watch: look again after so many seconds.",
)
@json_option
def index(
    paths: tuple[str, ...],
    *,
    folder: str,
    phrases: bool,
    model: str | None,
    remove: bool,
    watch: bool,
    seconds: float,
    as_json: bool,
) -> None:
    """
    Index files and folders, or bring an index up to date.

    Files that have not changed are not read again, and files that have gone from a folder are taken
    out. It can be stopped at any time: what was indexed stays, and the next run goes on from there.

    \b
    askline index notes/ papers/ --out DIR
    askline ask 'Who wrote Emma?' --index DIR

    Exit codes: 0 done, 3 done although some files could not be read.
    """
    from ..corpus import Corpus

    if remove and watch:
        raise click.UsageError("--remove and --watch do not go together.")
    if model:
        from ..phrases import PhraseModel

        PhraseModel.load(model)  # before reading: a wrong folder is said at once
    with Corpus.open(folder, must_exist=remove) as corpus:
        if remove:
            _remove(corpus, paths)
            return
        report = _add(corpus, paths, as_json=as_json)
        if phrases or model or corpus.status().phrases is not None:
            _encode(corpus, model)
        if watch:
            _watch(corpus, paths, seconds, as_json=as_json)
    if report.problems:
        click.get_current_context().exit(SOME_FAILED)


def _add(
    corpus: Corpus, paths: tuple[str, ...], *, as_json: bool, quiet: bool = False
) -> AddReport:
    with progress_count("Files") as step:
        report = corpus.add(paths, on_file=lambda _: step())
    if quiet and not _is_change(report):
        return report
    if as_json:
        click.echo(json.dumps(asdict(report), ensure_ascii=False))
    else:
        click.echo(_line(report))
        show_problems(report.problems)
    return report


def _is_change(report: AddReport) -> bool:
    return bool(report.added or report.changed or report.removed)


def _encode(corpus: Corpus, model: str | None = None) -> None:
    with progress_count("Documents encoded") as step:
        corpus.encode_phrases(model, on_document=step)


def _line(report: AddReport) -> str:
    """`3 added, 1 removed, 40 unchanged: 120 sentences in 0.2 s`."""
    names = ("added", "changed", "removed", "failed", "unchanged")
    counts = [f"{getattr(report, name):,} {name}" for name in names if getattr(report, name)]
    found = ", ".join(counts) or "No files found"
    return f"{found}: {report.sentences:,} sentences in {report.seconds:.1f} s"


def _watch(corpus: Corpus, paths: tuple[str, ...], seconds: float, *, as_json: bool) -> None:
    """Look again and again; ended by Ctrl-C, which here is no failure."""
    try:
        rest = seconds
        while True:
            time.sleep(rest)
            report = _add(corpus, paths, as_json=as_json, quiet=True)
            if _is_change(report) and corpus.status().phrases is not None:
                _encode(corpus)
            rest = max(seconds, _REST * report.seconds)
    except KeyboardInterrupt:
        return


def _remove(corpus: Corpus, paths: tuple[str, ...]) -> None:
    removed = corpus.remove(paths)
    for name in removed:
        click.echo(name)
    click.echo(f"{len(removed):,} removed", err=True)
