"""
Answers as terminal text: the sentence, its phrase, its place and its probability.

A probability is shown with a word: sure (at least 90%), likely (at least 70%), perhaps (at least
the threshold) or doubtful (below it). Percentages are rounded down, so that one below the threshold
never looks as if it reached it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import click

from .output import PLAIN, Style, print_indented, print_stages, relative_place, replace_controls
from .terminal import DEFAULT_LINK, file_link, supports_links, uses_color

if TYPE_CHECKING:
    from ..corpus import Answer, AnswerPlace, Answers

__all__ = ["print_answers", "print_total"]

_SURE, _LIKELY = 0.9, 0.7
_PERHAPS = 0.4  # used if the threshold is 0
_MOST_CHARACTERS = 600  # longer sentences are usually data without full stops
_MOST_NEIGHBOR_CHARACTERS = 240  # per sentence
_MOST_HEADING_CHARACTERS = 80
_MOST_WORD_CHARACTERS = 20  # a longer word is cut where a text must end
_CHARACTERS_BEFORE_PHRASE = 200  # shown of a long sentence whose phrase is far from its start
_MARGIN = "  "
_ANSWER_MARGIN = "> "  # tells the answer from its neighbors where there is no color
_CODE = "    "  # before each line of code among the neighbors, as in `Answer.before`
_MOST_CODE_LINES = 8
_MOST_CODE_CHARACTERS = 160
_DIM = Style(dim=True)
_HIGHLIGHT = Style(fg="green", bold=True)


def print_answers(
    answers: Answers,
    *,
    explain: bool,
    source_paths: Mapping[str, str] | None = None,
    context: int = 1,
    link: str = DEFAULT_LINK,
    skip: int = 0,
) -> None:
    """
    Print the best answer between its neighbors, the other answers, and the stages on request.

    A document that is in `source_paths` is shown by its path, as a link of the form `link` if the
    terminal supports links. `context` is the number of neighbors on each side. The first `skip`
    answers have been shown before and are left out.
    """
    printer = _Printer(answers, source_paths or {}, context, link if supports_links() else "")
    if answers.read_as not in ("", answers.question):
        click.secho(f"Read as: {replace_controls(answers.read_as)}", dim=True, err=True)
    if not answers.answers:
        click.echo("No answer found: no sentence shares a word with the question.")
    elif answers.answered:
        if not skip:
            printer.print_best(answers.above_threshold[0])
        shown = answers.answers[:skip] or answers.above_threshold[:1]
        printer.print_list("Next best", _without(answers.above_threshold, shown))
        threshold = f"{100 * (answers.threshold or 0):.1f}".removesuffix(".0")
        printer.print_list(
            f"Below the threshold of {threshold}%", _without(answers.below_threshold, shown)
        )
    else:
        if not skip:
            click.echo("No answer found. The closest sentence:")
            printer.print_best(answers.answers[0])
        printer.print_list("Next closest", answers.answers[max(1, skip) :])
    if explain:
        print_stages(answers.stages)


def _without(answers: Sequence[Answer], shown: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer not in shown]


def print_total(answers: Answers, *, loading_seconds: float = 0.0) -> None:
    """Print the number of answers and the time to stderr."""
    count = len(answers.above_threshold)
    found = f"{count} answers" if count > 1 else ("1 answer" if count else "No answer")
    searched = answers.stages[0].entered if answers.stages else 0
    sentences = "sentence" if searched == 1 else "sentences"
    total = f"{found} in {answers.seconds:.2f} s from {searched:,} {sentences}"
    if loading_seconds >= 0.1:
        total += f", after {loading_seconds:.1f} s to load"
    click.secho(total, dim=True, err=True)


class _Printer:
    """Prints single answers to one question."""

    def __init__(
        self, answers: Answers, source_paths: Mapping[str, str], context: int, link: str
    ) -> None:
        self._answers = answers
        self._paths = source_paths
        self._context = context
        self._most_around = max(1, context) * _MOST_NEIGHBOR_CHARACTERS
        self._link = link

    def print_best(self, best: Answer) -> None:
        """Print an answer between its neighbors, or the closest sentence alone; its place below."""
        if not self._answers.answered:
            print_indented(_MARGIN, _clip(best.text))
            self._print_notes(best)
            return
        before = best.before
        if self._context and best.lead_in and not before.endswith(best.lead_in):
            before = f"{best.lead_in} … {before}".removesuffix(" … ")
        self._print_around(before, from_end=True)
        text, (start, end) = _text_and_mark(best)
        margin = _MARGIN if uses_color() else _ANSWER_MARGIN
        print_indented(margin, text[:start], (text[start:end], _HIGHLIGHT), text[end:])
        self._print_around(best.after)
        self._print_notes(best)

    def _print_around(self, text: str, *, from_end: bool = False) -> None:
        """Print neighbors: sentences as a paragraph, and code by its lines."""
        for is_code, group in groupby(text.splitlines(), key=_is_code):
            lines = list(group)
            if not is_code:
                prose = "\n".join(lines)
                clip = _clip_start if from_end else _clip
                print_indented(_MARGIN, (clip(prose, self._most_around), _DIM))
                continue
            cut = len(lines) > _MOST_CODE_LINES
            shown = lines[-_MOST_CODE_LINES:] if from_end else lines[:_MOST_CODE_LINES]
            if cut:
                shown = [f"{_CODE}…", *shown] if from_end else [*shown, f"{_CODE}…"]
            for line in shown:
                code = replace_controls(line.removeprefix(_CODE).expandtabs(4)).rstrip()
                print_indented(_MARGIN + _CODE, (code[:_MOST_CODE_CHARACTERS], _DIM))

    def _print_notes(self, best: Answer) -> None:
        notes = [self._place(best)]
        headings = " › ".join(best.headings) or best.heading
        if headings:
            notes.append((_clip_start(headings, _MOST_HEADING_CHARACTERS), _DIM))
        notes.append((self._how_sure(best), _DIM))
        if best.also_at:
            others = len(best.also_at) - 1
            more = f" and {others} more" if others else ""
            place, style = self._place(best.also_at[0])
            notes.append((f"also {place}{more}", style))
        shows_phrase = not uses_color() or best.probability is None
        if self._answers.answered and best.phrase is not None and shows_phrase:
            # Bold is not visible without color. Without a ranker, the phrase is the answer.
            notes.insert(0, (f"“{_clip(best.phrase.text)}”", _DIM))
        parts = [part for note in notes for part in ((" · ", _DIM), note)]
        print_indented(_MARGIN, *parts[1:])

    def print_list(self, title: str, answers: Sequence[Answer]) -> None:
        """Print a title and the answers below it, if there are any."""
        if not answers:
            return
        click.secho(title, dim=True, color=uses_color())
        for answer in answers:
            below = answer in self._answers.below_threshold
            probability = answer.probability
            sure = "" if probability is None else f" · {_percentage(probability)}"
            text = f"{_clip(answer.text)}  "
            style = _DIM if below else PLAIN
            # No-break spaces keep the brackets on one line.
            place = self._place(answer)
            parts = ((text, style), ("[", _DIM), place, (f"{sure}]".replace(" ", "\u00a0"), _DIM))
            print_indented(_MARGIN, *parts)

    def _place(self, at: Answer | AnswerPlace) -> tuple[str, Style]:
        """The place in words, as a link to the file if the terminal supports it."""
        path = self._paths.get(at.document)
        named = at if path is None else replace(at, document=path)
        url = ""
        if path is not None and self._link:
            absolute = os.path.abspath(path)
            url = file_link(absolute, unit=at.unit, number=at.number, template=self._link)
        return relative_place(named.place), _DIM._replace(url=url)

    def _how_sure(self, answer: Answer) -> str:
        probability = answer.probability
        if probability is None:
            return f"score {answer.score:.2f}"
        if probability < (self._answers.threshold or _PERHAPS):
            word = "doubtful"
        elif probability < _LIKELY:
            word = "perhaps"
        else:
            word = "likely" if probability < _SURE else "sure"
        return f"{word}\u00a0({_percentage(probability)})"  # never at the end of a line


def _is_code(line: str) -> bool:
    return not line or line.startswith(_CODE)


def _percentage(probability: float) -> str:
    """The probability in percent, rounded down."""
    whole = math.floor(100 * probability + 1e-9)
    return f"{whole}%" if whole or not probability else "<1%"


def _text_and_mark(answer: Answer) -> tuple[str, tuple[int, int]]:
    """
    The sentence, or the part of a long one around its phrase, and the offsets to highlight.

    These are the phrase's, or those of the whole sentence if there is no phrase.
    """
    if answer.phrase is None:
        text = _clip(answer.text)
        return text, (0, len(text))
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
    if len(line) <= most:
        return line
    end = line.rfind(" ", most - _MOST_WORD_CHARACTERS, most + 1)
    return f"{line[: end if end > 0 else most].rstrip()} …"


def _clip_start(text: str, most: int) -> str:
    """The end of the text on one line."""
    line = _on_one_line(text[-2 * most :])
    if len(line) <= most:
        return line
    cut = len(line) - most
    start = line.find(" ", cut - 1, cut + _MOST_WORD_CHARACTERS)
    return f"… {line[start if start > 0 else cut :].lstrip()}"


def _on_one_line(text: str) -> str:
    return " ".join(replace_controls(text).split())
