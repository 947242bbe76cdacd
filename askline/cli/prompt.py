"""
The prompt of `askline ask`: questions one after the other, with models and index loaded once.

A question that needs the one before it ("and in summer?") is completed by `complete_question`. The
history is kept in the user's state folder. Ctrl-C cancels a line or an answer; Ctrl-D leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from ..engine.user_folders import user_folder
from ..errors import AsklineError
from .answer_output import print_answers, print_total
from .ask_session import AskOptions, AskSession
from .follow_up import complete_question
from .output import Style, print_indented, print_problems

if TYPE_CHECKING:
    from ..corpus import Answers

__all__ = ["Prompt", "history_path"]

_PROMPT = "? "
_MOST_LINES_OF_HISTORY = 1000
_HELP = """\
:more           show the next answers to the last question
:context N      show N sentences before and after the best answer
:top N          show N answers
:threshold P    refuse below this probability; 0: never, auto: the ranker's own
:explain        show the stages, or stop showing them
:new            forget the last question
:refresh        read files that have changed
:quit           leave, as Ctrl-D does"""


def history_path() -> Path:
    """The file with earlier questions."""
    return user_folder("state") / "history"


class Prompt:
    """Reads questions and commands from a terminal until the user leaves."""

    def __init__(
        self, session: AskSession, options: AskOptions, *, explain: bool, link: str
    ) -> None:
        self._session = session
        self._options = options
        self._explain = explain
        self._link = link
        self._last_question = ""
        self._shown = 0
        self._commands: dict[str, Callable[[str], None]] = {
            "context": self._set_context,
            "explain": self._toggle_explain,
            "help": self._print_help,
            "more": self._print_more,
            "new": self._forget,
            "refresh": self._refresh,
            "threshold": self._set_threshold,
            "top": self._set_top,
        }

    def run(self) -> None:
        """Answer questions until Ctrl-D or :quit."""
        click.echo(f"{self._session.description()}. Ask a question, or type :help.", err=True)
        history = _History(history_path())
        while (line := self._read()) is not None:
            if not line:
                continue
            history.save()
            if line.lower() in (":quit", ":q", ":exit"):
                break
            try:
                self._handle(line)
            except KeyboardInterrupt:
                click.echo("\nCancelled.", err=True)
            except AsklineError as error:
                click.echo(str(error), err=True)
            click.echo(err=True)

    def _read(self) -> str | None:
        """The next line; empty after Ctrl-C, and None after Ctrl-D."""
        try:
            if sys.stdout.isatty():
                return input(_PROMPT).strip()
            click.echo(_PROMPT, nl=False, err=True)
            return input().strip()
        except KeyboardInterrupt:
            click.echo("\nCtrl-D leaves.", err=True)
            return ""
        except EOFError:
            click.echo(err=True)
            return None
        except UnicodeDecodeError:
            click.echo("The line is not valid text in the terminal's encoding.", err=True)
            return ""

    def _handle(self, line: str) -> None:
        if not line.startswith(":"):
            self._answer(line)
            return
        name, _, value = line[1:].partition(" ")
        command = self._commands.get(name.lower())
        if command is None:
            click.echo(f"There is no command {line.split()[0]!r}. :help lists them.", err=True)
        else:
            command(value.strip())

    def _answer(self, line: str) -> None:
        question = complete_question(self._last_question, line)
        if question != line:
            print_indented("", (f"Understood as: {question}", Style(dim=True)))
        answers = self._session.ask(question, self._options)
        self._last_question, self._shown = question, len(answers.answers)
        self._print(answers)
        print_total(answers)

    def _print(self, answers: Answers, *, skip: int = 0) -> None:
        print_answers(
            answers,
            explain=self._explain and not skip,
            skip=skip,
            source_paths=self._session.source_paths(answers),
            context=self._options.context,
            link=self._link,
        )

    def _print_more(self, _: str) -> None:
        if not self._last_question:
            click.echo("Ask a question first.", err=True)
            return
        count = self._shown + self._options.top
        options = replace(self._options, top=count)
        answers = self._session.ask(self._last_question, options)
        if len(answers.answers) <= self._shown:
            click.echo("There are no more answers.", err=True)
            return
        self._print(answers, skip=self._shown)
        self._shown = len(answers.answers)

    def _set_context(self, value: str) -> None:
        if not value.isdecimal():
            click.echo(f":context needs a number, 0 or more, got {value!r}.", err=True)
            return
        self._options = replace(self._options, context=int(value))
        click.echo(f"Sentences before and after the best answer: {int(value)}.", err=True)

    def _set_top(self, value: str) -> None:
        if not value.isdecimal() or not int(value):
            click.echo(f":top needs a positive number, got {value!r}.", err=True)
            return
        self._options = replace(self._options, top=int(value))
        click.echo(f"Answers to show: {int(value)}.", err=True)

    def _set_threshold(self, value: str) -> None:
        try:
            threshold = None if value == "auto" else float(value)
        except ValueError:
            threshold = -1.0
        if threshold is not None and not 0 <= threshold <= 1:
            click.echo(f":threshold needs a number from 0 to 1 or auto, got {value!r}.", err=True)
            return
        self._options = replace(self._options, threshold=threshold)
        shown = "the ranker's own" if threshold is None else f"{threshold:g}"
        click.echo(f"Threshold: {shown}.", err=True)

    def _toggle_explain(self, _: str) -> None:
        self._explain = not self._explain
        click.echo(f"Stages are {'shown' if self._explain else 'hidden'}.", err=True)

    def _forget(self, _: str) -> None:
        self._last_question = ""
        click.echo("The next question stands alone.", err=True)

    def _refresh(self, _: str) -> None:
        self._session.refresh()
        print_problems(self._session.problems)
        click.echo(f"{self._session.description()}.", err=True)

    def _print_help(self, _: str) -> None:
        click.echo(_HELP)


class _History:
    """Earlier lines for the arrow keys, if Python has readline. Failures are ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._readline: ModuleType | None = None
        with suppress(ImportError):  # Windows
            import readline

            self._readline = readline
            readline.set_history_length(_MOST_LINES_OF_HISTORY)
            with suppress(OSError):  # no file yet, or it cannot be read
                readline.read_history_file(path)

    def save(self) -> None:
        """Write all lines, readable by the user alone."""
        if self._readline is None:
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            self._readline.write_history_file(self._path)
