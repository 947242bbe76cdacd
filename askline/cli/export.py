"""`askline export`: write a trained folder again, to run without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import require_extra
from .options import POSITIVE_INTEGER, complete_set, data_option, precision_option

if TYPE_CHECKING:
    from ..models.cascade_config import Precision
    from ..training.cascade.cascade_export import Format

__all__ = ["export"]


@click.command(short_help="Convert a trained model so that it runs without torch.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write.",
)
@precision_option("encoder layers")
@click.option(
    "--format",
    "to_format",
    type=click.Choice(["askline", "onnx"]),
    default="askline",
    show_default=True,
    help="An askline model folder, or a folder with an ONNX file of standard operators.",
)
@click.option(
    "--last-depth",
    type=POSITIVE_INTEGER,
    help="Leave out the classifiers after layer N. The layers are kept, for a reader.",
)
@click.option(
    "--on",
    default="squadshifts:dev",
    show_default=True,
    metavar="SET",
    shell_complete=complete_set,
    help="Question set that int8 scales are fitted to and that the scores are checked on.",
)
@click.option(
    "--pairs",
    type=POSITIVE_INTEGER,
    default=100,
    show_default=True,
    help="Number of (question, candidate) pairs of --on to use.",
)
@data_option
def export(
    folder: Path,
    *,
    out: Path,
    precision: Precision,
    to_format: Format,
    last_depth: int | None,
    on: str,
    pairs: int,
    root: Path | None,
) -> None:
    """
    Export a trained BERT cascade or cross-encoder, so that it runs without torch.

    DIR is a folder that `askline train cascade` or `askline train transformer` wrote. The exported
    scores are compared with those of torch, and an export that differs is refused.
    `askline train cascade` exports by itself; this command writes another format or precision.

    \b
    Example:
      askline export DIR --out DIR --precision float32
      askline export DIR --out ONNX --format onnx --precision float32
    """
    require_extra("torch", purpose="Exporting", extra="train")
    from .. import data
    from ..training.cascade.cascade_export import export_cascade
    from ..training.post_training_quantization import sample_pairs

    made = export_cascade(
        folder,
        out,
        precision=precision,
        to_format=to_format,
        last_depth=last_depth,
        pairs=sample_pairs(data.load_dataset(on, root=root), pairs),
    )
    click.echo(made.summary, err=True)
