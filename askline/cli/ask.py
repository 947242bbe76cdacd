"""`askline ask`: a question asked of files, folders, standard input or an index."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .options import as_json, complete_ranker
from .problems import SOME_FAILED, from_here, show_problems
from .progress import counting
from .tables import print_funnel, print_hanging

if TYPE_CHECKING:
    from ..corpus import AddReport, Answer, Answers, Corpus

__all__ = ["ask"]

_NOTHING_FOUND = 4
_SHOWN_CHARACTERS = 600  # of a sentence; a longer one is data without full stops


@click.command()
@click.argument("question")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(allow_dash=True))
@click.option("--index", "folder", type=click.Path(), help="Ask the index in this folder.")
@click.option(
    "--ranker",
    "spec",
    shell_complete=complete_ranker,
    help="Spec text of the ranker for what was found; without it, the order it was found in.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How many answers to show.",
)
@click.option(
    "--retrieve",
    "retrieved",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many sentences are found for the ranker.",
)
@click.option("--explain", is_flag=True, help="Show what each stage did, in sentences and time.")
@click.option("--no-cache", is_flag=True, help="Read everything, and remember nothing.")
@as_json
def ask(
    question: str,
    paths: tuple[str, ...],
    *,
    folder: str | None,
    spec: str | None,
    top: int,
    retrieved: int,
    explain: bool,
    no_cache: bool,
    as_json: bool,
) -> None:
    """
    Answer a question from files and folders, or from an index.

    Reads text, markdown, html, pdf, docx, jsonl and csv; - is standard input. What was read is
    remembered in your cache folder, and a file is read again only when it has changed.

    \b
    askline ask 'Who wrote Emma?' notes/ letter.pdf
    askline ask 'Who wrote Emma?' --index DIR

    Exit codes: 0 answered, 3 answered although some files could not be read, 4 no answer found.
    """
    if bool(folder) == bool(paths) and (folder or sys.stdin.isatty()):
        raise click.UsageError("Give either PATHs to read or --index DIR.")
    corpus, report = _opened(paths or (() if folder else ("-",)), folder, spec, not no_cache)
    with corpus:
        answers = corpus.ask(question, top=top, retrieved=max(top, retrieved))
    if as_json:
        click.echo(json.dumps(_record(answers, report), ensure_ascii=False))
    else:
        _show(answers, explain=explain)
    problems = report.problems if report else ()
    show_problems(problems)
    code = _NOTHING_FOUND if answers.best is None else SOME_FAILED if problems else 0
    click.get_current_context().exit(code)


def _opened(
    paths: Sequence[str], folder: str | None, spec: str | None, may_cache: bool
) -> tuple[Corpus, AddReport | None]:
    """The corpus to ask, and what became of the files that went into it."""
    from ..corpus import Corpus
    from ..corpus.asking import DEFAULT_RANKER
    from ..corpus.cache import folder_for
    from ..errors import CorpusError
    from ..pipeline import load

    name = spec or DEFAULT_RANKER
    ranker = load(name) if name else None  # before reading: a wrong name is said at once
    if folder is not None:
        return Corpus.open(folder, ranker=ranker, must_exist=True), None
    with counting("Files") as step:
        if may_cache and "-" not in paths:
            try:
                return _filled(Corpus.open(folder_for(paths), ranker=ranker), paths, step)
            except CorpusError as error:
                click.echo(f"Nothing is remembered: {error}", err=True)
        return _filled(Corpus.in_memory(ranker=ranker), paths, step)


def _filled(
    corpus: Corpus, paths: Sequence[str], step: Callable[[], None]
) -> tuple[Corpus, AddReport]:
    """The corpus with these paths in it and nothing else."""
    try:
        return corpus, corpus.add(paths, on_file=lambda _: step(), only=True)
    except BaseException:
        corpus.close()
        raise


def _record(answers: Answers, report: AddReport | None) -> dict[str, object]:
    """Answers as JSON; `start` and `end` slice the decoded file."""
    problems = report.problems if report else ()
    return asdict(answers) | {"problems": [asdict(problem) for problem in problems]}


def _show(answers: Answers, *, explain: bool) -> None:
    best, *others = answers.answers or (None,)
    if best is None:
        click.echo("No answer found: no sentence shares a word with the question.")
    else:
        _show_best(best)
    if others:
        click.secho("Next best", dim=True)
    for other in others:
        if other is not None:
            print_hanging("  ", f"{_clipped(other.text)}  [{from_here(other.place)}]", dim=True)
    if explain:
        print_funnel(answers.stages)


def _show_best(best: Answer) -> None:
    if best.before:
        print_hanging("  ", _clipped(best.before), dim=True)
    print_hanging("  ", _clipped(best.text), fg="green", bold=True)
    if best.after:
        print_hanging("  ", _clipped(best.after), dim=True)
    notes = [
        from_here(best.place),
        *([best.heading] if best.heading else []),
        f"score {best.score:.2f}",
    ]
    click.secho(f"  {' · '.join(notes)}", dim=True)


def _clipped(text: str) -> str:
    """On one line, and not without end."""
    line = " ".join(text[: 2 * _SHOWN_CHARACTERS].split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]} …"
