"""`askline compare`: test whether one ranker is better than another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import (
    complete_ranker,
    json_option,
    load_question_set,
    measures_option,
    question_set_options,
)
from .output import print_table
from .progress import progress_bar

if TYPE_CHECKING:
    from ..evaluation import Comparison

__all__ = ["compare"]


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
        [_row(comparison) for comparison in comparisons],
    )


def _row(comparison: Comparison) -> list[str]:
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
