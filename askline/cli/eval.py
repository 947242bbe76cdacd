"""`askline eval`: evaluate rankers on a labeled question set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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


@click.command("eval", short_help="Evaluate rankers on a question set.")
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True, shell_complete=complete_ranker)
@question_set_options
@measures_option
@deadline_option
@click.option(
    "--run",
    "run_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the ranking as a TREC run file.",
)
@click.option(
    "--qrels",
    "qrels_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the labels as a TREC qrels file.",
)
@json_option
def eval_(
    specs: tuple[str, ...],
    *,
    on: str,
    root: Path | None,
    which: str,
    pad_to: int | None,
    pad_seed: int,
    measures: str,
    deadline_ms: float | None,
    run_file: Path | None,
    qrels_file: Path | None,
    as_json: bool,
) -> None:
    """
    Evaluate one or more rankers on a labeled question set.

    Measures are in percent, times in milliseconds per question (median and 95th percentile). A
    question without a correct candidate counts as 0 under --filter all and is left out otherwise.

    \b
    Example:
      askline eval 'jaccard % 100 >> bm25' --on wikiqa:test --data DIR
    """
    from ..evaluation import evaluate, make_qrels, parse_measures, write_qrels, write_run
    from ..rankers.base import Ranker, WithDeadline
    from ..rankers.spec import load

    if run_file and len(specs) > 1:
        raise click.UsageError("--run writes the ranking of one ranker: name one SPEC.")
    parse_measures(measures)
    rankers: list[Ranker] = [load(spec) for spec in specs]
    if deadline_ms is not None:
        rankers = [WithDeadline(ranker, deadline_ms) for ranker in rankers]
    questions = load_question_set(on, root=root, which=which, pad_to=pad_to, pad_seed=pad_seed)
    evaluations = []
    with progress_bar(f"Ranking {questions.name}", len(questions) * len(rankers)) as step:
        for ranker in rankers:
            evaluations.append(
                evaluate(ranker, questions, measures=measures, on_question=lambda _: step())
            )
    if run_file:
        write_run(evaluations[0].run, run_file)
    if qrels_file:
        write_qrels(make_qrels(questions), qrels_file)
    if as_json:
        for evaluation in evaluations:
            click.echo(json.dumps(evaluation.as_dict(), ensure_ascii=False))
    else:
        _print(evaluations, which)


def _print(evaluations: Sequence[Evaluation], which: str) -> None:
    first = evaluations[0]
    print_table(
        ["ranker", *first.percent, "ms p50", "p95"],
        [
            [
                evaluation.ranker,
                *(f"{value:.2f}" for value in evaluation.percent.values()),
                *(f"{value:.2f}" for value in evaluation.ms_per_question.values()),
            ]
            for evaluation in evaluations
        ],
        title=f"{first.question_set}, {which}: {len(first.seconds):,} questions, "
        f"{first.candidates:,} candidates",
    )
