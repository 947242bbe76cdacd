"""`askline tune`: fit the settings of a trained model to dev sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import (
    POSITIVE_INTEGER,
    complete_ranker,
    complete_set,
    data_option,
    json_option,
)
from .output import print_table
from .progress import progress_bar

if TYPE_CHECKING:
    from ..tuning import ScoreTable, TuningResult
    from ..tuning.schedule_fitting import LengthResult
    from ..types import QuestionSet

__all__ = ["tune"]


@click.group()
def tune() -> None:
    """Fit the settings of a trained model to dev sets."""


@tune.command(short_help="Choose how many candidates each layer of a cascade keeps.")
@click.argument(
    "folder",
    metavar="[DIR]",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=False,
)
@click.option(
    "--on",
    "names",
    multiple=True,
    metavar="SET",
    shell_complete=complete_set,
    help="Dev set: NAME:SPLIT or a JSONL file. Repeatable.",
)
@click.option(
    "--table",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Score table (.npz) from an earlier run, instead of --on. Repeatable.",
)
@data_option
@click.option(
    "--pad-to",
    type=POSITIVE_INTEGER,
    help="Add candidates of other questions until each question has N.",
)
@click.option(
    "--questions",
    "most",
    type=POSITIVE_INTEGER,
    help="Use at most N questions of each set.  [default: all]",
)
@click.option(
    "--budget",
    metavar="SHARE",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.4,
    show_default=True,
    help="Allowed cost as a share of the cost of full depth.",
)
@click.option(
    "--max-loss",
    metavar="POINTS",
    type=click.FloatRange(min=0),
    default=0.5,
    show_default=True,
    help="Short lists that lose more than this many points of P@1 within the budget may exceed it.",
)
@click.option(
    "--max-map-loss",
    metavar="POINTS",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help="The same for MAP, checked on each set too.",
)
@click.option(
    "--stage",
    metavar="LAYERS",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Fixed cost of a classifier, in layers of one candidate.",
)
@click.option(
    "--first",
    metavar="SPEC",
    shell_complete=complete_ranker,
    help="Light ranker before the cascade. How many candidates it keeps is tuned too.",
)
@click.option(
    "--first-layers",
    metavar="LAYERS",
    type=click.FloatRange(min=0),
    help="Cost of --first per candidate, in layers. Measured with --on, required with --table.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("cascade-tuning"),
    show_default=True,
    help="Folder for the score tables, front.json and, with the extra plots, front.svg.",
)
@click.option("--dry-run", is_flag=True, help="Do not change the model folder.")
@json_option
def cascade(
    folder: Path | None,
    *,
    names: tuple[str, ...],
    files: tuple[Path, ...],
    root: Path | None,
    pad_to: int | None,
    most: int | None,
    budget: float,
    max_loss: float,
    max_map_loss: float,
    stage: float,
    first: str | None,
    first_layers: float | None,
    out: Path,
    dry_run: bool,
    as_json: bool,
) -> None:
    """
    Choose the layers at which a cascade drops candidates, and how many it keeps at each.

    Each pair of question and candidate is scored once at each depth. The scores are saved in --out,
    so that an interrupted run or a run with another budget reuses them. The schedule and a
    calibration for each depth are written into the model folder DIR; without DIR, into the
    installed model.

    \b
    Example:
      askline tune cascade DIR --on wikiqa:dev --on selqa:dev \\
          --pad-to 400 --budget 0.4 --first cosinet
    """
    from ..rankers.cascade import shipped_folder
    from ..tuning import tune as fit
    from ..tuning.schedule_fitting import save_schedule, write_report

    folder = folder or shipped_folder()
    if bool(names) == bool(files):
        raise click.UsageError("Give either --on SET or --table FILE, once or more.")
    if files:
        tables = _read_tables(files, first, first_layers, root)
    else:
        tables = _score_sets(folder, names, root, pad_to or 0, most, first, out / "scores")
    tuned = fit(
        tables,
        budget=budget,
        loss=max_loss / 100,
        map_loss=max_map_loss / 100,
        stage=stage,
        first=first is not None,
        on_step=lambda step: click.echo(f"Searching: {step} …", err=True),
    )
    written = [write_report(tuned, out), *_draw(tuned, out / "front.svg")]
    if not dry_run:
        save_schedule(tuned, folder)
    if as_json:
        click.echo(json.dumps(tuned.as_dict(), ensure_ascii=False))
    else:
        _print(tuned, first)
    click.echo(f"Wrote {' and '.join(map(str, written))}.", err=True)
    if not dry_run:
        click.echo(f"Wrote the schedule to {folder}.", err=True)


def _draw(tuned: TuningResult, path: Path) -> list[Path]:
    """Draw the front; without matplotlib, say so and draw nothing."""
    from ..errors import MissingExtraError
    from ..plots import cost_quality_front

    try:
        cost_quality_front(tuned).savefig(path)
    except MissingExtraError as error:
        click.echo(f"{path.name} was not drawn. {error}", err=True)
        return []
    return [path]


def _score_sets(
    folder: Path,
    names: Sequence[str],
    root: Path | None,
    pad_to: int,
    most: int | None,
    first: str | None,
    out: Path,
) -> list[ScoreTable]:
    """Score each set at each depth, or read the table that an earlier run saved in `out`."""
    from ..rankers import Cascade
    from ..rankers.spec import load
    from ..tuning import score_set
    from ..tuning.schedule_fitting import fingerprint

    cascade = Cascade.load(folder)
    first_ranker = load(first) if first else None
    model = fingerprint(folder) + (f" behind {first_ranker}" if first_ranker else "")
    out.mkdir(parents=True, exist_ok=True)
    tables = []
    for name in names:
        questions = _load_questions(name, root, pad_to, most)
        stem = f"{name}.{pad_to}.{most or 'all'}"
        file_name = "".join(c if c.isalnum() or c in ".-" else "_" for c in stem)
        with progress_bar(f"Scoring {name}", len(questions)) as step:
            table = score_set(
                cascade.encoder,
                questions,
                model=model,
                pad=pad_to,
                first=first_ranker,
                path=out / f"{file_name}.npz",
                on_question=step,
            )
        tables.append(table)
    return tables


def _read_tables(
    files: Sequence[Path], first: str | None, first_layers: float | None, root: Path | None
) -> list[ScoreTable]:
    """Read tables; where one has no scores of the first stage, rank its lists with it now."""
    from ..rankers.spec import load
    from ..tuning import ScoreTable
    from ..tuning.score_tables import with_first_stage

    tables = [ScoreTable.load(file) for file in files]
    if not first or all(table.first_stage is not None for table in tables):
        return tables
    if first_layers is None:
        raise click.UsageError("--first with --table needs --first-layers.")
    first_ranker = load(first)
    complete = []
    for table in tables:
        if table.first_stage is None:
            with progress_bar(f"Ranking {table.name}", len(table.questions)) as step:
                questions = _load_questions(table.name, root, table.pad, None)
                table = with_first_stage(
                    table, questions, first_ranker, layers=first_layers, on_question=step
                )
        complete.append(table)
    return complete


def _load_questions(name: str, root: Path | None, pad_to: int, most: int | None) -> QuestionSet:
    """The answerable questions of a set; with `most`, a sample spaced evenly over the set."""
    from .. import data
    from ..types import QuestionSet

    questions = data.load_dataset(name, root=root)
    if pad_to:
        questions = data.pad(questions, to=pad_to)
    answerable = data.filter_questions(questions, "answerable").questions
    count = most or len(answerable)
    return QuestionSet(name, answerable[:: max(1, len(answerable) // count)][:count])


def _print(tuned: TuningResult, first: str | None) -> None:
    rows = [(f"{row.count} candidates", row) for row in tuned.rows]
    rows += [
        (f"{first} % {tuned.first} >> cascade, {row.count} candidates", row)
        for row in tuned.pipelines
    ]
    print_table(
        ["lists", "cost", "P@1", "full P@1", "MAP", "full MAP", "held-out P@1"],
        [_row(name, row) for name, row in rows],
        title=f"Tuned on {', '.join(tuned.sets)}; budget {tuned.budget:.0%}.\n"
        "full: at full depth. held-out: difference from full depth on held-out questions.",
    )
    click.secho("\nCandidates kept, as LAYER:N", dim=True)
    for name, row in rows:
        keeps = ", ".join(f"{step.depth}:{step.keep}" for step in row.choice.trial.keeps)
        click.echo(f"{name}: {keeps or 'all (full depth)'}")


def _row(name: str, found: LengthResult) -> list[str]:
    choice = found.choice
    held_out = choice.held_out
    return [
        name,
        f"{choice.trial.mean_cost:.1%}",
        f"{100 * choice.trial.p1:.2f}",
        f"{100 * choice.full.p1:.2f}",
        f"{100 * choice.trial.map:.2f}",
        f"{100 * choice.full.map:.2f}",
        f"{100 * held_out.p1:+.2f} ± {100 * held_out.p1_error:.2f}",
    ]
