"""`askline eval` and `askline compare`: evaluate rankers on a question set, and compare two."""

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
    from ..evaluation import Comparison, Evaluation

__all__ = ["compare", "eval_"]


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
        _print_evaluations(evaluations, which)


def _print_evaluations(evaluations: Sequence[Evaluation], which: str) -> None:
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


@click.command(short_help="Test whether one ranker is better than another.")
@click.argument("first", metavar="SPEC_A", shell_complete=complete_ranker)
@click.argument("second", metavar="SPEC_B", shell_complete=complete_ranker)
@question_set_options
@measures_option
@json_option
def compare(
    first: str,
    second: str,
    *,
    on: str,
    root: Path | None,
    which: str,
    pad_to: int | None,
    pad_seed: int,
    measures: str,
    as_json: bool,
) -> None:
    """
    Test whether one ranker is better than another on the same questions.

    Shows per measure: the mean of each ranker in percent, the difference A - B with its 95%
    bootstrap interval, the p-values of a paired randomization test and a paired t-test, and the
    number of questions on which A wins, ties and loses.

    \b
    Example:
      askline compare jaccard bm25 --on wikiqa:dev --data DIR
    """
    from .. import evaluation
    from ..rankers.spec import load

    names = [measure.name for measure in evaluation.parse_measures(measures)]
    rankers = [load(first), load(second)]
    questions = load_question_set(on, root=root, which=which, pad_to=pad_to, pad_seed=pad_seed)
    with progress_bar(f"Ranking {questions.name}", 2 * len(questions)) as step:
        a, b = (
            evaluation.evaluate(ranker, questions, measures=measures, on_question=lambda _: step())
            for ranker in rankers
        )
    comparisons = [evaluation.compare(a, b, name) for name in names]
    if as_json:
        for comparison in comparisons:
            click.echo(json.dumps(comparison.as_dict(), ensure_ascii=False))
        return
    click.secho(f"{questions.name}, {which}: {len(questions):,} questions", dim=True)
    click.echo(f"A  {comparisons[0].a}\nB  {comparisons[0].b}")
    print_table(
        ["", "A", "B", "A - B", "95% interval", "p rand.", "p t", "win/tie/lose"],
        [_comparison_row(comparison) for comparison in comparisons],
    )


def _comparison_row(comparison: Comparison) -> list[str]:
    return [
        comparison.measure,
        f"{comparison.percent_a:.2f}",
        f"{comparison.percent_b:.2f}",
        f"{comparison.difference:+.2f}",
        f"{comparison.interval.low:+.2f} {comparison.interval.high:+.2f}",
        f"{comparison.p_randomization:.4f}",
        f"{comparison.p_t:.4f}",
        f"{comparison.wins}/{comparison.ties}/{comparison.losses}",
    ]
