"""`askline index` and `askline status`: build or update an index, and show what it holds."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from .options import (
    POSITIVE_INTEGER,
    POSITIVE_NUMBER,
    ReadingOptions,
    allow_partial_option,
    json_option,
    reading_options,
)
from .output import (
    EXIT_SOME_UNREADABLE,
    describe_not_read,
    print_missing_shards,
    print_not_read,
    print_problems,
    relative_place,
    replace_controls,
)
from .progress import progress_count, progress_files

if TYPE_CHECKING:
    from ..corpus import AddReport, Corpus, CorpusStatus

__all__ = ["index", "status"]

_PAUSE_PER_SCAN = 10  # --watch waits ten times as long as a scan takes, to use little CPU
_ENOUGH_CHARACTERS = 100_000  # for bytes per character to be meaningful


@click.command(short_help="Build or update an index of files and folders.")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())
@click.option("--out", "folder", metavar="DIR", type=click.Path(), help="Folder of the index.")
@click.option(
    "--to",
    "url",
    metavar="URL",
    help="Database of the index, which several machines can share: postgresql://HOST/DATABASE.",
)
@click.option(
    "--phrases",
    is_flag=True,
    help="Also encode phrases, for `askline ask --phrases` and --nearest. Later updates of the "
    "index include them.",
)
@click.option(
    "--phrase-model",
    "model",
    metavar="MODEL",
    type=click.Path(),
    help="Encode phrases with a model from `askline train phrases`, or with the installed one of a "
    "language: en, fr.  [default: the one for the language of most documents]",
)
@click.option("--remove", is_flag=True, help="Remove the PATHs from the index.")
@click.option(
    "--verify",
    is_flag=True,
    help="First check every document for damage, and read the files of damaged ones again.",
)
@click.option("--watch", is_flag=True, help="Keep running and follow changes until Ctrl-C.")
@click.option(
    "--every",
    "seconds",
    metavar="SECONDS",
    type=POSITIVE_NUMBER,
    default=2.0,
    show_default=True,
    help="Seconds between two scans of --watch.",
)
@click.option(
    "--shards",
    metavar="N",
    type=POSITIVE_INTEGER,
    help="Build a new index of N shards, with several processes. Shards whose files have not "
    "changed are kept.",
)
@click.option(
    "--processes",
    metavar="N",
    type=POSITIVE_INTEGER,
    help="Shards that are built at the same time.  [default: CPU cores]",
)
@reading_options
@json_option
def index(
    paths: tuple[str, ...],
    *,
    folder: str | None,
    url: str | None,
    phrases: bool,
    model: str | None,
    remove: bool,
    verify: bool,
    watch: bool,
    seconds: float,
    shards: int | None,
    processes: int | None,
    reading: ReadingOptions,
    as_json: bool,
) -> None:
    """
    Build an index of files and folders, or update it.

    Unchanged files are not read again, and files that were deleted from a folder are removed. You
    can stop it at any time: what was indexed is kept, and the next run continues from there.

    \b
    Examples:
      askline index notes/ papers/ --out DIR
      askline ask 'Who wrote Emma?' --index DIR
      askline index --verify --out DIR
      askline index library/ --shards 8 --out DIR
      askline index notes/ --to postgresql://localhost/library

    In folders, hidden files, installed packages and what a .gitignore lists are left out. What was
    not read is counted by reason and kind of file.

    Exit codes: 0 done, 2 no file was read, 3 done but some files could not be read, or damaged
    documents have no file to read again.
    """
    from ..corpus import Corpus
    from ..corpus.storage import is_postgres_url

    if remove and (watch or verify):
        raise click.UsageError("--remove cannot be used with --watch or --verify.")
    location = url or folder
    if location is None or (url and folder):
        raise click.UsageError("Give either --out DIR or --to URL.")
    if url and not is_postgres_url(url):
        raise click.UsageError(f"--to must be postgresql://HOST/DATABASE, got {_scheme(url)!r}.")
    if url and shards:
        raise click.UsageError("Shards are kept only in folders: use --out DIR.")
    if not paths and (watch or not verify):
        raise click.UsageError("Give PATHs to index, or --verify.")
    if shards is not None and (watch or remove or verify or not paths):
        raise click.UsageError("--shards needs PATHs, and no --watch, --remove or --verify.")
    if processes is not None and shards is None:
        raise click.UsageError("--processes needs --shards N.")
    if not remove:
        _check_paths(paths)
    if model:
        from ..corpus.corpus_phrases import load_phrase_model

        load_phrase_model(model)  # a wrong folder fails before files are read
    if shards is not None and folder is not None:
        report = _build_shards(paths, folder, shards, processes, reading)
        _print_report(report, as_json=as_json)
        _check_report(report, paths)
        if phrases or model:
            with Corpus.open(folder) as corpus:
                _encode_phrases(corpus, model)
        click.get_current_context().exit(EXIT_SOME_UNREADABLE if report.problems else 0)
    with Corpus.open(location, must_exist=remove or not paths, check=not verify) as corpus:
        if remove:
            _remove(corpus, paths)
            return
        is_complete = not verify or _verify(corpus, as_json=as_json)
        if not paths:
            click.get_current_context().exit(0 if is_complete else EXIT_SOME_UNREADABLE)

        def add() -> AddReport:
            with progress_files(lambda: _total_bytes(paths, reading)) as step:
                return corpus.add(
                    paths,
                    on_file=lambda file: step(file.size) if file.reason is None else None,
                    **reading,
                )

        report = add()
        _print_report(report, as_json=as_json)
        if phrases or model or corpus.status().phrases is not None:
            _encode_phrases(corpus, model)
        if watch:
            _watch(corpus, add, seconds, as_json=as_json)
    _check_report(report, paths)
    if report.problems or not is_complete:
        click.get_current_context().exit(EXIT_SOME_UNREADABLE)


def _check_paths(paths: tuple[str, ...]) -> None:
    """InputError if no path exists, before an index is created."""
    if paths and not any(
        path == "-" or os.path.lexists(os.path.expanduser(path)) for path in paths
    ):
        what = "path" if len(paths) == 1 else "paths"
        raise InputError(f"No file or folder {', '.join(paths)}. Check the {what}.")


def _total_bytes(paths: tuple[str, ...], reading: ReadingOptions) -> int:
    """The bytes of all files that are read."""
    from ..text.readers import FileSelection, find_files

    selection = FileSelection(
        include=reading["include"],
        exclude=reading["exclude"],
        everything=reading["no_ignore"],
        follow_links=reading["follow_links"],
    )
    total = 0
    for found in find_files([path for path in paths if path != "-"], selection):
        if isinstance(found, Path):
            with suppress(OSError):  # it was removed meanwhile
                total += found.stat().st_size
    return total


def _build_shards(
    paths: tuple[str, ...],
    folder: str,
    shards: int,
    processes: int | None,
    reading: ReadingOptions,
) -> AddReport:
    from ..corpus import build_shards

    with progress_count("Shards") as step:
        return build_shards(
            paths,
            folder,
            shards=shards,
            processes=processes,
            on_shard=lambda _: step(),
            **reading,
        )


def _check_report(report: AddReport, paths: tuple[str, ...]) -> None:
    if not (report.added or report.changed or report.unchanged or report.removed):
        raise InputError(
            f"No file was read in {', '.join(paths)}. Found: {describe_not_read(report.not_read)}."
        )


def _scheme(url: str) -> str:
    """The beginning of a URL, without a password."""
    return url.partition("//")[0] if "//" in url else url


def _verify(corpus: Corpus, *, as_json: bool) -> bool:
    """Print what was damaged; return False if documents were lost."""
    with progress_count("Documents checked") as step:
        report = corpus.verify(on_document=step)
    if as_json:
        click.echo(json.dumps(asdict(report), ensure_ascii=False))
        return not report.lost
    counts = [f"{report.documents:,} checked", f"{len(report.damaged):,} damaged"]
    if report.damaged:
        counts += [f"{len(report.restored):,} read again", f"{len(report.lost):,} lost"]
    if report.checksums_added:
        counts.append(f"{report.checksums_added:,} without checksums before")
    rebuilt = {"the store": report.store_rebuilt, "the search index": report.search_rebuilt}
    counts += [f"{name} was rebuilt" for name, is_rebuilt in rebuilt.items() if is_rebuilt]
    click.echo(f"{', '.join(counts)}: {report.seconds:.1f} s")
    for name in report.lost:
        click.echo(f"  {replace_controls(name)}: Lost. Add it again.", err=True)
    return not report.lost


def _print_report(report: AddReport, *, as_json: bool) -> None:
    """Print JSON, or a line such as `3 added, 1 removed: 120 sentences in 0.2 s`."""
    if as_json:
        click.echo(json.dumps(asdict(report), ensure_ascii=False))
        return
    names = ("added", "changed", "removed", "failed", "unchanged")
    counts = [f"{getattr(report, name):,} {name}" for name in names if getattr(report, name)]
    files = ", ".join(counts) or "No files found"
    click.echo(f"{files}: {report.sentences:,} sentences in {report.seconds:.1f} s")
    print_problems(report.problems)
    print_not_read(report.not_read)


def _encode_phrases(corpus: Corpus, model: str | None = None) -> None:
    with progress_count("Documents encoded") as step:
        corpus.encode_phrases(model, on_document=step)


def _watch(corpus: Corpus, add: Callable[[], AddReport], seconds: float, *, as_json: bool) -> None:
    """Scan again and again until Ctrl-C, which is the normal end."""
    pause = seconds
    try:
        while True:
            time.sleep(pause)
            report = add()
            if report.added or report.changed or report.removed:
                _print_report(report, as_json=as_json)
                if corpus.status().phrases is not None:
                    _encode_phrases(corpus)
            pause = max(seconds, _PAUSE_PER_SCAN * report.seconds)
    except KeyboardInterrupt:
        return


def _remove(corpus: Corpus, paths: tuple[str, ...]) -> None:
    removed = corpus.remove(paths)
    for name in removed:
        click.echo(name)
    click.echo(f"{len(removed):,} removed", err=True)


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
    for name, value in _status_rows(found):
        click.echo(f"{name:<12}{value}")
    print_missing_shards(found.missing_shards, err=False)
    for problem, path in zip(found.unreadable, paths, strict=True):
        shown = replace(problem, path=path or problem.path)
        click.echo(f"  {relative_place(str(shown))}")
    print_not_read(found.not_read, err=False)


def _status_rows(found: CorpusStatus) -> list[tuple[str, str]]:
    search = "up to date" if found.searchable else "updated with the next question"
    shards = [] if found.shards is None else [("shards", f"{found.shards:,}")]
    return [
        *shards,
        ("documents", f"{found.documents:,}"),
        ("sentences", f"{found.sentences:,}"),
        ("characters", f"{found.characters:,}"),
        ("store", _size(found.store_bytes, found)),
        ("search", f"{_size(found.search_bytes, found)}, {search}"),
        ("phrases", _phrase_status(found)),
        ("writer", f"process {found.writer}" if found.writer else "none"),
        ("unreadable", f"{len(found.unreadable):,}"),
    ]


def _phrase_status(found: CorpusStatus) -> str:
    if found.phrases is None:
        return "none"
    state = "up to date" if found.encoded else "updated when they are next used"
    return f"{found.phrases:,}, {_size(found.phrase_bytes, found)}, {state}"


def _size(count: int, found: CorpusStatus) -> str:
    """Bytes, and bytes per character for a large index."""
    if found.characters < _ENOUGH_CHARACTERS:
        return f"{count:,} bytes"
    return f"{count:,} bytes ({count / found.characters:.2f} per character)"
