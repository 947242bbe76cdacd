"""`askline tune`: what a trained model drops, learned from dev sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import complete_ranker, complete_set, data_option, json_option
from .output import print_table
from .progress import progress_bar

if TYPE_CHECKING:
    from ..rankers import Cascade
    from ..tuning import ScoreTable, Tuned
    from ..tuning.results import Found
    from ..types import QuestionSet, Ranker

__all__ = ["tune"]


@click.group()
def tune() -> None:
    """Fit a trained model's settings to dev sets."""


@tune.command()
@click.argument(
    "folder", type=click.Path(path_type=Path, file_okay=False, exists=True), required=False
)
@click.option(
    "--on",
    multiple=True,
    metavar="SET",
    shell_complete=complete_set,
    help="A dev set: NAME:SPLIT or a JSONL file; may be given again.",
)
@click.option(
    "--table",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A score table made elsewhere, in place of --on; may be given again.",
)
@data_option
@click.option("--pad", type=click.IntRange(min=1), help="Lengthen each list to so many candidates.")
@click.option("--questions", type=click.IntRange(min=1), help="Take at most so many of each set.")
@click.option(
    "--budget",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.4,
    show_default=True,
    help="The cost allowed, relative to full depth.",
)
@click.option(
    "--max-loss",
    type=click.FloatRange(min=0),
    default=0.5,
    show_default=True,
    help="Points of P@1 that shorter lists may lose before they may cost more than the budget.",
)
@click.option(
    "--max-map-loss",
    type=click.FloatRange(min=0),
    default=0.2,
    show_default=True,
    help="The same in points of MAP, which no single set may lose either.",
)
@click.option(
    "--stage",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="What a classifier costs beside its candidates, in layers of one candidate.",
)
@click.option(
    "--first",
    metavar="SPEC",
    shell_complete=complete_ranker,
    help="A light ranker to stand before the cascade; how many it keeps is searched too.",
)
@click.option(
    "--first-layers",
    type=click.FloatRange(min=0),
    help="What --first costs a candidate, in layers. Measured where the sets are scored here.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("cascade-tuning"),
    show_default=True,
    help="Where scores, front.json and front.svg go.",
)
@click.option("--dry-run", is_flag=True, help="Leave the model folder as it is.")
@json_option
def cascade(
    folder: Path | None, *, out: Path, dry_run: bool, as_json: bool, **options: Any
) -> None:
    """
    Learn which classifiers of a cascade look, and how many candidates each lets through.

    Every pair is scored once at every depth and the scores are kept, so that a search that was
    broken off, or one with another budget, goes on from there. The schedule, with a calibration
    for each depth, is stored in the model folder; without FOLDER, in the one that comes with
    askline.

    \b
    askline tune cascade DIR --on wikiqa:dev --on selqa:dev --pad 400 --budget 0.4 --first cosinet
    """
    from ..rankers.cascade import shipped_folder
    from ..tuning import tune as fit
    from ..tuning.schedule_fitting import store, write_report

    folder = folder or shipped_folder()
    if bool(options["on"]) == bool(options["files"]):
        raise click.UsageError("Give either --on SET or --table FILE, once or more.")
    tables = _read(options) if options["files"] else _score(folder, out / "scores", options)
    tuned = fit(
        tables,
        budget=options["budget"],
        loss=options["max_loss"] / 100,
        map_loss=options["max_map_loss"] / 100,
        stage=options["stage"],
        first=bool(options["first"]),
        on_step=lambda step: click.echo(f"Searching: {step} …", err=True),
    )
    written = write_report(tuned, out)
    if not dry_run:
        store(tuned, folder)
    if as_json:
        click.echo(json.dumps(tuned.as_dict(), ensure_ascii=False))
    else:
        _show(tuned, options["first"])
    click.echo(f"Wrote {' and '.join(map(str, written))}.", err=True)
    if not dry_run:
        click.echo(f"Stored the schedule in {folder}.", err=True)


def _score(folder: Path, kept: Path, options: dict[str, Any]) -> list[ScoreTable]:
    """The dev sets at every depth, from the files kept where there are some."""
    from ..rankers import Cascade
    from ..rankers.spec import load
    from ..tuning import score_set
    from ..tuning.schedule_fitting import fingerprint

    judge: Cascade = Cascade.load(folder)
    first: Ranker | None = load(options["first"]) if options["first"] else None
    model = fingerprint(folder) + (f" behind {first}" if first else "")
    kept.mkdir(parents=True, exist_ok=True)
    tables = []
    for name in options["on"]:
        questions = _lists(name, options["pad"] or 0, options)
        stem = f"{name}.{options['pad'] or 0}.{options['questions'] or 'all'}"
        path = kept / f"{''.join(c if c.isalnum() or c in '.-' else '_' for c in stem)}.npz"
        with progress_bar(f"Scoring {name}", len(questions)) as step:
            table = score_set(
                judge.encoder,
                questions,
                model=model,
                pad=options["pad"] or 0,
                first=first,
                path=path,
                on_question=step,
            )
        tables.append(table)
    return tables


def _read(options: dict[str, Any]) -> list[ScoreTable]:
    """Tables made elsewhere; a first stage ranks their lists here."""
    from ..rankers.spec import load
    from ..tuning import ScoreTable
    from ..tuning.score_tables import with_first

    tables = [ScoreTable.load(file) for file in options["files"]]
    if not options["first"]:
        return tables
    if options["first_layers"] is None and any(table.light is None for table in tables):
        raise click.UsageError("With --table, say what --first costs: --first-layers.")
    first = load(options["first"])
    found = []
    for table in tables:
        if table.light is None:
            with progress_bar(f"Ranking {table.name}", len(table.questions)) as step:
                questions = _lists(table.name, table.pad, options | {"questions": None})
                table = with_first(
                    table, questions, first, layers=options["first_layers"], on_question=step
                )
        found.append(table)
    return found


def _lists(name: str, pad: int, options: dict[str, Any]) -> QuestionSet:
    """Questions with an answer; where only some are wanted, evenly out of the whole set."""
    from .. import data
    from ..types import QuestionSet

    questions = data.load_dataset(name, root=options["root"])
    if pad:
        questions = data.pad(questions, to=pad)
    found = data.filter_questions(questions, "answerable").questions
    wanted = options["questions"] or len(found)
    return QuestionSet(name, found[:: max(1, len(found) // wanted)][:wanted])


def _show(tuned: Tuned, first: str | None) -> None:
    rows = [_cells(f"{row.count} candidates", row) for row in tuned.rows]
    for whole in tuned.pipelines:
        name = f"{first} % {tuned.first} >> cascade, {whole.count} candidates"
        rows.append(_cells(name, whole))
    print_table(
        ["lists", "cost", "P@1", "full depth", "MAP", "full depth", "held out P@1", "keeps"],
        rows,
        title=f"Tuned on {', '.join(tuned.sets)}; budget {tuned.budget:.0%}. "
        "Held out: against full depth, on questions not chosen by.",
    )


def _cells(name: str, found: Found) -> list[str]:
    choice = found.choice
    held = choice.held_out
    keeps = ", ".join(f"{step.depth}:{step.keep}" for step in choice.trial.keeps)
    return [
        name,
        f"{choice.trial.price:.1%}",
        f"{100 * choice.trial.p1:.2f}",
        f"{100 * choice.full.p1:.2f}",
        f"{100 * choice.trial.map:.2f}",
        f"{100 * choice.full.map:.2f}",
        f"{100 * held.p1:+.2f} ± {100 * held.p1_error:.2f}",
        keeps or "full depth",
    ]
