"""
`askline ask`: answer a question from files, folders, standard input, an index or a server.

`askline demo`: answer a question from the pages that are installed with askline.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING

import click

from ..errors import CorpusError, InputError
from .answer_output import print_answers
from .options import POSITIVE_INTEGER, json_option, ranker_option, reading_options
from .output import EXIT_NO_ANSWER, EXIT_SOME_UNREADABLE, print_problems, relative_path
from .progress import progress_count

if TYPE_CHECKING:
    from ..corpus import AddReport, Answers, Corpus
    from ..errors import Problem
    from ..rankers.base import Ranker

__all__ = [
    "ask",
    "demo",
]


@click.command(short_help="Answer a question from files, an index or a server.")
@click.argument("question")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "--index",
    "folder",
    metavar="DIR",
    type=click.Path(),
    help="Search this index, made by `askline index`.",
)
@click.option(
    "--retriever",
    "url",
    metavar="URL",
    help="Search a server: opensearch://HOST/INDEX, elasticsearch://HOST/INDEX or "
    "postgresql://HOST/DATABASE?table=TABLE.",
)
@click.option(
    "--encode",
    metavar="MODULE:FUNCTION",
    help="Python function that returns the embedding of a question. Needed when the --retriever "
    "URL has embedding=.",
)
@ranker_option
@click.option(
    "--top", type=POSITIVE_INTEGER, default=3, show_default=True, help="Show the N best answers."
)
@click.option(
    "--retrieve",
    "retrieved",
    type=POSITIVE_INTEGER,
    default=100,
    show_default=True,
    help="Retrieve N sentences for the ranker.",
)
@click.option(
    "--phrases",
    is_flag=True,
    help="Also retrieve sentences by their phrases. Encodes the phrases first where needed.",
)
@click.option("--nearest", is_flag=True, help="Answer with the nearest phrases and use no ranker.")
@click.option("--explain", is_flag=True, help="Show sentences and milliseconds per stage.")
@click.option("--no-cache", is_flag=True, help="Neither use nor write the cache.")
@reading_options
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
    follow_links: bool,
    read_seconds: float,
    read_megabytes: int,
    as_json: bool,
) -> None:
    """
    Answer a question from files and folders, an index, or a server.

    Reads txt, md, rst, adoc, org, tex, html, pdf, docx, ipynb, csv, jsonl, eml, mbox, srt and vtt
    files and manual pages. PATH - is standard input. The text is kept in your cache folder, and a
    file is read again only after it has changed.

    The word before a probability means: sure, at least 90%; likely, at least 70%; perhaps, at least
    40%; doubtful, less.

    \b
    Examples:
      askline ask 'Who wrote Emma?' notes/ letter.pdf
      askline ask 'Who wrote Emma?' --index DIR
      askline ask 'Who wrote Emma?' \\
          --retriever 'opensearch://localhost:9200/books?text=body'

    Exit codes: 0 answered, 2 no text to search, 3 answered but some files could not be read, 4 no
    answer found.
    """
    if sum(map(bool, (paths, folder, url))) > 1 or (
        not (paths or folder or url) and sys.stdin.isatty()
    ):
        raise click.UsageError("Give either PATHs to read, --index DIR or --retriever URL.")
    if encode and url is None:
        raise click.UsageError("--encode needs --retriever URL.")
    if url is not None and (phrases or nearest):
        raise click.UsageError("--phrases and --nearest cannot be used with --retriever.")
    if nearest and spec:
        raise click.UsageError("--nearest uses no ranker: leave out --ranker.")
    retrieved = max(top, retrieved)
    problems: Sequence[Problem] = ()
    source_paths: dict[str, str] = {}
    if url is not None:
        answers = _ask_server(question, url, encode, spec, top, retrieved)
    else:
        # Load the ranker before reading any file, so that a wrong name fails at once.
        ranker = None if nearest else _load_ranker(spec)
        sources = paths or (() if folder else ("-",))

        def fill(corpus: Corpus) -> AddReport:
            """Make the corpus hold these paths and nothing else."""
            with progress_count("Files") as step:
                return corpus.add(
                    sources,
                    on_file=lambda _: step(),
                    only=True,
                    follow_links=follow_links,
                    read_seconds=read_seconds,
                    read_megabytes=read_megabytes,
                )

        corpus, report = _open_corpus(sources, folder, ranker, fill, use_cache=not no_cache)
        with corpus:
            if phrases or nearest:
                with progress_count("Documents encoded") as step:
                    corpus.encode_phrases(on_document=step)
            if nearest:
                answers = corpus.nearest(question, top_k=top)
            else:
                answers = corpus.ask(question, top_k=top, retrieved=retrieved, phrases=phrases)
            source_paths = _source_paths(corpus, answers)
        if report is not None:
            problems = report.problems
            if not answers.stages[0].entered:
                print_problems(problems)
                raise _no_text_error(paths)
    if as_json:
        record = _as_record(answers, problems, source_paths)
        click.echo(json.dumps(record, ensure_ascii=False))
    else:
        print_answers(answers, explain=explain, source_paths=source_paths)
    print_problems(problems)
    if not answers.answered:
        click.get_current_context().exit(EXIT_NO_ANSWER)
    if problems:
        click.get_current_context().exit(EXIT_SOME_UNREADABLE)


def _ask_server(
    question: str, url: str, encode: str | None, spec: str | None, top: int, retrieved: int
) -> Answers:
    from ..corpus import answer, connect

    ranker = _load_ranker(spec)
    function = _import_function(encode) if encode else None
    with closing(connect(url, encode=function)) as server:
        return answer(question, server, ranker, top_k=top, retrieved=retrieved)


def _import_function(name: str) -> Callable[[str], Sequence[float]]:
    """Import `package.module:function`; the current folder is searched too."""
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


def _load_ranker(spec: str | None) -> Ranker:
    from ..rankers.registry import DEFAULT_SPEC
    from ..rankers.spec import load

    return load(spec or DEFAULT_SPEC)


def _open_corpus(
    paths: Sequence[str],
    folder: str | None,
    ranker: Ranker | None,
    fill: Callable[[Corpus], AddReport],
    *,
    use_cache: bool,
) -> tuple[Corpus, AddReport | None]:
    """Open the index in `folder`, or read the paths into a corpus and report on the files."""
    from ..corpus import Corpus
    from ..corpus.cache import cached_index_folder

    if folder is not None:
        return Corpus.open(folder, ranker=ranker, must_exist=True), None
    if use_cache and "-" not in paths:
        try:
            return _filled(Corpus.open(cached_index_folder(paths), ranker=ranker), fill)
        except CorpusError as error:
            click.echo(f"The cache cannot be used: {error}", err=True)
    return _filled(Corpus.in_memory(ranker=ranker), fill)


def _filled(corpus: Corpus, fill: Callable[[Corpus], AddReport]) -> tuple[Corpus, AddReport]:
    try:
        return corpus, fill(corpus)
    except BaseException:
        corpus.close()
        raise


def _no_text_error(paths: Sequence[str]) -> InputError:
    names = ", ".join(path for path in paths if path != "-") or "standard input"
    return InputError(
        f"No text was found in {names}. Name files, or folders with txt, md, html, pdf, docx or "
        "other files that `askline ask --help` lists."
    )


def _source_paths(corpus: Corpus, answers: Answers) -> dict[str, str]:
    """The path of each document that is a file, relative to the current folder if it is in it."""
    paths = {each.document: corpus.source_path(each.document) for each in answers}
    return {name: relative_path(path) for name, path in paths.items() if path}


def _as_record(
    answers: Answers, problems: Sequence[Problem], source_paths: Mapping[str, str]
) -> dict[str, object]:
    """The JSON output; `start` and `end` of an answer are offsets in the decoded file."""
    return asdict(answers) | {
        "answers": [asdict(each) | {"path": source_paths.get(each.document)} for each in answers],
        "answered": answers.answered,
        "problems": [asdict(problem) for problem in problems],
    }


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
