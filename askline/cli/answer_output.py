"""Answers for a person: the sentence, its phrase, its place, and how sure askline is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .output import from_here, harmless, print_funnel, print_hanging

if TYPE_CHECKING:
    from ..corpus import Answer, Answers

__all__ = [
    "show_answers",
]

_WORDS = ((0.9, "sure"), (0.7, "likely"), (0.4, "perhaps"), (0.0, "doubtful"))
_SHOWN_CHARACTERS = 600  # of a sentence; a longer one is data without full stops
_NEIGHBOUR_CHARACTERS = 240
_BEFORE_PHRASE = 200  # shown of a longer sentence, where the phrase stands far inside it


def show_answers(answers: Answers, *, explain: bool) -> None:
    """The best between its neighbors, its phrase marked; the next best, and the funnel."""
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
        print_hanging("  ", _end_of(best.before), dim=True)
    text, mark = _with_mark(best, marked=answers.answered)
    style = {"fg": "green", "bold": True} if answers.answered else {}
    print_hanging("  ", text, mark=mark, **style)
    if best.after:
        print_hanging("  ", _clipped(best.after, _NEIGHBOUR_CHARACTERS), dim=True)
    notes = [
        *_nearest(best),
        from_here(best.place),
        *([_clipped(best.heading, _NEIGHBOUR_CHARACTERS)] if best.heading else []),
        _how_sure(best),
    ]
    click.secho(f"  {' · '.join(notes)}", dim=True)


def _nearest(best: Answer) -> list[str]:
    """A phrase that nobody judged is the answer itself, and bold is not shown everywhere."""
    if best.phrase is None or best.probability is not None:
        return []
    return [f"“{_clipped(best.phrase.text)}”"]


def _about(other: Answer) -> str:
    place = from_here(other.place)
    return place if other.probability is None else f"{place} · {other.probability:.0%}"


def _how_sure(best: Answer) -> str:
    if best.probability is None:
        return f"score {best.score:.2f}"
    word = next(word for least, word in _WORDS if best.probability >= least)
    return f"{word} ({best.probability:.0%})"


def _with_mark(best: Answer, *, marked: bool) -> tuple[str, tuple[int, int] | None]:
    """The sentence, or the part of a very long one around its phrase; where the phrase is in it."""
    if best.phrase is None or not marked:
        return _clipped(best.text), None
    first = 0
    if best.phrase.end > _SHOWN_CHARACTERS:
        first = best.text.rfind(" ", 0, max(1, best.phrase.start - _BEFORE_PHRASE)) + 1
    lead = "… " if first else ""
    start = len(lead) + len(_on_one_line(best.text[first : best.phrase.start] + "|")) - 1
    text = lead + _clipped(best.text[first:])
    return text, (start, start + len(_on_one_line(best.phrase.text)))


def _clipped(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """On one line, and not without end."""
    line = _on_one_line(text[: 2 * limit])
    return line if len(line) <= limit else f"{line[:limit].rstrip()} …"


def _end_of(text: str) -> str:
    line = _on_one_line(text[-2 * _NEIGHBOUR_CHARACTERS :])
    clipped = len(line) > _NEIGHBOUR_CHARACTERS
    return f"… {line[-_NEIGHBOUR_CHARACTERS:].lstrip()}" if clipped else line


def _on_one_line(text: str) -> str:
    return " ".join(harmless(text).split())
