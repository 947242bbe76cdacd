"""`askline demo`: a question asked of the few pages of prose that come with askline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .options import complete_ranker
from .tables import print_hanging

if TYPE_CHECKING:
    from ..types import Candidate

__all__ = ["demo"]

_QUESTION = "Who invented the paper coffee filter?"
_RUNNERS_UP = 2


@click.command()
@click.argument("question", default=_QUESTION)
@click.option("--ranker", "spec", shell_complete=complete_ranker, help="The ranker's spec text.")
def demo(question: str, spec: str | None) -> None:
    """Ask a question of the pages that come with askline."""
    from ..pipeline import DEFAULT_SPEC, load
    from ..rankers import trace

    candidates = _sentences()
    ranker = load(spec or DEFAULT_SPEC)
    ranking = trace(ranker, question, [candidate.text for candidate in candidates])
    milliseconds = 1000 * sum(stage.seconds for stage in ranking.stages)
    best, *others = (candidates[hit.index] for hit in ranking.hits[: _RUNNERS_UP + 1])

    click.secho(question, bold=True)
    print_hanging("  ", best.text, fg="green")
    click.secho(f"  {_place(best)}", dim=True)
    click.secho("Next best", dim=True)
    for other in others:
        print_hanging("  ", f"{other.text}  [{_place(other)}]", dim=True)
    click.secho(
        f"{len(candidates)} sentences ranked by {ranker} in {milliseconds:.1f} ms", dim=True
    )


def _place(candidate: Candidate) -> str:
    assert candidate.source is not None
    return f"{candidate.source.document}, line {candidate.id.rpartition(':')[2]}"


def _sentences() -> list[Candidate]:
    """Every sentence of the demo's documents, with its line in the id and its offsets."""
    from ..demo import documents
    from ..text.sentences import split_sentences
    from ..types import Candidate, Source

    return [
        Candidate(
            id=f"{name}:{text.count(chr(10), 0, start) + 1}",
            text=" ".join(text[start:end].split()),
            source=Source(name, start, end),
        )
        for name, text in documents()
        for start, end in split_sentences(text)
        if text[end - 1] in ".!?"  # a heading names its page but answers nothing
    ]
