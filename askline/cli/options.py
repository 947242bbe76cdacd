"""Options, argument types and shell completion that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click
from click.types import FloatParamType, IntParamType

from ..errors import InputError, require_extra

if TYPE_CHECKING:
    from ..types import QuestionSet

__all__ = [
    "NOT_NEGATIVE_INTEGER",
    "POSITIVE_INTEGER",
    "POSITIVE_NUMBER",
    "PROBABILITY",
    "Function",
    "ReadingOptions",
    "adapt_option",
    "allow_partial_option",
    "complete_ranker",
    "complete_set",
    "data_option",
    "deadline_option",
    "dev_option",
    "device_option",
    "json_option",
    "load_question_set",
    "measures_option",
    "out_option",
    "precision_option",
    "question_set_options",
    "ranker_option",
    "reading_key",
    "reading_options",
    "require_torch",
    "seed_option",
    "transfer_option",
]

Function = TypeVar("Function", bound=Callable[..., object])

_DEFAULT_MEASURES = "MAP,MRR,P@1,nDCG@10"


class _PositiveInteger(IntParamType):
    """An integer of at least 1. Unlike `click.IntRange`, it adds no range to the help."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = super().convert(value, param, ctx)
        if number < 1:
            self.fail(f"must be a positive integer, got {value}.", param, ctx)
        return int(number)


class _NotNegativeInteger(IntParamType):
    """An integer of at least 0."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = super().convert(value, param, ctx)
        if number < 0:
            self.fail(f"must not be negative, got {value}.", param, ctx)
        return int(number)


class _Probability(FloatParamType):
    """A number from 0 to 1."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return "P"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if not 0 <= number <= 1:
            self.fail(f"must be a probability from 0 to 1, got {value}.", param, ctx)
        return float(number)


class _PositiveNumber(FloatParamType):
    """A number greater than 0."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return "X"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        if not number > 0:
            self.fail(f"must be greater than 0, got {value}.", param, ctx)
        return float(number)


NOT_NEGATIVE_INTEGER = _NotNegativeInteger()
POSITIVE_INTEGER = _PositiveInteger()
POSITIVE_NUMBER = _PositiveNumber()
PROBABILITY = _Probability()


def complete_ranker(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Complete the last ranker name of a spec such as `jaccard % 100 >> bm`."""
    from ..rankers.registry import ranker_names

    cut = max(incomplete.rfind(mark) for mark in " (>") + 1
    head, prefix = incomplete[:cut], incomplete[cut:]
    return [head + name for name in ranker_names() if name.startswith(prefix)]


