"""`askline data`: which datasets there are, what is in them, and one of them as JSONL."""

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


@click.group()
def data() -> None:
    """Look at labelled question sets."""


@data.command("list")
def list_() -> None:
    """List the datasets that --on and `askline data` take."""
    from ..data import dataset_names

    for name in dataset_names():
        click.echo(name)


@data.command()
@click.argument("names", metavar="SET...", nargs=-1, required=True, shell_complete=complete_set)
@data_option
@json_option
def stats(names: tuple[str, ...], root: Path | None, as_json: bool) -> None:
    """
    Count questions, candidates, answers and words.

    \b
    cands    candidates over all questions     answ.    questions with an answer
    both     questions with both labels        pos.     candidates that answer
    c/q      candidates a question             len q/c  words a question, a candidate
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
    "--out", "file", type=click.Path(path_type=Path), required=True, help="Written whole."
)
@data_option
def export(name: str, file: Path, root: Path | None) -> None:
    """Write a set as JSONL, one question a line."""
    from .. import data

    questions = data.load_dataset(name, root=root)
    data.write_jsonl(questions, file)
    click.echo(f"{len(questions):,} questions to {file}", err=True)
