"""`askline train transformer`: an encoder transferred to answer selection and adapted to a set."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import (
    adapt_option,
    data_option,
    dev_option,
    device_option,
    out_option,
    require_torch,
    seed_option,
    transfer_option,
)

if TYPE_CHECKING:
    from ..training.checkpoint import Epoch
    from ..training.training_log import Journal, Step
    from ..training.transformer.transformer_training import Tanda
    from ..types import QuestionSet

__all__ = ["transformer"]

_HEADS = ("plain", "first-token", "mean")
_LOSSES = ("point", "list", "pair")


@click.command()
@click.option("--init", required=True, help="A Hugging Face folder or hub name to start from.")
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
    help="What makes a score of the encoding: one layer, [CLS] to 256 to 2, or the mean and three.",
)
@click.option(
    "--loss",
    type=click.Choice(_LOSSES),
    help="Over single candidates, whole lists or pairs.  [default: lists with 0.3 of points for "
    "the transfer, points for the set adapted to]",
)
@click.option("--depth", type=click.IntRange(min=1), help="Keep this many of the lowest layers.")
@click.option(
    "--pad-to",
    type=click.IntRange(min=1),
    help="Lengthen each list of the transfer sets with other questions' candidates.",
)
@click.option(
    "--negatives",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the transfer lists anew for each step, with sentences from elsewhere: found by BM25 "
    "(kept in this file), of the same article, and random ones that the network finds hard.",
)
@click.option(
    "--transfer-epochs",
    type=click.IntRange(min=1),
    help="How often to go through the transfer sets.  [default: 2]",
)
@click.option(
    "--adapt-epochs",
    type=click.IntRange(min=1),
    help="How often to go through the set adapted to.  [default: 3]",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="Write weights this far on the way from the start to what was trained.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw loss and dev measures into this file (.png, .svg or .pdf).",
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
    **options: Any,
) -> None:
    """
    Train a transformer: transfer from large sets, then adapt to one.

    A training that was broken off goes on after its last whole epoch when the same command is given
    again. With the plain head the folder is one that sentence-transformers' CrossEncoder loads.
    It also has the journal of the training, training.jsonl. On several GPUs, start it with
    `accelerate launch "$(command -v askline)" train transformer --device cuda …`.

    \b
    askline train transformer --init DIR --transfer squadshifts:train --adapt wikiqa:train \\
        --dev wikiqa:dev --out DIR
    """
    torch = require_torch(options["device"])
    from ..training.distributed import Crew
    from ..training.training_log import Journal, check_plot, plot_journal
    from ..training.transformer.cross_encoder_folder import load_tokeniser, save_network
    from ..training.transformer.pair_network import PairNetwork
    from ..training.transformer.transformer_training import tanda

    if options["plot"]:
        check_plot(options["plot"])
    how = _how(options)
    crew = Crew.assembled()
    sets = [_load(name, root, options["pad_to"]) for name in transfer]
    target, held = (_load(name, root, None) if name else None for name in (adapt, dev))
    torch.manual_seed(options["seed"])  # a new head is drawn from it
    network = PairNetwork.start(init, head=options["head"], depth=options["depth"])
    tokeniser = load_tokeniser(init)
    out.parent.mkdir(parents=True, exist_ok=True)
    checkpoint = out.with_name(f"{out.name}.checkpoint.pt")
    journal = Journal(out.with_name(f"{out.name}.jsonl"))
    history = tanda(
        network.to(crew.device or options["device"]),
        tokeniser,
        how,
        transfer=sets,
        adapt=target,
        dev=held,
        negatives=options["negatives"],
        checkpoint=checkpoint,
        crew=crew,
        **(_listeners(journal) if crew.leads else {}),
    )
    if not crew.leads:
        return
    save_network(network, tokeniser, out)
    _write_card(out, init, [*transfer, *filter(None, [adapt])], dev, history)
    if journal.path.exists():  # not where a kill came between this line and the next
        journal.path.replace(out / "training.jsonl")
    checkpoint.unlink(missing_ok=True)
    if options["plot"]:
        plot_journal(out / "training.jsonl", options["plot"])
    seconds = sum(epoch.seconds for epoch in history)
    click.echo(f"Trained in {seconds:.1f} s: {out}", err=True)


def _how(options: dict[str, Any]) -> Tanda:
    from ..training.losses import Objective
    from ..training.transformer.transformer_training import ADAPT, TRANSFER, Tanda

    how = Tanda(
        replace(TRANSFER, epochs=options["transfer_epochs"] or TRANSFER.epochs),
        replace(ADAPT, epochs=options["adapt_epochs"] or ADAPT.epochs),
        share=options["share"],
    ).with_seed(options["seed"])
    if options["loss"] is None:
        return how
    loss = Objective(**{name: float(name == options["loss"]) for name in _LOSSES})
    transfer, adapt = (replace(each, objective=loss) for each in (how.transfer, how.adapt))
    return replace(how, transfer=transfer, adapt=adapt)


def _load(name: str, root: Path | None, pad_to: int | None) -> QuestionSet:
    from .. import data

    found = data.load_dataset(name, root=root)
    return found if pad_to is None else data.pad(found, to=pad_to)


def _listeners(journal: Journal) -> dict[str, Callable[[Any], None]]:
    """What becomes of its news: epochs to stdout, steps and notes to stderr, all to the journal."""

    def on_epoch(epoch: Epoch) -> None:
        journal.epoch(epoch)
        measured = "  ".join(f"{name} {value:.2f}" for name, value in epoch.dev.items())
        click.echo(f"epoch {epoch.number}  loss {epoch.loss:.4f}  {measured}".rstrip())

    def on_step(step: Step) -> None:
        journal.step(step)
        click.echo(str(step), err=True)

    return {
        "on_epoch": on_epoch,
        "on_step": on_step,
        "on_note": lambda note: click.echo(note, err=True),
    }


def _write_card(
    out: Path, init: str, sets: list[str], dev: str | None, history: tuple[Epoch, ...]
) -> None:
    """The folder's README."""
    rows = [
        f"| {epoch.number} | {epoch.loss:.4f} | "
        + " ".join(f"{name} {value:.2f}" for name, value in epoch.dev.items())
        + " |"
        for epoch in history
    ]
    lines = [
        "# transformer",
        "",
        f"- Started from: {Path(init).name}",
        f"- Trained on: {', then '.join(sets)}. Their licences are those of the weights.",
        "",
        "```",
        shlex.join(["askline", *sys.argv[1:]]),
        "```",
        "",
        f"| epoch | loss | {dev or 'dev'} |",
        "| --- | --- | --- |",
        *rows,
        "",
    ]
    (out / "README.md").write_text("\n".join(lines), encoding="utf-8")
