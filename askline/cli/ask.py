"""`askline ask`: a question asked of files, folders, standard input or an index."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING

import click

from .answer_output import show_answers
from .options import complete_ranker, json_option
from .output import SOME_FAILED, show_problems
from .progress import progress_count

if TYPE_CHECKING:
    from ..corpus import AddReport, Answers, Corpus
    from ..errors import InputError
    from ..types import Ranker

__all__ = ["ask"]

_NOTHING_FOUND = 4


@click.command()
@click.argument("question")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(allow_dash=True))
@click.option("--index", "folder", type=click.Path(), help="Ask the index in this folder.")
@click.option(
    "--retriever",
    "url",
    metavar="URL",
    help="Ask a server: opensearch://HOST/INDEX, elasticsearch://HOST/INDEX or "
    "postgresql://HOST/DATABASE?table=TABLE.",
)
@click.option(
    "--encode",
    metavar="MODULE:FUNCTION",
    help="The Python function that gives the vector of a question, for a table with embedding=.",
)
@click.option(
    "--ranker",
    "spec",
    shell_complete=complete_ranker,
    help="Spec text of the ranker for what was found; without it, the best there is.",
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
@click.option(
    "--phrases", is_flag=True, help="Find sentences by their phrases too, which are encoded first."
)
@click.option("--nearest", is_flag=True, help="Answer with the nearest phrase; no ranker judges.")
@click.option("--explain", is_flag=True, help="Show what each stage did, in sentences and time.")
@click.option("--no-cache", is_flag=True, help="Read everything, and remember nothing.")
@json_option
def ask(
    question: str,
    paths: tuple[str, ...],
    *,
    folder: str | None,
    url: str | None,
    encode: str | None,
    spec: str | None,
    top: int,
    retrieved: int,
    phrases: bool,
    nearest: bool,
    explain: bool,
    no_cache: bool,
    as_json: bool,
) -> None:
    """
    Answer a question from files and folders, from an index, or from a server you run.

    Reads text, markdown, html, pdf, docx, jsonl and csv; - is standard input. What was read is
    remembered in your cache folder, and a file is read again only when it has changed.

    \b
    askline ask 'Who wrote Emma?' notes/ letter.pdf
    askline ask 'Who wrote Emma?' --index DIR
    askline ask 'Who wrote Emma?' --retriever 'opensearch://localhost:9200/books?text=body'

    Exit codes: 0 answered, 2 no text to look in, 3 answered although some files could not be read,
    4 no answer found.
    """
    given = sum(map(bool, (paths, folder, url)))
    if given > 1 or (not given and sys.stdin.isatty()):
        raise click.UsageError("Give either PATHs to read, --index DIR or --retriever URL.")
    if encode and url is None:
        raise click.UsageError("--encode goes with --retriever.")
    if url is not None and (phrases or nearest):
        raise click.UsageError("--phrases and --nearest go with PATHs or --index.")
    if nearest and spec:
        raise click.UsageError("--nearest and --ranker do not go together.")
    report = None
    if url is not None:
        answers = _asked_of_server(question, url, encode, spec, top, max(top, retrieved))
    else:
        ranker = None if nearest else _ranker(spec)  # before reading: a wrong name is said at once
        corpus, report = _opened(paths or (() if folder else ("-",)), folder, ranker, not no_cache)
        with corpus:
            if phrases or nearest:
                with progress_count("Documents encoded") as step:
                    corpus.encode_phrases(on_document=step)
            if nearest:
                answers = corpus.nearest(question, top_k=top)
            else:
                retrieved = max(top, retrieved)
                answers = corpus.ask(question, top_k=top, retrieved=retrieved, phrases=phrases)
    problems = report.problems if report else ()
    if report is not None and not answers.stages[0].entered:
        show_problems(problems)
        raise _nothing_in(paths)
    if as_json:
        click.echo(json.dumps(_record(answers, report), ensure_ascii=False))
    else:
        show_answers(answers, explain=explain)
    show_problems(problems)
    code = _NOTHING_FOUND if not answers.answered else SOME_FAILED if problems else 0
    click.get_current_context().exit(code)


def _asked_of_server(
    question: str, url: str, encode: str | None, spec: str | None, top: int, retrieved: int
) -> Answers:
    from ..corpus import answer, connect

    ranker = _ranker(spec)
    with closing(connect(url, encode=_function(encode) if encode else None)) as server:
        return answer(question, server, ranker, top_k=top, retrieved=retrieved)


def _function(name: str) -> Callable[[str], Sequence[float]]:
    """`package.module:function`, looked for in the current folder too."""
    module, _, function = name.partition(":")
    sys.path.insert(0, "")
    try:
        found: Callable[[str], Sequence[float]] = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.UsageError(
            f"--encode must be MODULE:FUNCTION, got {name!r}: {error}."
        ) from error
    finally:
        sys.path.pop(0)
    return found


def _ranker(spec: str | None) -> Ranker:
    from ..rankers.registry import DEFAULT_SPEC
    from ..rankers.spec import load

    return load(spec or DEFAULT_SPEC)


def _opened(
    paths: Sequence[str], folder: str | None, ranker: Ranker | None, may_cache: bool
) -> tuple[Corpus, AddReport | None]:
    """The corpus to ask, and what became of the files that went into it."""
    from ..corpus import Corpus
    from ..corpus.cache import cached_index_folder
    from ..errors import CorpusError

    if folder is not None:
        return Corpus.open(folder, ranker=ranker, must_exist=True), None
    with progress_count("Files") as step:
        if may_cache and "-" not in paths:
            try:
                return _filled(Corpus.open(cached_index_folder(paths), ranker=ranker), paths, step)
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


def _nothing_in(paths: Sequence[str]) -> InputError:
    from ..errors import InputError

    names = ", ".join(path for path in paths if path != "-") or "standard input"
    return InputError(
        f"No text was found in {names}. Name files, or folders with txt, md, html, pdf, docx, csv "
        "or jsonl files in them."
    )


def _record(answers: Answers, report: AddReport | None) -> dict[str, object]:
    """Answers as JSON; `start` and `end` slice the decoded file."""
    problems = report.problems if report else ()
    return asdict(answers) | {
        "answered": answers.answered,
        "problems": [asdict(problem) for problem in problems],
    }
