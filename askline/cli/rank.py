"""`askline rank`: candidates in, a ranking out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .options import complete_ranker, deadline_option, json_option
from .output import print_funnel, print_hanging

if TYPE_CHECKING:
    from ..types import Ranking

__all__ = ["rank"]


@click.command()
@click.argument("question", required=False)
@click.argument("file", type=click.Path(allow_dash=True), default="-")
@click.option("--ranker", "spec", shell_complete=complete_ranker, help="The ranker's spec text.")
@click.option("--top", type=click.IntRange(min=1), help="Show only the first so many.")
@deadline_option
@click.option("--explain", is_flag=True, help="Show what each stage did, in candidates and time.")
@click.option(
    "--requests",
    type=click.Path(allow_dash=True),
    help='Rank many: a file of {"question": …, "candidates": […]} lines; answers with JSON lines.',
)
@json_option
def rank(
    question: str | None,
    file: str,
    *,
    spec: str | None,
    top: int | None,
    deadline_ms: float | None,
    explain: bool,
    requests: str | None,
    as_json: bool,
) -> None:
    """
    Rank candidate sentences by how well they answer a question.

    Candidates are the lines of FILE or of standard input.

    \b
    printf 'Emma is a novel.\\nJane Austen wrote Emma.\\n' | askline rank 'Who wrote Emma?'
    """
    from ..rankers import trace
    from ..rankers.registry import DEFAULT_SPEC
    from ..rankers.spec import load

    if (question is None) == (requests is None):
        raise click.UsageError("Give either a QUESTION or --requests FILE.")
    if question is not None and not question.strip():
        raise click.UsageError("The QUESTION has no words in it.")
    asked = _many(requests) if requests else _one(question or "", file)
    ranker = load(spec or DEFAULT_SPEC)
    for text, candidates in asked:
        ranking = trace(ranker, text, candidates, deadline_ms)
        if as_json or requests:
            click.echo(json.dumps(_record(text, candidates, ranking, top), ensure_ascii=False))
        else:
            _show(candidates, ranking, top, explain)


def _one(question: str, file: str) -> Iterator[tuple[str, list[str]]]:
    """One question over the lines of a file; blank lines are no candidates."""
    from ..data.data_files import DataFile

    lines = DataFile(file)
    candidates = [line for _, line in lines.lines() if line.strip()]
    lines.check()
    yield question, candidates


def _many(file: str) -> Iterator[tuple[str, list[str]]]:
    """One question a line. All lines are read and checked before the first is answered."""
    from ..data.data_files import DataFile, JsonObject, get_text, get_texts

    def parse(_: int, record: JsonObject) -> tuple[str, list[str]]:
        return get_text(record, "question"), get_texts(record, "candidates", blank=True)

    lines = DataFile(file)
    asked = lines.collect(lines.records(), parse)
    lines.check()
    yield from asked


def _record(
    question: str, candidates: Sequence[str], ranking: Ranking, top: int | None
) -> dict[str, Any]:
    """A ranking as JSON: the hits with their texts, and what each stage did."""
    cost = ranking.cost
    return {
        "question": question,
        "hits": [asdict(hit) | {"text": candidates[hit.index]} for hit in ranking.hits[:top]],
        "stages": [asdict(stage) for stage in ranking.stages],
        "skipped": ranking.skipped,
        "cost": cost
        and {"candidate_layers": cost.candidate_share, "token_layers": cost.token_share},
    }


def _show(candidates: Sequence[str], ranking: Ranking, top: int | None, explain: bool) -> None:
    shown = ranking.hits[:top]
    places = len(str(len(shown)))
    scores = [f"{hit.score:.4f}" for hit in shown]
    width = max(map(len, scores), default=0)
    for place, (hit, score) in enumerate(zip(shown, scores, strict=True), start=1):
        margin = f"{place:>{places}}  {score:>{width}}  "
        print_hanging(margin, candidates[hit.index], bold=place == 1)
    if explain:
        print_funnel(ranking.stages)
    elif ranking.skipped:
        click.echo(
            f"Time was up: {ranking.skipped:,} judgements were left out. "
            "--explain shows at which stage.",
            err=True,
        )
