"""`askline train cascade`: an encoder with classifiers at several depths and a reader."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict, replace
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
    transfer_option,
)
from .progress import step_logger

if TYPE_CHECKING:
    from ..training.cascade.cascade_run import Made, Making, Say
    from ..training.checkpoint import Epoch

__all__ = ["cascade"]


@click.command()
@click.option(
    "--init", required=True, help="A folder or hub name: an encoder, a cross-encoder or a cascade."
)
@transfer_option
@adapt_option
@dev_option
@out_option
@data_option
@click.option(
    "--depths",
    default="2,3,4,6,8,10,12",
    show_default=True,
    help="The layers behind which classifiers stand.",
)
@click.option(
    "--head",
    type=click.Choice(["first", "mean", "mixed"]),
    default="mean",
    show_default=True,
    help="What a classifier reads: the first token, the mean of all, or the mean and at the last "
    "depth the first token.",
)
@click.option(
    "--reader/--no-reader", default=True, show_default=True, help="Learn to mark the answer, too."
)
@click.option(
    "--loss",
    type=click.Choice(["joint", "drawn"]),
    default="joint",
    show_default=True,
    help="All classifiers in every step, or one drawn for each, as in the paper.",
)
@click.option("--teacher", help="A cross-encoder whose scores are learnt in the transfer step.")
@click.option(
    "--anchored/--free",
    default=False,
    show_default=True,
    help="Hold full depth to the start, which must be a cross-encoder and the --teacher too.",
)
@click.option(
    "--negatives",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where sentences from elsewhere are kept; made if missing.  [default: beside --out]",
)
@click.option("--transfer-epochs", type=click.IntRange(min=1), help="[default: 2]")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="Of the transfer step for each seed: the rate falls to its lowest by then.",
)
@click.option("--adapt-epochs", type=click.IntRange(min=1), help="[default: 3]")
@click.option(
    "--share",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="Write weights this far on the way from the start to what was trained.",
)
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(min=0),
    multiple=True,
    default=(0,),
    show_default=True,
    help="May be given again: then the mean of the weights is written.",
)
@device_option
def cascade(init: str, out: Path, **options: Any) -> None:
    """
    Train a cascade: transfer from large sets, then adapt to one.

    Measures on the dev set come at every depth. A training that was broken off goes on after its
    last whole epoch when the same command is given again.

    \b
    askline train cascade --init DIR --transfer squadshifts --dev wikiqa:dev --out DIR
    """
    require_torch(options["device"])
    from ..training.cascade.cascade_network import save_cascade
    from ..training.cascade.cascade_run import Sets, cascade_card, make_cascade

    how = _how(options)
    sets = Sets(
        options["transfer"],
        options["adapt"],
        options["dev"],
        options["root"],
        options["negatives"] or out.with_name(f"{out.name}.negatives.npz"),
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    teacher = options["teacher"]
    made = make_cascade(
        init,
        how,
        sets,
        teacher=teacher,
        device=options["device"],
        checkpoint=checkpoint,
        say=_say(),
    )
    save_cascade(made.network, made.tokeniser, out)
    command = shlex.join(["askline", *sys.argv[1:]])
    text = cascade_card(
        made,
        how,
        sets,
        start=Path(init).name,
        teacher=Path(teacher).name if teacher else "",
        command=command,
    )
    (out / "README.md").write_text(text, encoding="utf-8")
    _write_history(made, out)
    for name in ("fit", *how.seeds):
        checkpoint.with_name(f"{checkpoint.name}.{name}.pt").unlink(missing_ok=True)
    click.echo(f"Trained: {out}", err=True)


def _how(options: dict[str, Any]) -> Making:
    from ..training.cascade.cascade_network import CascadeShape, depths_of
    from ..training.cascade.cascade_run import Making
    from ..training.cascade.cascade_training import ADAPT, TRANSFER

    recipes = [
        replace(
            recipe,
            epochs=options[f"{name}_epochs"] or recipe.epochs,
            objective=replace(recipe.objective, kind=options["loss"]),
        )
        for name, recipe in (("transfer", TRANSFER), ("adapt", ADAPT))
    ]
    if options["minutes"]:
        recipes[0] = replace(recipes[0], seconds=60 * options["minutes"])
    shape = CascadeShape(depths_of(options["depths"]), options["head"], options["reader"])
    return Making(
        shape,
        recipes[0],
        recipes[1],
        seeds=tuple(options["seeds"]),
        share=options["share"],
        anchored=options["anchored"],
    )


def _say() -> Say:
    from ..training.cascade.cascade_run import Say

    def epoch(seed: int, epoch: Epoch) -> None:
        measured = "  ".join(f"{name} {value:.2f}" for name, value in epoch.dev.items())
        click.echo(f"seed {seed}  epoch {epoch.number}  loss {epoch.loss:.4f}  {measured}".rstrip())

    said = step_logger()

    def step(seed: int, done: int, of: int) -> None:
        said(f"seed {seed}", done, of)

    return Say(epoch, step, lambda note: click.echo(note, err=True))


def _write_history(made: Made, out: Path) -> None:
    """The epochs of every seed as JSON, for plots."""
    rows = {str(seed): [asdict(epoch) for epoch in epochs] for seed, epochs in made.history.items()}
    (out / "training.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
