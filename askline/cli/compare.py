"""`askline compare`: is one ranker better than another, or was it luck?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

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


@click.command()
@click.argument("first", metavar="SPEC", shell_complete=complete_ranker)
@click.argument("second", metavar="SPEC", shell_complete=complete_ranker)
@question_set_options
@measures_option
@json_option
def compare(first: str, second: str, *, measures: str, as_json: bool, **which: Any) -> None:
    """
    Compare two rankers on the same questions.

    Shows both means, the difference (first less second) with its 95 % bootstrap interval, and how
    likely so large a difference is by chance: paired randomisation and paired t-test.

    \b
    askline compare jaccard bm25 --on wikiqa:dev --data DIR
    """
    from .. import evaluation
    from ..rankers.spec import load

    names = [measure.name for measure in evaluation.parse_measures(measures)]
    rankers = [load(first), load(second)]
    questions = load_question_set(**which)
    with progress_bar(f"Ranking {questions.name}", 2 * len(questions)) as step:
        one, other = (
            evaluation.evaluate(ranker, questions, measures=measures, on_question=lambda _: step())
            for ranker in rankers
        )
    comparisons = [evaluation.compare(one, other, name) for name in names]
    if as_json:
        for each in comparisons:
            click.echo(json.dumps(each.as_dict(), ensure_ascii=False))
        return
    first_one = comparisons[0]
    click.echo(f"{questions.name}: {len(questions):,} questions")
    click.echo(f"A  {first_one.a}\nB  {first_one.b}")
    print_table(
        ["", "A", "B", "A - B", "95 % interval", "p rand.", "p t", "win/tie/lose"],
        [_row(each) for each in comparisons],
    )


def _row(each: Comparison) -> list[str]:
    return [
        each.measure,
        f"{each.percent_a:.2f}",
        f"{each.percent_b:.2f}",
        f"{each.difference:+.2f}",
        f"{each.interval.low:+.2f} {each.interval.high:+.2f}",
        f"{each.p_randomization:.4f}",
        f"{each.p_t:.4f}",
        f"{each.wins}/{each.ties}/{each.losses}",
    ]
