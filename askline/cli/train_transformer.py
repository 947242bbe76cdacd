"""`askline train transformer`: a cross-encoder, transferred and then adapted to a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import (
    POSITIVE_INTEGER,
    adapt_option,
    data_option,
    dev_option,
    device_option,
    out_option,
    require_torch,
    seed_option,
    transfer_option,
)
from .train_common import checkpoint_beside, command_line, print_epoch, share_option

if TYPE_CHECKING:
    from ..training.checkpoint import Epoch
    from ..training.training_log import StepRecord
    from ..training.transformer.pair_network import Head
    from ..training.transformer.transformer_training import TransferAndAdapt
    from ..types import QuestionSet

__all__ = ["transformer"]

_HEADS = ("plain", "first-token", "mean")
_LOSSES = ("point", "list", "pair")


@click.command(short_help="Train a cross-encoder.")
@click.option(
    "--init", required=True, metavar="DIR", help="Encoder to start from: a folder or a hub name."
)
@transfer_option
@adapt_option
@dev_option
@out_option
@data_option
@click.option(
    "--head",
    type=click.Choice(_HEADS),
    default="plain",
    show_default=True,
    help="Layers that make a score from the encoding: the encoder family's own classifier, the "
    "first token with a hidden layer of 256, or the mean of all tokens with three layers.",
)
@click.option(
    "--loss",
    type=click.Choice(_LOSSES),
    help="Loss over single candidates, whole lists or pairs.  [default: list plus 0.3 times point "
    "for --transfer, point for --adapt]",
)
@click.option("--depth", type=POSITIVE_INTEGER, help="Keep the N lowest layers.  [default: all]")
@click.option(
    "--pad-to",
    type=POSITIVE_INTEGER,
    help="Add candidates of other questions to the transfer sets until each question has N.",
)
@click.option(
    "--negatives",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the transfer lists again for each step, with negatives from other texts: found by "
    "BM25 (saved in FILE), from the same article, and random ones that the network scores highest.",
)
@click.option(
    "--transfer-epochs", type=POSITIVE_INTEGER, help="Passes over --transfer.  [default: 2]"
)
@click.option("--adapt-epochs", type=POSITIVE_INTEGER, help="Passes over --adapt.  [default: 3]")
@share_option
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plot loss and dev measures into FILE (.png, .svg or .pdf).",
)
@seed_option
@device_option
def transformer(
    init: str,
    *,
    transfer: tuple[str, ...],
    adapt: str | None,
    dev: str | None,
    out: Path,
    root: Path | None,
    head: Head,
    loss: str | None,
    depth: int | None,
    pad_to: int | None,
    negatives: Path | None,
    transfer_epochs: int | None,
    adapt_epochs: int | None,
    share: float,
    plot: Path | None,
    seed: int,
    device: str,
) -> None:
    """
    Train a cross-encoder: transfer from large sets, then adapt to one.

    Run the same command again to resume an interrupted training after its last complete epoch. With
    the plain head, sentence-transformers' CrossEncoder loads the folder. The folder also has the
    training log, training.jsonl. On several GPUs, start the command with
    `accelerate launch "$(command -v askline)" train transformer --device cuda …`.

    \b
    Example:
      askline train transformer --init DIR --transfer squadshifts:train \\
          --adapt wikiqa:train --dev wikiqa:dev --out DIR
    """
    torch = require_torch(device)
    from ..training.optimizer import Distributed
    from ..training.training_log import TrainingLog, check_plot_path, plot_training_log
    from ..training.transformer.cross_encoder_folder import load_tokenizer, save_network
    from ..training.transformer.pair_network import PairNetwork
    from ..training.transformer.transformer_training import transfer_and_adapt

    if plot is not None:
        check_plot_path(plot)
    settings = _settings(loss, transfer_epochs, adapt_epochs, share, seed)
    distributed = Distributed.from_environment()
    transfer_sets = [_load(name, root, pad_to) for name in transfer]
    adapt_set, dev_set = (_load(name, root, None) if name else None for name in (adapt, dev))
    torch.manual_seed(seed)  # a new head is drawn from it
    network = PairNetwork.start(init, head=head, depth=depth)
    tokenizer = load_tokenizer(init)
    checkpoint = checkpoint_beside(out, ".pt")
    log = TrainingLog(out.with_name(f"{out.name}.jsonl"))

    def on_epoch(epoch: Epoch) -> None:
        if distributed.is_main:
            log.add_epoch(epoch)
            print_epoch(epoch)

    def on_step(step: StepRecord) -> None:
        if distributed.is_main:
            log.add_step(step)
            click.echo(str(step), err=True)

    def on_note(note: str) -> None:
        if distributed.is_main:
            click.echo(note, err=True)

    history = transfer_and_adapt(
        network.to(distributed.device or device),
        tokenizer,
        settings,
        transfer=transfer_sets,
        adapt=adapt_set,
        dev=dev_set,
        negatives=negatives,
        checkpoint=checkpoint,
        distributed=distributed,
        on_epoch=on_epoch,
        on_step=on_step,
        on_note=on_note,
    )
    if not distributed.is_main:
        return
    save_network(network, tokenizer, out)
    _write_card(out, init, [*transfer, *filter(None, [adapt])], dev, history)
    if log.path.exists():  # missing if the process was killed after this line in an earlier run
        log.path.replace(out / "training.jsonl")
    checkpoint.unlink(missing_ok=True)
    if plot is not None:
        plot_training_log(out / "training.jsonl", plot)
    seconds = sum(epoch.seconds for epoch in history)
    click.echo(f"Trained in {seconds:.1f} s: {out}", err=True)


def _settings(
    loss: str | None,
    transfer_epochs: int | None,
    adapt_epochs: int | None,
    share: float,
    seed: int,
) -> TransferAndAdapt:
    from ..training.losses import Objective
    from ..training.transformer.transformer_training import ADAPT, TRANSFER, TransferAndAdapt

    transfer = replace(TRANSFER, epochs=transfer_epochs or TRANSFER.epochs)
    adapt = replace(ADAPT, epochs=adapt_epochs or ADAPT.epochs)
    if loss is not None:
        weights = [float(name == loss) for name in _LOSSES]
        objective = Objective(*weights)
        transfer, adapt = (replace(each, objective=objective) for each in (transfer, adapt))
    return TransferAndAdapt(transfer, adapt, share=share).with_seed(seed)


def _load(name: str, root: Path | None, pad_to: int | None) -> QuestionSet:
    from .. import data

    found = data.load_dataset(name, root=root)
    return found if pad_to is None else data.pad(found, to=pad_to)


def _write_card(
    out: Path, init: str, sets: Sequence[str], dev: str | None, history: Sequence[Epoch]
) -> None:
    from ..models.folder import ModelCard

    rows = [
        [
            str(epoch.number),
            f"{epoch.loss:.4f}",
            " ".join(f"{name} {value:.2f}" for name, value in epoch.dev.items()),
        ]
        for epoch in history
    ]
    card = ModelCard(
        "transformer",
        [
            f"Started from: {Path(init).name}",
            f"Trained on: {', then '.join(sets)}. Their licenses are those of the weights.",
        ],
        command=command_line(),
        table=[["epoch", "loss", dev or "dev"], *rows],
    )
    (out / "README.md").write_text(card.to_markdown(), encoding="utf-8")
