"""`askline reproduce`: every table of the papers beside ours."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import AsklineError, InputError, MissingExtraError
from .options import data_root
from .tables import print_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..reproduction import Done, Run, Section, Written

__all__ = ["reproduce"]

_NEEDED = {"pytrec_eval": "eval", "torch": "train"}
_STATES = ("measured", "in part", "not yet measured", "not to be had")


@click.command()
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for results.md and results.html.",
)
@data_root
@click.option("--only", metavar="PAPERS", help="Comma-separated: cosinet, cascade, sequential, …")
@click.option("--run", "run_them", is_flag=True, help="Make the runs first, those that can be.")
@click.option("--quick", is_flag=True, help="Make small runs instead: a few minutes on a CPU.")
@click.option(
    "--given",
    multiple=True,
    metavar="NAME=PATH",
    help="With --run: weights and other paths that a run needs; may be given again.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="The folder of result files.  [default: results/ of the clone]",
)
def reproduce(
    *,
    out: Path,
    root: Path | None,
    only: str | None,
    run_them: bool,
    quick: bool,
    given: tuple[str, ...],
    results: Path | None,
) -> None:
    """
    Set every published figure beside ours.

    Reads the result files of the clone and writes the report as Markdown and as one HTML page with
    pictures. With --run, the runs behind the rows are made first. With --quick, small ones: the
    baselines in full, a light ranker and a cascade trained on a few questions. What is run writes
    to OUT/results, never over the files of the clone.

    \b
    askline reproduce --out report
    askline reproduce --quick --data DIR --out quick
    askline reproduce --run --data DIR --given vectors=FILE --only cosinet --out report
    """
    from .. import reproduction as ours

    papers = tuple(name.strip() for name in only.split(",")) if only else ()
    own = out / "results"
    if quick:
        _check_extras()
        done = _carry_out(ours.QUICK.values(), root, given, own)
        files = ours.ResultFiles(own)
    else:
        kept = results or ours.checkout() / "results"
        shown = ours.sections(ours.ResultFiles(kept), papers)
        wanted = {line.run for section in shown for line in section.lines}
        chosen = [run for run in ours.RUNS.values() if not papers or run.name in wanted]
        done = _carry_out(chosen, root, given, own) if run_them else []
        files = ours.ResultFiles(own, kept)
    written = ours.write_report(files, out, only=papers, quick=quick)
    _show(written)
    failed = [each.run.name for each in done if "failed" in each.problem]
    if failed:
        raise AsklineError(f"Runs that failed: {', '.join(failed)}. Their logs are in {own}.")


def _check_extras() -> None:
    """Before minutes are spent on the runs that come before the one that needs them."""
    for module, extra in _NEEDED.items():
        if find_spec(module) is None:
            raise MissingExtraError("A quick run", extra)


def _carry_out(
    runs: Iterable[Run], root: Path | None, given: tuple[str, ...], own: Path
) -> list[Done]:
    from ..reproduction import carry_out

    if root is None:
        raise InputError("Runs need the datasets. Name their folder with --data or ASKLINE_DATA.")
    paths = {"data": root}
    for text in given:
        name, mark, path = text.partition("=")
        if not mark or not path:
            raise InputError(f"--given takes NAME=PATH, got {text!r}.")
        paths[name] = Path(path)
    return carry_out(list(runs), paths, own, tell=lambda text: click.echo(text, err=True))


def _show(written: Written) -> None:
    rows = [_row(section) for section in written.sections]
    print_table(["table", *_STATES], rows)
    if written.missing:
        names = ", ".join(f"{name}.json" for name in written.missing)
        click.echo(f"Result files that are not there: {names}.", err=True)
    click.echo(f"Wrote {written.markdown} and {written.html}.", err=True)


def _row(section: Section) -> list[str]:
    table = section.table
    counts = (sum(line.state == state for line in section.lines) for state in _STATES)
    return [f"{table.paper}, {table.number}", *(str(count or "") for count in counts)]
