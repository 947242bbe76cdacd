"""
`askline ask`: answer questions from files, folders, standard input, an index or a server.

`askline demo`: answer a question from the pages that are installed with askline.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import takewhile
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..errors import InputError
from .answer_output import print_answers, print_total
from .ask_session import AskOptions, AskSession, Source
from .config import Config, config_path
from .options import (
    NOT_NEGATIVE_INTEGER,
    POSITIVE_INTEGER,
    PROBABILITY,
    ReadingOptions,
    allow_partial_option,
    json_option,
    ranker_option,
    reading_options,
)
from .output import (
    EXIT_NO_ANSWER,
    EXIT_SOME_UNREADABLE,
    describe_not_read,
    print_missing_shards,
    print_problems,
    print_wrapped,
)
from .prompt import Prompt
from .terminal import color_option, uses_color

if TYPE_CHECKING:
    from ..corpus import Answers
    from ..rankers.base import Ranker

__all__ = [
    "ask",
    "demo",
]


_MOST_PROBLEMS = 3  # shown beside an answer; --json has all


@click.command(short_help="Answer questions from files, an index or a server.")
@click.argument(
    "arguments",
    metavar="[QUESTION] [PATH]...",
    nargs=-1,
    type=click.Path(allow_dash=True),  # for completion in the shell
)
@click.option(
    "--index",
    "folder",
    metavar="DIR",
    type=click.Path(),
    envvar="ASKLINE_INDEX",
    show_envvar=True,
    help="Search this index, made by `askline index`: a folder, or postgresql://HOST/DATABASE.",
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
    "--top",
    type=POSITIVE_INTEGER,
    default=3,
    show_default=True,
    envvar="ASKLINE_TOP",
    show_envvar=True,
    help="Show the N best answers.",
)
@click.option(
    "--context",
    type=NOT_NEGATIVE_INTEGER,
    default=1,
    show_default=True,
    help="Show N sentences before and after the best answer.",
)
@click.option(
    "--threshold",
    type=PROBABILITY,
    envvar="ASKLINE_THRESHOLD",
    show_envvar=True,
    help="Probability below which a sentence is not an answer.  [default: the ranker's]",
)
@click.option("--always", is_flag=True, help="Show the best sentence as an answer in any case.")
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
@allow_partial_option
@click.option("--no-cache", is_flag=True, help="Neither use nor write the cache.")
@reading_options
@color_option
@json_option
@click.pass_context
def ask(
    ctx: click.Context,
    arguments: tuple[str, ...],
    *,
    folder: str | None,
    url: str | None,
    encode: str | None,
    spec: str | None,
    top: int,
    context: int,
    threshold: float | None,
    always: bool,
    retrieved: int,
    phrases: bool,
    nearest: bool,
    explain: bool,
    allow_partial: bool,
    no_cache: bool,
    reading: ReadingOptions,
    as_json: bool,
) -> None:
    """
    Answer questions from files and folders, an index, or a server.

    Reads txt, md, rst, adoc, org, tex, html, pdf, docx, odt, rtf, epub, pptx, xlsx, ods, ipynb,
    csv, jsonl, json, yaml, toml, xml, eml, mbox, srt, vtt and log files, manual pages, the comments
    of source code, and other files that are text. PATH - is standard input. The text is kept in
    your cache folder, and a file is read again only after it has changed.

    Without QUESTION, that is, if the first argument is an existing file or folder or there is none,
    it asks for questions on a terminal, and else reads one question per line from standard input.

    The word before a probability means: sure, at least 90%; likely, at least 70%; perhaps, at least
    the threshold; doubtful, less.

    \b
    Examples:
      askline ask 'Who wrote Emma?' notes/ letter.pdf
      askline ask notes/
      askline ask 'Who wrote Emma?' --index DIR
      askline ask 'Who wrote Emma?' \\
          --retriever 'opensearch://localhost:9200/books?text=body'

    Exit codes: 0 answered, 2 no text to search, 3 answered but some files could not be read, 4 no
    answer found.
    """
    started = time.perf_counter()
    question, paths = _split_arguments(arguments)
    if ctx.get_parameter_source("folder") is not ParameterSource.COMMANDLINE and (
        paths or url or (question is not None and _stdin_has_text())
    ):
        folder = None  # a default gives way to a source that is named
    if sum(map(bool, (paths, folder, url))) > 1:
        raise click.UsageError("Give either PATHs to read, --index DIR or --retriever URL.")
    if not (paths or folder or url):
        if question is not None and _looks_like_path(question):
            raise InputError(f"No file or folder {question}. Check the path.")
        if question is None or sys.stdin.isatty():
            raise click.UsageError(
                "Give PATHs to read, --index DIR or --retriever URL, or set `index` in "
                f"{_config_name()}."
            )
        paths = ("-",)
    if question is None and "-" in paths:
        raise click.UsageError(
            "Without QUESTION, the questions are read from standard input: PATH must not be -."
        )
    _check_paths(question, paths)
    if encode and url is None:
        raise click.UsageError("--encode needs --retriever URL.")
    if url is not None and (phrases or nearest):
        raise click.UsageError("--phrases and --nearest cannot be used with --retriever.")
    if nearest and spec:
        raise click.UsageError("--nearest uses no ranker: leave out --ranker.")
    # Load the ranker before reading any file, so that a wrong name fails at once.
    ranker = None if nearest else _load_ranker(spec)
    if ranker is not None:
        ranker.preload(passages=url is None, keep_graphs=not no_cache)
    has_probabilities = ranker is not None and ranker.threshold is not None
    if ctx.get_parameter_source("threshold") is not ParameterSource.COMMANDLINE:
        threshold = threshold if has_probabilities else None
    options = AskOptions(
        top=top,
        retrieved=retrieved,
        context=context,
        threshold=0.0 if always else threshold,
        phrases=phrases,
        nearest=nearest,
    )
    link = ctx.find_object(Config) or Config()
    source = Source(paths, folder, url, encode, allow_partial)
    with AskSession(source, ranker, reading, use_cache=not no_cache) as session:
        if question is None and sys.stdin.isatty() and not as_json:
            print_problems(session.problems, most=_MOST_PROBLEMS)
            _print_not_read(session)
            print_missing_shards(session.missing_shards)
            Prompt(session, options, explain=explain, link=link.link).run()
            return
        questions = _question_lines() if question is None else iter([question])
        all_answered = True
        for each in questions:
            loading_seconds = time.perf_counter() - started
            answers = session.ask(each, options)
            if not answers.stages[0].entered and paths:
                print_problems(session.problems)
                session.check_has_text(answers)
            all_answered = all_answered and answers.answered
            source_paths = session.source_paths(answers)
            if as_json:
                record = _as_record(answers, session, source_paths)
                click.echo(json.dumps(record, ensure_ascii=False))
                continue
            if question is None:
                click.secho(each, bold=True, color=uses_color())
            print_answers(
                answers,
                explain=explain,
                source_paths=source_paths,
                context=context,
                link=link.link,
            )
            if question is None:
                click.echo()
        print_problems(session.problems, most=_MOST_PROBLEMS)
        _print_not_read(session)
        print_missing_shards(session.missing_shards)
        if question is not None and not as_json:
            print_total(answers, loading_seconds=loading_seconds)
        if not all_answered:
            ctx.exit(EXIT_NO_ANSWER)
        if session.problems:
            ctx.exit(EXIT_SOME_UNREADABLE)


def _print_not_read(session: AskSession) -> None:
    if session.not_read:
        print_wrapped(f"Not read: {describe_not_read(session.not_read)}.")


def _split_arguments(arguments: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The question, or None if the first argument is a path, and the paths."""
    if not arguments:
        return None, ()
    first, *others = arguments
    if first == "-" or os.path.exists(first):
        return None, tuple(arguments)
    return first, tuple(others)


