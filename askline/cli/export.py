"""`askline export`: a trained folder as one that runs without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import require_extra
from .options import complete_set, data_option

__all__ = ["export"]


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write.",
)
@click.option(
    "--precision",
    type=click.Choice(["int8", "float32"]),
    default="int8",
    show_default=True,
    help="Of the encoder's layers.",
)
@click.option(
    "--format",
    "to_format",
    type=click.Choice(["askline", "onnx"]),
    default="askline",
    show_default=True,
    help="askline's own runtime folder, or an ONNX file of standard operators.",
)
@click.option(
    "--last-depth",
    type=click.IntRange(min=1),
    help="Leave out the classifiers behind that layer. The layers stay, for a reader.",
)
@click.option(
    "--on",
    default="squadshifts:dev",
    show_default=True,
    metavar="SET",
    shell_complete=complete_set,
    help="Questions and candidates to fit int8 to and to check the scores on.",
)
@click.option(
    "--pairs",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many of them.",
)
@data_option
def export(folder: Path, *, out: Path, on: str, pairs: int, root: Path | None, **how: Any) -> None:
    """
    Write a trained folder anew, to run without torch.

    FOLDER is what `askline train cascade` or `askline train transformer` wrote (BERT encoders). Its
    scores are compared with torch's, and an export that differs is refused.

    \b
    askline export runs/cascade --out models/cascade
    askline export runs/cascade --out models/onnx --format onnx --precision float32
    """
    require_extra("torch", purpose="Exporting", extra="train")
    from .. import data
    from ..training.cascade.cascade_export import export as write
    from ..training.post_training_quantization import some_pairs

    made = write(folder, out, pairs=some_pairs(data.load_dataset(on, root=root), pairs), **how)
    click.echo(
        f"{made.path}: {made.bytes / 1e6:.1f} MB. Against torch: correlation "
        f"{made.agreement.correlation:.5f}, largest difference {made.agreement.largest:.2g}.",
        err=True,
    )
