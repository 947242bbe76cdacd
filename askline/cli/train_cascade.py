"""`askline train cascade`, and for a finished cascade `train reader` and `train context`."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from .options import (
    POSITIVE_INTEGER,
    adapt_option,
    complete_set,
    data_option,
    dev_option,
    device_option,
    out_option,
    precision_option,
    require_torch,
    transfer_option,
)
from .train_common import (
    batch_size_option,
    checkpoint_beside,
    command_line,
    epochs_option,
    learning_rate_option,
    minutes_option,
    print_progress,
    seeds_option,
    share_option,
)

if TYPE_CHECKING:
    from ..models.cascade_config import Head, Precision
    from ..training.cascade.cascade_network import CascadeShape
    from ..training.cascade.cascade_workflow import CascadeData, CascadePlan

__all__ = ["cascade", "context", "reader"]

_CALIBRATION_PAIRS = 100


@click.command(short_help="Train a cascade.")
@click.option(
    "--init",
    required=True,
    metavar="DIR",
    help="Encoder, cross-encoder or cascade to start from: a folder or a hub name.",
)
@transfer_option
@adapt_option
@dev_option
@out_option
@data_option
@click.option(
    "--depths",
    metavar="N,N,…",
    default="2,3,4,6,8,10,12",
    show_default=True,
    help="Layers after which there is a classifier.",
)
@click.option(
    "--head",
    type=click.Choice(["first", "mean", "mixed"]),
    default="mean",
    show_default=True,
    help="What a classifier reads: the first token, the mean of all tokens, or the mean and only "
    "at the last depth the first token.",
)
@click.option(
    "--reader/--no-reader", default=True, show_default=True, help="Train a reader of answer spans."
)
@click.option(
    "--loss",
    type=click.Choice(["joint", "drawn"]),
    default="joint",
    show_default=True,
    help="Train all classifiers in each step, or one drawn at random, as in the paper.",
)
@click.option(
    "--teacher", metavar="DIR", help="Cross-encoder whose scores are learned during the transfer."
)
@click.option(
    "--anchored/--no-anchored",
    default=False,
    show_default=True,
    help="Hold full depth to --init, which must be a cross-encoder and the --teacher as well.",
)
@click.option(
    "--negatives",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of mined negatives, created if it does not exist.  [default: beside --out]",
)
@click.option(
    "--transfer-epochs", type=POSITIVE_INTEGER, help="Passes over --transfer.  [default: 2]"
)
@minutes_option("Time limit of the transfer for each seed; the learning rate ends by then.")
@click.option("--adapt-epochs", type=POSITIVE_INTEGER, help="Passes over --adapt.  [default: 3]")
@share_option
@seeds_option
@click.option(
    "--export/--no-export",
    "exports",
    default=True,
    show_default=True,
    help="Export the trained cascade, so that it runs without torch.",
)
@precision_option("exported encoder layers")
@click.option(
    "--calibrate-on",
    metavar="SET",
    shell_complete=complete_set,
    help="Question set that int8 scales are fitted to and that the export is checked on.  "
    "[default: --dev, else --adapt, else --transfer]",
)
@device_option
def cascade(
    init: str,
    *,
    transfer: tuple[str, ...],
    adapt: str | None,
    dev: str | None,
    out: Path,
    root: Path | None,
    depths: str,
    head: Head,
    reader: bool,
    loss: Literal["joint", "drawn"],
    teacher: str | None,
    anchored: bool,
    negatives: Path | None,
    transfer_epochs: int | None,
    minutes: float | None,
    adapt_epochs: int | None,
    share: float,
    seeds: tuple[int, ...],
    exports: bool,
    precision: Precision,
    calibrate_on: str | None,
    device: str,
) -> None:
    """
    Train a cascade: transfer from large sets, then adapt to one. Then export it.

    The result is a model folder that `cascade('DIR')` runs without torch. The float weights are
    kept in DIR/torch, for `--init` and for `askline export`. Measures on the dev set are printed
    for every depth. Run the same command again to resume an interrupted training after its last
    complete epoch.

    \b
    Example:
      askline train cascade --init DIR --transfer squadshifts:train \\
          --dev wikiqa:dev --out DIR
    """
    require_torch(device)
    from ..training.cascade.cascade_network import (
        TORCH_FOLDER,
        CascadeShape,
        parse_depths,
    )
    from ..training.cascade.cascade_workflow import (
        CascadeData,
        build_cascade,
        check_exportable,
        remove_checkpoints,
        save_trained_cascade,
    )

    shape = CascadeShape(parse_depths(depths), head, reader)
    plan = _cascade_plan(shape, loss, transfer_epochs, adapt_epochs, minutes)
    plan = replace(plan, seeds=seeds, share=share, anchored=anchored)
    mined = negatives or out.with_name(f"{out.name}.negatives.npz")
    sets = CascadeData(transfer, adapt, dev, root, mined)
    if exports:
        check_exportable(init)
    checkpoint = checkpoint_beside(out)
    trained = build_cascade(
        init,
        plan,
        sets,
        teacher=teacher,
        device=device,
        checkpoint=checkpoint,
        progress=print_progress(),
    )
    save_trained_cascade(
        trained,
        out / TORCH_FOLDER,
        plan,
        sets,
        start=Path(init).name,
        teacher=Path(teacher).name if teacher else "",
        command=command_line(),
    )
    remove_checkpoints(checkpoint, plan)
    if not exports:
        click.echo(f"Trained: {out / TORCH_FOLDER}", err=True)
        return
    calibration_set = calibrate_on or dev or adapt or transfer[0]
    _export(out, precision, calibration_set, root)
    _print_next_steps(out, sets)


def _cascade_plan(
    shape: CascadeShape,
    loss: Literal["joint", "drawn"],
    transfer_epochs: int | None,
    adapt_epochs: int | None,
    minutes: float | None,
) -> CascadePlan:
    from ..training.cascade.cascade_training import ADAPT, TRANSFER
    from ..training.cascade.cascade_workflow import CascadePlan

    return CascadePlan(
        shape,
        replace(
            TRANSFER,
            epochs=transfer_epochs or TRANSFER.epochs,
            objective=replace(TRANSFER.objective, kind=loss),
            max_seconds=60 * minutes if minutes else math.inf,
        ),
        replace(
            ADAPT,
            epochs=adapt_epochs or ADAPT.epochs,
            objective=replace(ADAPT.objective, kind=loss),
        ),
    )


def _export(out: Path, precision: Precision, calibration_set: str, root: Path | None) -> None:
    """Write the model folder from the torch weights that are inside of it."""
    from .. import data
    from ..training.cascade.cascade_export import export_cascade
    from ..training.post_training_quantization import sample_pairs

    pairs = sample_pairs(data.load_dataset(calibration_set, root=root), _CALIBRATION_PAIRS)
    made = export_cascade(out, out, precision=precision, pairs=pairs)
    click.echo(f"Exported {made.summary}", err=True)


def _print_next_steps(out: Path, sets: CascadeData) -> None:
    folder, root = str(out), [] if sets.root is None else ["--data", str(sets.root)]
    labeled = sets.dev or sets.adapt or sets.transfer[0]
    tune = ["askline", "tune", "cascade", folder, "--on", labeled, *root]
    lines = [
        f"Trained. Use it as: cascade({folder!r})",
        "Optional next steps:",
        f"  {shlex.join(tune)}",
        "    chooses how many candidates are kept at each depth, and calibrates the scores",
    ]
    if sets.transfer:
        on = [part for name in sets.transfer for part in ("--on", name)]
        train = ["askline", "train", "reader", "--model", folder, *on, *root]
        lines += [
            f"  {shlex.join([*train, '--out', f'{folder}-reader'])}",
            "    trains a more accurate reader of answer spans; rankings do not change",
        ]
    click.echo("\n".join(lines), err=True)


_model_option = click.option(
    "--model",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the cascade, as `askline train cascade` writes it.  "
    "[default: the cascade that ships with askline]",
)


@click.command(short_help="Train a reader of answer spans for a cascade.")
@_model_option
@click.option(
    "--on",
    "sets",
    multiple=True,
    required=True,
    metavar="SET",
    shell_complete=complete_set,
    help="Paragraphs in SQuAD format to train on: NAME:SPLIT. Repeatable.",
)
@out_option
@data_option
@click.option(
    "--rank",
    type=POSITIVE_INTEGER,
    default=22,
    show_default=True,
    help="Rank of the matrices that are added to the weights.",
)
@click.option(
    "--from-layer",
    type=POSITIVE_INTEGER,
    default=1,
    show_default=True,
    help="First layer with weights of its own for the reader.",
)
@click.option(
    "--init",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of another cascade whose reader is the start.",
)
@click.option(
    "--teacher",
    "teachers",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    multiple=True,
    help="Folder that this command wrote, whose reader is learned from as well. Repeatable.",
)
@epochs_option(3)
@batch_size_option(32, "Questions")
@learning_rate_option(1e-3)
@minutes_option("Time limit for each seed; the learning rate ends by then.")
@seeds_option
@device_option
def reader(
    model: Path | None,
    *,
    sets: tuple[str, ...],
    out: Path,
    root: Path | None,
    rank: int,
    from_layer: int,
    init: Path | None,
    teachers: tuple[Path, ...],
    epochs: int,
    batch_size: int,
    learning_rate: float,
    minutes: float | None,
    seeds: tuple[int, ...],
    device: str,
) -> None:
    """
    Train a reader for a cascade, and write the folder of the cascade with the reader.

    The weights of the cascade, and therefore its rankings, do not change. Run the same command
    again to resume an interrupted training after its last complete epoch.

    \b
    Example:
      askline train reader --on squadshifts:train --on squad1:train \\
          --device cuda --out DIR
    """
    require_torch(device)
    from ..models.cascade_config import Adapter
    from ..rankers.cascade import shipped_folder
    from ..training.cascade.reader_training import (
        ReaderPlan,
        ReaderRecipe,
        build_reader,
        seed_checkpoint,
    )

    recipe = ReaderRecipe(
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        max_seconds=60 * minutes if minutes else math.inf,
    )
    checkpoint = checkpoint_beside(out)
    build_reader(
        model or shipped_folder(),
        ReaderPlan(Adapter(from_layer - 1, rank), recipe, seeds),
        sets,
        out,
        init=init,
        teachers=teachers,
        root=root,
        device=device,
        command=command_line(),
        checkpoint=checkpoint,
        progress=print_progress(),
    )
    for seed in seeds:
        seed_checkpoint(checkpoint, seed).unlink(missing_ok=True)
    click.echo(f"Trained. Use it as: cascade({str(out)!r})", err=True)


@click.command(short_help="Train a cascade to read passages in context.")
@_model_option
@click.option(
    "--on",
    "sets",
    multiple=True,
    metavar="SET",
    shell_complete=complete_set,
    help="Paragraphs in SQuAD format, or a set of questions, to train on: NAME:SPLIT. Repeatable.",
)
@click.option(
    "--passages",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="JSON lines with sentences and questions to train on. Repeatable.",
)
@out_option
@data_option
@click.option(
    "--rank",
    type=POSITIVE_INTEGER,
    default=48,
    show_default=True,
    help="Rank of the matrices that are added to the weights.",
)
@click.option(
    "--depths",
    default="2,4,6,8,10,12",
    show_default=True,
    metavar="N,N",
    help="Layers after which every sentence gets a score.",
)
@click.option(
    "--near",
    type=POSITIVE_INTEGER,
    default=2,
    show_default=True,
    help="Passages without an answer per question that share words with it.",
)
@click.option(
    "--nearest",
    type=click.IntRange(1, 24),
    default=24,
    show_default=True,
    metavar="N",
    help="Draw these passages from the N that share most words.",
)
@epochs_option(3)
@batch_size_option(64, "Questions")
@learning_rate_option(1e-3)
@minutes_option("Time limit for each seed; the learning rate ends by then.")
@seeds_option
@device_option
def context(
    model: Path | None,
    *,
    sets: tuple[str, ...],
    files: tuple[str, ...],
    out: Path,
    root: Path | None,
    rank: int,
    depths: str,
    near: int,
    nearest: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    minutes: float | None,
    seeds: tuple[int, ...],
    device: str,
) -> None:
    """
    Train a cascade to read the sentences of a passage together, and its reader with it.

    The ranking of independent candidates does not change. Run the same command again to resume an
    interrupted training after its last complete epoch.

    \b
    Example:
      askline train context --on squadshifts:train --on squad1:train \\
          --passages faq.jsonl --device cuda --out DIR
    """
    require_torch(device)
    from ..models.cascade_config import Adapter
    from ..rankers.cascade import shipped_folder
    from ..training.cascade.cascade_network import parse_depths
    from ..training.cascade.context_training import ContextRecipe
    from ..training.cascade.context_workflow import ContextData, ContextPlan, build_context
    from ..training.cascade.reader_training import seed_checkpoint

    recipe = ContextRecipe(
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        near=near,
        nearest=nearest,
        max_seconds=60 * minutes if minutes else math.inf,
    )
    checkpoint = checkpoint_beside(out)
    build_context(
        model or shipped_folder(),
        ContextPlan(Adapter(0, rank), parse_depths(depths), recipe, seeds),
        ContextData(sets, files, root),
        out,
        device=device,
        command=command_line(),
        checkpoint=checkpoint,
        progress=print_progress(),
    )
    for seed in seeds:
        seed_checkpoint(checkpoint, seed).unlink(missing_ok=True)
    click.echo(f"Trained. Use it as: cascade({str(out)!r})", err=True)
