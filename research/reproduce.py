"""
Write every table of the papers beside our figures, as Markdown and as one HTML page.

    make reproduce
    python -m research.reproduce --out report
    python -m research.reproduce --quick --data DIR --out quick
    python -m research.reproduce --run --data DIR --given vectors=FILE --only cosinet --out report
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import click

from askline.errors import AsklineError, InputError, MissingExtraError
from research.runs import QUICK, RUNS, Outcome, Run, checkout, run_all
from research.tables import STATES, ReportTable, ResultFiles, Written, report_tables, write_report

__all__ = ["reproduce"]

_EXTRAS = {"pytrec_eval": "eval", "torch": "train"}


class _InputProblem(click.ClickException):
    """The given options cannot be used."""

    exit_code = 2


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Write results.md and results.html to this folder.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    envvar="ASKLINE_DATA",
    help="Folder that holds the datasets.  [env: ASKLINE_DATA]",
)
@click.option("--only", metavar="PAPERS", help="Comma-separated names: cosinet, cascade, …")
@click.option("--run", "run_first", is_flag=True, help="Run the benchmarks first.")
@click.option("--quick", is_flag=True, help="Run small benchmarks: a few minutes on a CPU.")
@click.option(
    "--given",
    multiple=True,
    metavar="NAME=PATH",
    help="With --run: a path that a benchmark needs, such as weights. Can be repeated.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of the result files.  [default: research/results]",
)
def reproduce(
    *,
    out: Path,
    data: Path | None,
    only: str | None,
    run_first: bool,
    quick: bool,
    given: tuple[str, ...],
    results: Path | None,
) -> None:
    """
    Write every table of the papers beside our figures.

    Without --run and --quick, the report is made from the result files in research/results. Both
    options run benchmarks first, which write to OUT/results and never to research/results. A
    benchmark that needs a path not given is skipped.
    """
    papers = tuple(name.strip() for name in only.split(",")) if only else ()
    own = out / "results"
    done: list[Outcome] = []
    try:
        if quick:
            _check_extras()
            done = _run(QUICK.values(), data, given, own)
            files = ResultFiles(own)
        else:
            kept = results or checkout() / "research" / "results"
            shown = report_tables(ResultFiles(kept), papers)
            needed = {row.run for table in shown for row in table.rows}
            if run_first:
                chosen = [run for run in RUNS.values() if not papers or run.name in needed]
                done = _run(chosen, data, given, own)
            files = ResultFiles(own, kept)
        written = write_report(files, out, only=papers, quick=quick)
    except (InputError, MissingExtraError) as error:
        raise _InputProblem(str(error)) from error
    except AsklineError as error:
        raise click.ClickException(str(error)) from error
    _print_summary(written)
    failed = [each.run.name for each in done if "failed" in each.problem]
    if failed:
        raise click.ClickException(f"Runs that failed: {', '.join(failed)}. Logs are in {own}.")


def _check_extras() -> None:
    """Fail before the first run rather than after minutes."""
    for module, extra in _EXTRAS.items():
        if find_spec(module) is None:
            raise MissingExtraError("A quick run", extra)


def _run(
    runs: Iterable[Run], data: Path | None, given: tuple[str, ...], own: Path
) -> list[Outcome]:
    if data is None:
        raise InputError("Runs need the datasets. Name their folder with --data or ASKLINE_DATA.")
    paths = {"data": data}
    for text in given:
        name, mark, path = text.partition("=")
        if not mark or not path:
            raise InputError(f"--given must be NAME=PATH, got {text!r}.")
        paths[name] = Path(path)
    return run_all(list(runs), paths, own, log=lambda text: click.echo(text, err=True))


def _print_summary(written: Written) -> None:
    rows = [("table", *STATES), *map(_row, written.tables)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *counts in rows:
        cells = [text.rjust(width) for text, width in zip(counts, widths[1:], strict=True)]
        click.echo("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    if written.missing:
        names = ", ".join(f"{name}.json" for name in written.missing)
        click.echo(f"Missing result files: {names}.", err=True)
    click.echo(f"Wrote {written.markdown} and {written.html}.", err=True)


def _row(found: ReportTable) -> tuple[str, ...]:
    table = found.table
    counts = (sum(row.state == state for row in found.rows) for state in STATES)
    return (f"{table.paper}, {table.number}", *(str(count or "") for count in counts))


if __name__ == "__main__":
    reproduce(prog_name="python -m research.reproduce")
