"""
Answers as terminal text: the sentence, its phrase, its place and its probability.

A probability is shown with a word: sure (at least 90%), likely (70%), perhaps (40%) or doubtful.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from .output import print_indented, print_stages, relative_place, replace_controls

if TYPE_CHECKING:
    from ..corpus import Answer, Answers

__all__ = ["print_answers"]

_PROBABILITY_WORDS = ((0.9, "sure"), (0.7, "likely"), (0.4, "perhaps"), (0.0, "doubtful"))
_MOST_CHARACTERS = 600  # longer sentences are usually data without full stops
_MOST_NEIGHBOR_CHARACTERS = 240
_CHARACTERS_BEFORE_PHRASE = 200  # shown of a long sentence whose phrase is far from its start
_MARGIN = "  "


def print_answers(
    answers: Answers, *, explain: bool, source_paths: Mapping[str, str] | None = None
) -> None:
    """
    Print the best answer between its neighbors, the other answers, and the stages on request.

    A document that is in `source_paths` is shown by its path, which a terminal can open.
    """
    paths = source_paths or {}
    answers = replace(
        answers,
        answers=tuple(
            replace(each, document=paths.get(each.document, each.document)) for each in answers
        ),
    )
    if not answers.answers:
        click.echo("No answer found: no sentence shares a word with the question.")
    else:
        best, *others = answers.answers
        if not answers.answered:
            click.echo("No answer found. The closest sentence:")
        _print_best(best, answered=answers.answered)
        if others:
            click.secho("Next best", dim=True)
        for other in others:
            print_indented(
                _MARGIN, f"{_clip(other.text)}  [{_place_and_probability(other)}]", dim=True
            )
    if explain:
        print_stages(answers.stages)


def _print_best(best: Answer, *, answered: bool) -> None:
    if best.before:
        print_indented(_MARGIN, _clip_start(best.before), dim=True)
    if answered:
        text, mark = _text_and_mark(best)
        print_indented(_MARGIN, text, mark=mark, fg="green", bold=True)
    else:
        print_indented(_MARGIN, _clip(best.text))
    if best.after:
        print_indented(_MARGIN, _clip(best.after, _MOST_NEIGHBOR_CHARACTERS), dim=True)
    notes = [relative_place(best.place), _how_sure(best)]
    if best.heading:
        notes.insert(1, _clip(best.heading, _MOST_NEIGHBOR_CHARACTERS))
    if best.phrase is not None and best.probability is None:
        # Without a ranker the phrase itself is the answer, and bold is not visible everywhere.
        notes.insert(0, f"“{_clip(best.phrase.text)}”")
    print_indented(_MARGIN, " · ".join(notes), dim=True)


def _place_and_probability(answer: Answer) -> str:
    place = relative_place(answer.place)
    return place if answer.probability is None else f"{place} · {answer.probability:.0%}"


def _how_sure(answer: Answer) -> str:
    if answer.probability is None:
        return f"score {answer.score:.2f}"
    word = next(word for least, word in _PROBABILITY_WORDS if answer.probability >= least)
    return f"{word} ({answer.probability:.0%})"


def _text_and_mark(answer: Answer) -> tuple[str, tuple[int, int] | None]:
    """The sentence, or the part of a long one around its phrase, and the phrase's offsets in it."""
    if answer.phrase is None:
        return _clip(answer.text), None
    first = 0
    if answer.phrase.end > _MOST_CHARACTERS:
        before = max(1, answer.phrase.start - _CHARACTERS_BEFORE_PHRASE)
        first = answer.text.rfind(" ", 0, before) + 1
    lead = "… " if first else ""
    # The sentinel keeps a trailing space, which `_on_one_line` would strip.
    start = len(lead) + len(_on_one_line(answer.text[first : answer.phrase.start] + "|")) - 1
    text = lead + _clip(answer.text[first:])
    return text, (start, start + len(_on_one_line(answer.phrase.text)))


def _clip(text: str, most: int = _MOST_CHARACTERS) -> str:
    """The text on one line, cut off after `most` characters."""
    line = _on_one_line(text[: 2 * most])
    return line if len(line) <= most else f"{line[:most].rstrip()} …"


def _clip_start(text: str) -> str:
    """The end of the text on one line."""
    line = _on_one_line(text[-2 * _MOST_NEIGHBOR_CHARACTERS :])
    if len(line) <= _MOST_NEIGHBOR_CHARACTERS:
        return line
    return f"… {line[-_MOST_NEIGHBOR_CHARACTERS:].lstrip()}"


def _on_one_line(text: str) -> str:
    return " ".join(replace_controls(text).split())
