"""`askline train reader`: a reader of its own for a cascade that stays as it is."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from .options import complete_set, data_option, device_option, out_option, require_torch
from .progress import step_logger

__all__ = ["reader"]


@click.command()
@click.option(
    "--model",
    type=click.Path(path_type=Path, file_okay=False),
    help="The cascade's folder, as `askline export` writes it.  [default: the one that ships]",
)
@click.option(
    "--on",
    "sets",
    multiple=True,
    required=True,
    metavar="SET",
    shell_complete=complete_set,
    help="Paragraphs in SQuAD's format, as NAME:SPLIT; may be given again.",
)
@out_option
@data_option
@click.option(
    "--rank", type=click.IntRange(min=1), default=22, show_default=True, help="Of the differences."
)
@click.option(
    "--from-layer",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The first layer that the reader has its own way.",
)
@click.option(
    "--begin",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Another cascade's folder, whose reader is where this one starts.",
)
@click.option(
    "--teacher",
    "teachers",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    multiple=True,
    help="A folder that this command wrote, whose reader is learnt from too; may be given again.",
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Times that all questions are learnt from.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="Questions for each step.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    default=1e-3,
    show_default=True,
    help="The highest learning rate.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="For each seed: the rate falls to its lowest by then.",
)
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(min=0),
    multiple=True,
    default=(0,),
    show_default=True,
    help="May be given again: then the mean of the differences is written.",
)
@device_option
def reader(model: Path | None, sets: tuple[str, ...], out: Path, **options: Any) -> None:
    """
    Train a reader with layers of its own, and write the cascade's folder with it.

    The cascade's weights, and so its rankings, stay as they are, byte for byte.

    \b
    askline train reader --on squadshifts:train --on squad1:train --device cuda --out DIR
    """
    require_torch(options["device"])
    from ..models.cascade_config import Adapter
    from ..rankers.cascade import shipped_folder
    from ..training.reader.reader_training import ReaderMaking, ReaderRecipe, make_reader

    minutes = options["minutes"]
    recipe = ReaderRecipe(
        epochs=options["epochs"],
        rate=options["rate"],
        batch=options["batch"],
        seconds=60 * minutes if minutes else math.inf,
    )
    adapter = Adapter(options["from_layer"] - 1, options["rank"])
    said = step_logger()
    make_reader(
        model or shipped_folder(),
        ReaderMaking(adapter, recipe, tuple(options["seeds"])),
        sets,
        out,
        begin=options["begin"],
        teachers=options["teachers"],
        root=options["root"],
        device=options["device"],
        command=shlex.join(["askline", *sys.argv[1:]]),
        on_step=lambda seed, done, of, loss: said(f"seed {seed}", done, of, f"loss {loss:.3f}"),
    )
    click.echo(f"Trained: {out}", err=True)
