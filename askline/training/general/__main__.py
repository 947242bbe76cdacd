"""Make the general model: data folder and start in, a CrossEncoder folder out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from ..transformer.cross_encoder import load_tokeniser
from ..transformer.folder import save_network
from ..transformer.journal import Step
from ..transformer.network import PairNetwork
from ..transformer.sampling import SampledLists
from .card import card
from .fit import GeneralRecipe, general_run, merged, run_file
from .sets import PLANS, general_lists

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--data", "root", type=_FOLDER, required=True, help="The folder with the datasets.")
@click.option("--init", required=True, help="A Hugging Face folder or hub name to start from.")
@click.option("--out", type=_FOLDER, required=True, help="The model folder to write.")
@click.option("--work", type=_FOLDER, help="Where runs and negatives are kept.  [OUT.runs]")
@click.option("--device", default="cpu", show_default=True, help="What to train on.")
@click.option("--seed", "seeds", type=int, multiple=True, help="One run each.  [1, 2 and 3]")
@click.option("--epochs", type=click.IntRange(min=1), help="Of each run.  [2]")
@click.option("--share", type=click.FloatRange(0, 1), help="How far to leave the start.  [0.7]")
@click.option(
    "--plan",
    type=click.Choice([*PLANS]),
    default="chosen",
    show_default=True,
    help="Of the lists: `first` with a share of 0.8 is the first general model.",
)
@click.option("--tokens", type=click.IntRange(min=512), help="Held at once.  [16384]")
def main(
    root: Path,
    init: str,
    out: Path,
    work: Path | None,
    device: str,
    seeds: Sequence[int],
    epochs: int | None,
    share: float | None,
    plan: str,
    tokens: int | None,
) -> None:
    """
    Train the general model: three runs on openly licensed sets, their mean, blended with the start.

    What is finished is kept in the folder WORK, so the same command goes on after a kill; runs may
    also be made apart, each by its own `--seed`, before the command is given with all of them.
    """
    recipe = _recipe(seeds, epochs, share, tokens)
    work = work or out.with_name(f"{out.name}.runs")
    tokeniser = load_tokeniser(init)
    lists: SampledLists | None = None
    for seed in recipe.seeds:
        if run_file(work, seed).exists():
            continue
        lists = lists or general_lists(tokeniser, work / "negatives.npz", root=root, plan=plan)
        history = general_run(
            init,
            lists,
            replace(recipe.transfer, seed=seed),
            work,
            device=device,
            on_step=partial(_say_step, seed),
            on_note=_say,
        )
        _say(f"Run {seed}: loss {history[-1].loss:.4f}, {sum(e.seconds for e in history):.0f} s")
    network = PairNetwork.start(init)
    merged(network, work, recipe.seeds, recipe.share)
    save_network(network, tokeniser, out)
    (out / "README.md").write_text(card(init, recipe, plan), encoding="utf-8")
    _say(f"Wrote {out}")


def _recipe(
    seeds: Sequence[int], epochs: int | None, share: float | None, tokens: int | None
) -> GeneralRecipe:
    usual = GeneralRecipe()
    transfer = replace(
        usual.transfer,
        epochs=epochs or usual.transfer.epochs,
        tokens=tokens or usual.transfer.tokens,
    )
    return GeneralRecipe(
        transfer, tuple(seeds) or usual.seeds, usual.share if share is None else share
    )


def _say(text: str) -> None:
    click.echo(text, err=True)


def _say_step(seed: int, step: Step) -> None:
    _say(f"Run {seed}: {step}")


if __name__ == "__main__":
    main(prog_name="python -m askline.training.general")
