"""What the training commands share: options, progress output and the command line for cards."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import POSITIVE_INTEGER, POSITIVE_NUMBER, Function
from .progress import step_logger

if TYPE_CHECKING:
    from ..training.checkpoint import Epoch
    from ..training.loop import TrainingProgress, TrainingStep

__all__ = [
    "batch_size_option",
    "checkpoint_beside",
    "command_line",
    "epochs_option",
    "learning_rate_option",
    "minutes_option",
    "print_epoch",
    "print_progress",
    "seeds_option",
    "share_option",
]


def epochs_option(default: int) -> Callable[[Function], Function]:
    """`--epochs`."""
    return click.option(
        "--epochs",
        type=POSITIVE_INTEGER,
        default=default,
        show_default=True,
        help="Passes over the training set.",
    )


def learning_rate_option(default: float | None) -> Callable[[Function], Function]:
    """`--learning-rate`; None chooses by network."""
    text = "Peak of the learning rate." + ("  [default: by network]" if default is None else "")
    return click.option(
        "--learning-rate",
        type=POSITIVE_NUMBER,
        default=default,
        show_default=default is not None,
        help=text,
    )


def batch_size_option(default: int | None, unit: str) -> Callable[[Function], Function]:
    """`--batch-size`; None chooses by network."""
    text = f"{unit} per step." + ("  [default: by network]" if default is None else "")
    return click.option(
        "--batch-size",
        type=POSITIVE_INTEGER,
        default=default,
        show_default=default is not None,
        help=text,
    )


def minutes_option(help_text: str) -> Callable[[Function], Function]:
    """`--minutes`."""
    return click.option("--minutes", type=POSITIVE_NUMBER, help=help_text)


share_option = click.option(
    "--share",
    metavar="X",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="How far to go from the initial weights (0) to the trained weights (1).",
)

seeds_option = click.option(
    "--seed",
    "seeds",
    metavar="N",
    type=click.IntRange(min=0),
    multiple=True,
    default=(0,),
    show_default=True,
    help="Random seed. Repeatable: the result is the mean of the trained weights.",
)


def checkpoint_beside(out: Path, suffix: str = "") -> Path:
    """The checkpoint of a training, beside --out, in a folder that is created if it is missing."""
    out.parent.mkdir(parents=True, exist_ok=True)
    return out.with_name(f"{out.name}.checkpoint{suffix}")


def command_line() -> str:
    """The command that is running, for the model card."""
    return shlex.join(["askline", *sys.argv[1:]])


def print_epoch(epoch: Epoch, name: str = "", *, err: bool = False) -> None:
    """One line with the loss and the dev measures."""
    measured = "  ".join(f"{measure} {value:.2f}" for measure, value in epoch.dev.items())
    line = f"{name}  epoch {epoch.number}  loss {epoch.loss:.4f}  {measured}"
    click.echo(line.strip(), err=err)


def print_progress(*, epochs_to_stderr: bool = False) -> TrainingProgress:
    """Epochs to stdout, and to stderr notes and one step every twenty seconds."""
    from ..training.loop import TrainingProgress

    log = step_logger()

    def on_epoch(name: str, epoch: Epoch) -> None:
        print_epoch(epoch, name, err=epochs_to_stderr)

    def on_step(name: str, step: TrainingStep) -> None:
        log(name, step.done, step.total)

    return TrainingProgress(on_epoch, on_step, lambda note: click.echo(note, err=True))
