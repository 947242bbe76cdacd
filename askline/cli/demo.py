"""`askline demo`: answer a question from the pages that are installed with askline."""

from __future__ import annotations

import click

from .answer_output import print_answers
from .options import ranker_option

__all__ = ["demo"]

_QUESTION = "How long is the Trans-Siberian railway?"
_TOP = 3


@click.command(short_help="Try askline on the pages that come with it.")
@click.argument("question", default=_QUESTION)
@ranker_option
def demo(question: str, spec: str | None) -> None:
    """
    Answer a question from the pages that come with askline.

    Without QUESTION it is "How long is the Trans-Siberian railway?". The pages are about coffee,
    honey bees, lighthouses, the metric system, tides and that railway.

    \b
    Example:
      askline demo 'When did electrification begin?'
    """
    from ..corpus import Corpus
    from ..demo import documents
    from ..rankers.registry import DEFAULT_SPEC
    from ..rankers.spec import load

    ranker = load(spec or DEFAULT_SPEC)
    with Corpus.in_memory(ranker=ranker) as corpus:
        corpus.add_texts(dict(documents()))
        answers = corpus.ask(question, top_k=_TOP)
    click.secho(question, bold=True)
    print_answers(answers, explain=False)
    sentences, seconds = answers.stages[0].entered, answers.seconds
    click.secho(f"{sentences} sentences, {1000 * seconds:.0f} ms, ranked by {ranker}", dim=True)