def complete_set(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Complete the name of a question set."""
    from ..data import dataset_names

    return [name for name in dataset_names() if name.startswith(incomplete)]


allow_partial_option = click.option(
    "--allow-partial",
    is_flag=True,
    help="Search an index of shards also if some of them are missing or damaged.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

ranker_option = click.option(
    "--ranker",
    "spec",
    metavar="SPEC",
    shell_complete=complete_ranker,
    help="Ranker to use, as `askline rankers` lists them, or a pipeline such as "
    "'jaccard % 100 >> bm25'.  [default: cosinet % 100 >> cascade]",
)

deadline_option = click.option(
    "--deadline-ms",
    metavar="MS",
    type=POSITIVE_NUMBER,
    help="Stop ranking a question after MS milliseconds and use the best ranking so far.  "
    "[default: no limit]",
)

data_option = click.option(
    "--data",
    "root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    envvar="ASKLINE_DATA",
    show_envvar=True,
    help="Folder that holds the datasets.",
)

transfer_option = click.option(
    "--transfer",
    multiple=True,
    metavar="SET",
    shell_complete=complete_set,
    help="Question set to train on first: NAME:SPLIT or a JSONL file. Repeatable.",
)

adapt_option = click.option(
    "--adapt",
    metavar="SET",
    shell_complete=complete_set,
    help="Question set to train on after the transfer sets.",
)

dev_option = click.option(
    "--dev",
    metavar="SET",
    shell_complete=complete_set,
    help="Question set to evaluate on after each epoch.",
)

out_option = click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Model folder to write.",
)

seed_option = click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Random seed. The same seed gives the same weights.",
)

device_option = click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Device to train on.",
)

measures_option = click.option(
    "--measures",
    metavar="NAMES",
    default=_DEFAULT_MEASURES,
    show_default=True,
    help="Measures, separated by commas: MAP, MRR, P@k, nDCG@k, R@k, Success@k.",
)


def question_set_options(function: Function) -> Function:
    """Add `--on`, `--data`, `--filter`, `--pad-to`, `--pad-seed`, for `load_question_set`."""
    options = [
        click.option(
            "--on",
            required=True,
            metavar="SET",
            shell_complete=complete_set,
            help="Question set: NAME:SPLIT, as `askline data list` shows them, or a JSONL file.",
        ),
        data_option,
        click.option(
            "--filter",
            "which",
            type=click.Choice(["all", "answerable", "both"]),
            default="answerable",
            show_default=True,
            help="Questions to keep: all, those with a correct candidate, or those with both "
            "correct and incorrect candidates.",
        ),
        click.option(
            "--pad-to",
            type=POSITIVE_INTEGER,
            help="Add candidates of other questions until each question has N.",
        ),
        click.option(
            "--pad-seed",
            metavar="N",
            type=int,
            default=0,
            show_default=True,
            help="Random seed for --pad-to.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


class ReadingOptions(TypedDict):
    """The options of `reading_options`, as `Corpus.add` takes them."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    no_ignore: bool
    columns: tuple[str, ...]
    follow_links: bool
    read_seconds: float
    read_megabytes: int


def precision_option(what: str) -> Callable[[Function], Function]:
    """`--precision` of the weights that a command writes."""
    return click.option(
        "--precision",
        type=click.Choice(["int8", "float32"]),
        default="int8",
        show_default=True,
        help=f"Precision of the {what}.",
    )


def reading_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say which files are read; the command gets them as `reading`."""

    @wraps(function)
    def command(**values: Any) -> None:
        reading = {name: values.pop(name) for name in ReadingOptions.__annotations__}
        function(**values, reading=reading)

    options = [
        click.option(
            "--include",
            metavar="GLOB",
            multiple=True,
            help="Read only files that match GLOB, such as '*.md' or 'docs/**'. Repeatable.",
        ),
        click.option(
            "--exclude",
            metavar="GLOB",
            multiple=True,
            help="Leave out files and folders that match GLOB. Repeatable.",
        ),
        click.option(
            "--no-ignore",
            is_flag=True,
            help="Also read hidden files, installed packages, and what .gitignore files list.",
        ),
        click.option(
            "--column",
            "columns",
            metavar="NAME",
            multiple=True,
            help="Column with the text of csv, jsonl and spreadsheet files. Repeatable.  "
            "[default: text, content, body, sentence, passage or answer]",
        ),
        click.option(
            "--follow-links", is_flag=True, help="Also read links that lead out of the PATHs."
        ),
        click.option(
            "--read-seconds",
            metavar="SECONDS",
            type=POSITIVE_NUMBER,
            default=30.0,
            show_default=True,
            help="Stop reading a file after SECONDS and report it.",
        ),
        click.option(
            "--read-megabytes",
            type=POSITIVE_INTEGER,
            default=1024,
            show_default=True,
            help="Stop reading a file that needs more than N megabytes of memory and report it.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def reading_key(reading: ReadingOptions) -> tuple[str, ...]:
    """The options that change which files are read and how, as texts; empty for the defaults."""
    lists = ("include", "exclude", "columns")
    key = [f"{name}={value}" for name in lists for value in reading[name]]  # type: ignore[literal-required]
    return (*key, *(name for name in ("no_ignore",) if reading["no_ignore"]))


def load_question_set(
    on: str, *, root: Path | None, which: str, pad_to: int | None, pad_seed: int
) -> QuestionSet:
    """Load the question set that `question_set_options` describe."""
    from .. import data

    questions = data.load_dataset(on, root=root)
    if pad_to is not None:
        # Pad before filtering, so that filtered-out questions still provide candidates.
        questions = data.pad(questions, to=pad_to, seed=pad_seed)
    return data.filter_questions(questions, which)


def require_torch(device: str) -> ModuleType:
    """Import torch, or raise if it is not installed or cannot use this device."""
    torch = require_extra("torch", purpose="Training", extra="train")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda needs a GPU that torch can use, found none. Use cpu.")
    return torch
