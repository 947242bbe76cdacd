"""`askline eval`: a ranker measured on a labelled set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    complete_ranker,
    deadline_option,
    json_option,
    load_question_set,
    measures_option,
    question_set_options,
)
from .output import print_table
from .progress import progress_bar

if TYPE_CHECKING:
    from ..evaluation import Evaluation

__all__ = ["eval_"]


@click.command("eval")
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True, shell_complete=complete_ranker)
@question_set_options
@measures_option
@deadline_option
@click.option("--run", "run_file", type=click.Path(path_type=Path), help="Write a TREC run here.")
@click.option("--qrels", "qrels_file", type=click.Path(path_type=Path), help="Write qrels here.")
@json_option
def eval_(
    specs: tuple[str, ...],
    *,
    measures: str,
    deadline_ms: float | None,
    run_file: Path | None,
    qrels_file: Path | None,
    as_json: bool,
    **which: Any,
) -> None:
    """
    Measure a ranker (or several) on a labelled set.

    Values are in percent. Questions without an answer count as 0; the filter leaves them out unless
    told otherwise.

    \b
    askline eval 'jaccard % 100 >> bm25' --on wikiqa:test --data DIR
    """
    from ..evaluation import evaluate, make_qrels, parse_measures, write_qrels, write_run
    from ..rankers import Within
    from ..rankers.spec import load

    if run_file and len(specs) > 1:
        raise click.UsageError("--run takes the run of one ranker; name one SPEC.")
    parse_measures(measures)
    rankers = [load(spec) for spec in specs]
    if deadline_ms is not None:
        rankers = [Within(ranker, deadline_ms) for ranker in rankers]
    questions = load_question_set(**which)
    evaluations = []
    with progress_bar(f"Ranking {questions.name}", len(questions) * len(rankers)) as step:
        for ranker in rankers:
            done = evaluate(ranker, questions, measures=measures, on_question=lambda _: step())
            evaluations.append(done)
    if run_file:
        write_run(evaluations[0].run, run_file)
    if qrels_file:
        write_qrels(make_qrels(questions), qrels_file)
    if as_json:
        for done in evaluations:
            click.echo(json.dumps(done.as_dict(), ensure_ascii=False))
    else:
        _show(evaluations, which)


def _show(evaluations: Sequence[Evaluation], which: dict[str, Any]) -> None:
    first = evaluations[0]
    rows = [
        [done.ranker, *(f"{value:.2f}" for value in done.percent.values()), *_milliseconds(done)]
        for done in evaluations
    ]
    print_table(
        ["ranker", *first.percent, "ms p50", "p95"],
        rows,
        title=f"{first.question_set}, {which['which']}: {len(first.seconds):,} questions, "
        f"{first.candidates:,} candidates",
    )


def _milliseconds(done: Evaluation) -> list[str]:
    return [f"{value:.2f}" for value in done.ms_per_question.values()]
