"""`askline data`: list question sets, count what they hold, and write them as JSONL."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import complete_set, data_option, json_option
from .output import print_table

if TYPE_CHECKING:
    from ..data import DatasetStatistics

__all__ = ["data"]


@click.group(short_help="List, count and convert question sets.")
def data() -> None:
    """
    List, count and convert question sets.

    SET is NAME:SPLIT, as `askline data list` shows them, or a JSONL file.
    """


@data.command("list")
def list_() -> None:
    """List the names of all question sets."""
    from ..data import dataset_names

    for name in dataset_names():
        click.echo(name)


@data.command(short_help="Count questions, candidates, answers and words.")
@click.argument("names", metavar="SET...", nargs=-1, required=True, shell_complete=complete_set)
@data_option
@json_option
def stats(names: tuple[str, ...], root: Path | None, as_json: bool) -> None:
    """
    Count questions, candidates, answers and words of question sets.

    \b
    Columns:
      quest.  questions
      cands   candidates of all questions
      answ.   questions with a correct candidate
      both    questions with correct and incorrect candidates
      pos.    correct candidates
      c/q     candidates per question
      len q   words per question
      len c   words per candidate
    """
    from .. import data

    found = [data.compute_statistics(data.load_dataset(name, root=root)) for name in names]
    if as_json:
        for each in found:
            click.echo(json.dumps(asdict(each), ensure_ascii=False))
        return
    print_table(
        ["set", "quest.", "cands", "answ.", "both", "pos.", "c/q", "len q", "len c"],
        [_row(each) for each in found],
    )


def _row(each: DatasetStatistics) -> list[str]:
    counts = (each.questions, each.candidates, each.answerable, each.both, each.positives)
    averages = (each.candidates_per_question, each.question_words, each.candidate_words)
    return [
        each.name,
        *(f"{count:,}" for count in counts),
        *(f"{average:.2f}" for average in averages),
    ]


@data.command()
@click.argument("name", metavar="SET", shell_complete=complete_set)
@click.option(
    "--out",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="JSONL file to write.",
)
@data_option
def export(name: str, file: Path, root: Path | None) -> None:
    """Write a question set as JSONL, one question per line."""
    from .. import data

    questions = data.load_dataset(name, root=root)
    data.write_jsonl(questions, file)
    click.echo(f"Wrote {len(questions):,} questions to {file}.", err=True)
