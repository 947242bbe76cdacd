"""Options that several commands share, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

import click

from ..errors import InputError, require_extra

if TYPE_CHECKING:
    from ..types import QuestionSet

__all__ = [
    "adapt_option",
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
    "question_set_options",
    "require_torch",
    "seed_option",
    "transfer_option",
]

_Function = TypeVar("_Function", bound=Callable[..., object])

DEFAULT_MEASURES = "MAP,MRR,P@1,nDCG@10"

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")

deadline_option = click.option(
    "--deadline-ms",
    type=click.FloatRange(min=0, min_open=True),
    help="Take the best ranking that is ready so many milliseconds after each question.",
)

data_option = click.option(
    "--data",
    "root",
    type=click.Path(path_type=Path),
    envvar="ASKLINE_DATA",
    help="The folder that holds the datasets.  [env: ASKLINE_DATA]",
)

transfer_option = click.option(
    "--transfer",
    multiple=True,
    metavar="SET",
    shell_complete=lambda *given: complete_set(*given),
    help="Train on this first: NAME:SPLIT or a JSONL file; may be given again.",
)

adapt_option = click.option(
    "--adapt",
    metavar="SET",
    shell_complete=lambda *given: complete_set(*given),
    help="Then train on this.",
)

dev_option = click.option(
    "--dev",
    metavar="SET",
    shell_complete=lambda *given: complete_set(*given),
    help="Measure on this after each epoch.",
)

out_option = click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The model folder to write.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The same seed gives the same weights.",
)

device_option = click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="What to train on.",
)


def require_torch(name: str) -> ModuleType:
    """The torch package, once it is known to be there and to reach this device."""
    torch = require_extra("torch", purpose="Training", extra="train")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(
            "--device cuda needs a GPU that torch can use, and there is none. Use cpu."
        )
    return torch


def measures_option(function: _Function) -> _Function:
    """`--measures`."""
    return click.option(
        "--measures",
        default=DEFAULT_MEASURES,
        show_default=True,
        help="Comma-separated: MAP, MRR, P@k, nDCG@k, R@k, Success@k.",
    )(function)


def question_set_options(function: _Function) -> _Function:
    """`--on`, `--data`, `--filter`, `--pad-to`, `--pad-seed`: what `question_set` takes."""
    options = [
        click.option(
            "--on",
            required=True,
            metavar="SET",
            shell_complete=complete_set,
            help="NAME:SPLIT, as `askline data list` shows them, or the path of a JSONL file.",
        ),
        data_option,
        click.option(
            "--filter",
            "which",
            type=click.Choice(["all", "answerable", "both"]),
            default="answerable",
            show_default=True,
            help="Which questions count: all, those with an answer, those with both labels.",
        ),
        click.option(
            "--pad-to",
            type=click.IntRange(min=1),
            help="Add other questions' candidates until each question has this many.",
        ),
        click.option("--pad-seed", default=0, show_default=True, help="Seed of the added ones."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def load_question_set(
    on: str, root: Path | None, which: str, pad_to: int | None, pad_seed: int
) -> QuestionSet:
    """The labelled questions that the shared options describe."""
    from .. import data

    questions = data.load_dataset(on, root=root)
    if pad_to is not None:
        # Before the filter, so that the questions it leaves out still give their sentences.
        questions = data.pad(questions, to=pad_to, seed=pad_seed)
    return data.filter_questions(questions, which)


def complete_ranker(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Names of rankers for the shell, after whatever part of a spec is already there."""
    from ..rankers.registry import ranker_names

    cut = max(incomplete.rfind(mark) for mark in " (>") + 1
    done, begun = incomplete[:cut], incomplete[cut:]
    return [done + name for name in ranker_names() if name.startswith(begun)]


def complete_set(
    context: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Names of datasets for the shell."""
    from ..data import dataset_names

    return [name for name in dataset_names() if name.startswith(incomplete)]
