"""`askline demo`: a question asked of the few pages of prose that come with askline."""

from __future__ import annotations

import click

from .answer_output import show_answers
from .options import complete_ranker

__all__ = ["demo"]

_QUESTION = "How long is the Trans-Siberian railway?"
_SHOWN = 3


@click.command()
@click.argument("question", default=_QUESTION)
@click.option("--ranker", "spec", shell_complete=complete_ranker, help="The ranker's spec text.")
def demo(question: str, spec: str | None) -> None:
    """Ask a question of the pages that come with askline."""
    from ..corpus import Corpus
    from ..demo import documents
    from ..rankers.registry import DEFAULT_SPEC
    from ..rankers.spec import load

    ranker = load(spec or DEFAULT_SPEC)
    with Corpus.in_memory(ranker=ranker) as corpus:
        corpus.add_texts(dict(documents()))
        answers = corpus.ask(question, top_k=_SHOWN)
    click.secho(question, bold=True)
    show_answers(answers, explain=False)
    sentences, seconds = answers.stages[0].entered, answers.seconds
    click.secho(f"{sentences} sentences, {1000 * seconds:.0f} ms, ranked by {ranker}", dim=True)