def _looks_like_path(question: str) -> bool:
    """Whether the only argument is a path that does not exist rather than a question."""
    from ..text.readers import file_kind

    is_word = len(question.split()) == 1 and not question.endswith("?")
    return is_word and (os.sep in question or "/" in question or file_kind(question) is not None)


def _check_paths(question: str | None, paths: Sequence[str]) -> None:
    """InputError if no path exists, or if missing paths look like a misplaced question."""
    missing = [path for path in paths if path != "-" and not os.path.lexists(path)]
    if not missing:
        return
    if question is None:
        asked = next((path for path in missing if len(path.split()) > 1), None)
        if asked is not None:
            others = shlex.join(path for path in paths if path != asked)
            raise InputError(f"The question comes first: askline ask {shlex.quote(asked)} {others}")
        return
    is_one_word = len(question.split()) == 1
    if is_one_word and len(missing) > 1 and paths[0] in missing:
        words = list(takewhile(missing.__contains__, paths))
        whole = shlex.join([" ".join([question, *words]), *paths[len(words) :]])
        raise InputError(
            f"No file or folder {missing[0]}. Put the question in quotation marks: "
            f"askline ask {whole}"
        )
    if len(missing) == len(paths):
        hint = " Put a question of several words in quotation marks." if is_one_word else ""
        what = "path" if len(missing) == 1 else "paths"
        raise InputError(f"No file or folder {', '.join(missing)}. Check the {what}.{hint}")


def _stdin_has_text() -> bool:
    """Whether standard input is a pipe or a file, and not a terminal or /dev/null."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # replaced by an object of Python, as in tests
        return not sys.stdin.isatty()
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _config_name() -> str:
    path, home = str(config_path()), os.path.join(os.path.expanduser("~"), "")
    return f"~/{path.removeprefix(home)}" if path.startswith(home) else path


def _question_lines() -> Iterator[str]:
    """The lines of standard input that are not blank."""
    getattr(sys.stdin, "reconfigure", lambda **_: None)(errors="replace")
    return (line.strip() for line in sys.stdin if line.strip())


def _load_ranker(spec: str | None) -> Ranker:
    from ..rankers.registry import DEFAULT_SPEC
    from ..rankers.spec import load

    return load(spec or DEFAULT_SPEC)


def _as_record(
    answers: Answers, session: AskSession, source_paths: Mapping[str, str]
) -> dict[str, object]:
    """The JSON output; `start` and `end` of an answer are offsets in the decoded file."""
    above = answers.above_threshold
    return asdict(answers) | {
        "answers": [
            asdict(each)
            | {"path": source_paths.get(each.document), "above_threshold": each in above}
            for each in answers
        ],
        "answered": answers.answered,
        "problems": [asdict(problem) for problem in session.problems],
        "not_read": [asdict(files) for files in session.not_read],
    }


_QUESTION = "How long is the Trans-Siberian railway?"
_TOP = 3


@click.command(short_help="Try askline on the pages that come with it.")
@click.argument("question", default=_QUESTION)
@ranker_option
@color_option
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

    started = time.perf_counter()
    with Corpus.in_memory(ranker=_load_ranker(spec)) as corpus:
        corpus.add_texts(dict(documents()))
        loading_seconds = time.perf_counter() - started
        answers = corpus.ask(question, top_k=_TOP, join=True)
    click.secho(question, bold=True, color=uses_color())
    print_answers(answers, explain=False)
    print_total(answers, loading_seconds=loading_seconds)
