"""`askline rank`: rank candidate sentences for a question; `askline rankers`: list the rankers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import POSITIVE_INTEGER, deadline_option, json_option, ranker_option
from .output import Style, print_indented, print_stages, replace_controls
from .progress import progress_bar

if TYPE_CHECKING:
    from ..types import Hit, Ranking

__all__ = [
    "rank",
    "rankers",
]


@click.command(short_help="Rank candidate sentences for a question.")
@click.argument("question", required=False)
@click.argument("file", type=click.Path(allow_dash=True), default="-")
@ranker_option
@click.option("--top", type=POSITIVE_INTEGER, help="Show the N best candidates.  [default: all]")
@deadline_option
@click.option("--explain", is_flag=True, help="Show candidates and milliseconds per stage.")
@click.option(
    "--requests",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help='Rank many questions: a JSONL file with {"question": …, "candidates": […]} per line, or a '
    "Parquet file with these columns. Prints one JSON object per line.",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --requests FILE.parquet: write its rows with the ranked columns to this Parquet "
    "file. A run that was stopped goes on where it was when it is started again.",
)
@click.option(
    "--question-column",
    metavar="NAME",
    default="question",
    show_default=True,
    help="The column of the questions in --requests.",
)
@click.option(
    "--candidates-column",
    metavar="NAME",
    default="candidates",
    show_default=True,
    help="The column of the candidates in --requests.",
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
    out: Path | None,
    question_column: str,
    candidates_column: str,
    as_json: bool,
) -> None:
    """
    Rank candidate sentences by how well they answer a question.

    Candidates are the lines of FILE or of standard input. Blank lines are skipped.

    \b
    Example:
      printf 'Emma is a novel.\\nJane Austen wrote Emma.\\n' |
          askline rank 'Who wrote Emma?'
    """
    from ..rankers.registry import DEFAULT_SPEC
    from ..rankers.spec import load

    if (question is None) == (requests is None):
        raise click.UsageError("Give either a QUESTION or --requests FILE.")
    if question is not None and not question.strip():
        raise click.UsageError("QUESTION must not be empty.")
    columns = question_column, candidates_column
    if out is not None:
        _rank_parquet(requests, out, spec or DEFAULT_SPEC, columns, top, deadline_ms)
        return
    lists = _read_requests(requests, *columns) if requests else _read_lines(question or "", file)
    ranker = load(spec or DEFAULT_SPEC)
    ranker.preload(keep_graphs=True)
    for text, candidates in lists:
        ranking = ranker.trace(text, candidates, deadline_ms=deadline_ms)
        if as_json or requests:
            click.echo(json.dumps(_as_record(text, ranking, top), ensure_ascii=False))
        else:
            _print(ranking, top, explain=explain)


def _read_lines(question: str, file: str) -> Iterator[tuple[str, list[str]]]:
    from ..data.data_files import DataFile

    if file == "-" and sys.stdin.isatty():
        click.echo("Type one candidate per line, then Ctrl-D.", err=True)
    lines = DataFile(file)
    candidates = [line for _, line in lines.lines() if line.strip()]
    lines.check()
    yield question, candidates


def _rank_parquet(
    requests: str | None,
    out: Path,
    spec: str,
    columns: tuple[str, str],
    top: int | None,
    deadline_ms: float | None,
) -> None:
    if requests is None or not _is_parquet(requests) or not _is_parquet(out):
        raise click.UsageError("--out FILE.parquet needs --requests FILE.parquet.")
    from ..integrations.arrow import BatchRanker
    from ..integrations.parquet import ParquetRun

    if out.exists() and out.samefile(requests):
        raise click.UsageError("--out must not be the file of --requests.")
    ranker = BatchRanker(spec, *columns, top_k=top, deadline_ms=deadline_ms)
    run = ParquetRun(Path(requests), out, ranker)
    done, total = run.rows()
    if done:
        click.echo(f"Continuing after {done:,} of {total:,} rows.", err=True)
    with progress_bar("Ranking", total - done) as step:
        run.run(step)
    click.echo(f"Wrote {total:,} rows to {out}.", err=True)


def _is_parquet(file: str | Path) -> bool:
    return Path(file).suffix == ".parquet"


def _read_requests(
    file: str, question_column: str, candidates_column: str
) -> Iterator[tuple[str, list[str]]]:
    """Of a JSONL file, read and check all lines before the first one is ranked."""
    if _is_parquet(file):
        from ..integrations.parquet import read_requests

        yield from read_requests(file, question=question_column, documents=candidates_column)
        return
    from ..data.data_files import DataFile, JsonObject, get_text, get_texts

    def parse(_: int, record: JsonObject) -> tuple[str, list[str]]:
        texts = get_texts(record, candidates_column, blank=True)
        return get_text(record, question_column), texts

    lines = DataFile(file)
    requests = lines.parse_rows(lines.records(), parse)
    lines.check()
    yield from requests


def _as_record(question: str, ranking: Ranking, top: int | None) -> dict[str, Any]:
    """The JSON output. The cost is relative to all candidates at full depth."""
    cost = ranking.cost
    return {
        "question": question,
        "hits": [_hit_record(hit) for hit in ranking.hits[:top]],
        "stages": [asdict(stage) for stage in ranking.stages],
        "skipped": ranking.skipped,
        "cost": cost
        and {"candidate_layers": cost.candidate_share, "token_layers": cost.token_share},
    }


def _hit_record(hit: Hit) -> dict[str, Any]:
    return {
        "index": hit.index,
        "score": hit.score,
        "probability": hit.probability,
        "stage": hit.stage,
        "text": hit.text,
    }


def _print(ranking: Ranking, top: int | None, *, explain: bool) -> None:
    hits = ranking.hits[:top]
    scores = [f"{hit.score:.4f}" for hit in hits]
    place_width = len(str(len(hits)))
    score_width = max(map(len, scores), default=0)
    for place, (hit, score) in enumerate(zip(hits, scores, strict=True), start=1):
        margin = f"{place:>{place_width}}  {score:>{score_width}}  "
        print_indented(margin, (replace_controls(hit.text), Style(bold=place == 1)))
    if explain:
        print_stages(ranking.stages)
    elif ranking.skipped:
        click.echo(
            f"The deadline passed before {ranking.skipped:,} scores were computed. "
            "--explain shows the stages.",
            err=True,
        )


@click.command(short_help="List the rankers.")
def rankers() -> None:
    """
    List the names of the rankers, for --ranker and SPEC.

    A SPEC is a name (bm25), a name with options (cosinet('DIR')), or a pipeline: A % 20 >> B ranks
    with A and ranks A's first 20 again with B.
    """
    from ..rankers.registry import ranker_names

    for name in ranker_names():
        click.echo(name)
