"""Answers for a person: the sentence, its phrase, its place, and how sure askline is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .problems import from_here
from .tables import print_funnel, print_hanging

if TYPE_CHECKING:
    from ..corpus import Answer, Answers

__all__ = ["show_answers"]

_WORDS = ((0.9, "sure"), (0.7, "likely"), (0.4, "perhaps"), (0.0, "doubtful"))
_SHOWN_CHARACTERS = 600  # of a sentence; a longer one is data without full stops


def show_answers(answers: Answers, *, explain: bool) -> None:
    """The best between its neighbours, its phrase marked; the next best, and the funnel."""
    best, *others = answers.answers or (None,)
    if best is None:
        click.echo("No answer found: no sentence shares a word with the question.")
    else:
        if not answers.answered:
            click.echo("No answer found. The sentence that comes nearest:")
        _show_best(best, answers)
    if others:
        click.secho("Next best", dim=True)
    for other in others:
        if other is not None:
            print_hanging("  ", f"{_clipped(other.text)}  [{_about(other)}]", dim=True)
    if explain:
        print_funnel(answers.stages)


def _show_best(best: Answer, answers: Answers) -> None:
    if best.before:
        print_hanging("  ", _clipped(best.before), dim=True)
    text, mark = _clipped(best.text), None
    if best.phrase is not None and answers.answered:
        start = len(_on_one_line(best.text[: best.phrase.start] + "|")) - 1
        mark = (start, start + len(_on_one_line(best.phrase.text)))
    style = {"fg": "green", "bold": True} if answers.answered else {}
    print_hanging("  ", text, mark=mark, **style)
    if best.after:
        print_hanging("  ", _clipped(best.after), dim=True)
    notes = [
        from_here(best.place),
        *([best.heading] if best.heading else []),
        _how_sure(best),
    ]
    click.secho(f"  {' · '.join(notes)}", dim=True)


def _about(other: Answer) -> str:
    place = from_here(other.place)
    return place if other.confidence is None else f"{place} · {other.confidence:.0%}"


def _how_sure(best: Answer) -> str:
    if best.confidence is None:
        return f"score {best.score:.2f}"
    word = next(word for least, word in _WORDS if best.confidence >= least)
    return f"{word} ({best.confidence:.0%})"


def _clipped(text: str) -> str:
    """On one line, and not without end."""
    line = _on_one_line(text[: 2 * _SHOWN_CHARACTERS])
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]} …"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
