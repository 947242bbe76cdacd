"""`askline train cosinet` and its like: a light network trained on a labelled set."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .options import (
    complete_set,
    data_option,
    dev_option,
    device_option,
    out_option,
    require_torch,
    seed_option,
)
from .progress import progress_bar

if TYPE_CHECKING:
    from ..models.light_config import LightConfig
    from ..models.word_vectors import WordVectors
    from ..training.checkpoint import Epoch
    from ..training.light.light_training import DevSet, Recipe
    from ..types import QuestionSet

__all__ = ["light_commands"]

_NETWORKS = ("cosinet", "compare-aggregate", "relational-cnn")
_VARIANTS = ("none", "rnn", "birnn", "lstm", "bilstm")


_OPTIONS = [
    click.option(
        "--on",
        required=True,
        metavar="SET",
        shell_complete=complete_set,
        help="Train on this: NAME:SPLIT or a JSONL file.",
    ),
    dev_option,
    out_option,
    data_option,
    click.option(
        "--variant",
        type=click.Choice(_VARIANTS),
        default="none",
        show_default=True,
        help="The layer that reads the list of candidates.",
    ),
    click.option(
        "--channel",
        "channels",
        multiple=True,
        help="What stands beside each word of cosinet; may be given again.  [default: related]",
    ),
    click.option(
        "--loss",
        type=click.Choice(["list", "point"]),
        default="list",
        show_default=True,
        help="One distribution a question, or one decision a candidate.",
    ),
    click.option(
        "--epochs",
        type=click.IntRange(min=1),
        default=3,
        show_default=True,
        help="How often to go through the questions.",
    ),
    click.option(
        "--rate",
        type=click.FloatRange(min=0, min_open=True),
        help="Peak of the learning rate.  [default: by network]",
    ),
    click.option(
        "--batch", type=click.IntRange(min=1), help="Questions a step.  [default: by network]"
    ),
    click.option(
        "--dropout",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.0,
        show_default=True,
        help="The share of a pair's numbers left out at each step.",
    ),
    click.option(
        "--keep",
        type=click.Choice(["last", "best"]),
        default="last",
        show_default=True,
        help="Which epoch's weights to write; best is by MAP on --dev.",
    ),
    seed_option,
    click.option(
        "--vectors",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="A .safetensors set, or a word2vec, GloVe or Numberbatch file; else those of --start, "
        "else askline's own.",
    ),
    click.option(
        "--start",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="A model folder of the same layout to go on from.",
    ),
    device_option,
]


def light_commands() -> list[click.Command]:
    """A command for each of the light networks."""
    return [_command(network) for network in _NETWORKS]


def _command(network: str) -> click.Command:
    """The commands differ in their network alone, and in what it takes."""

    def train(**options: Any) -> None:
        _train(network, **options)

    train.__doc__ = f"""
    Train {network}, a light network.

    Questions without an answer are left out. A training that was broken off goes on after its last
    whole epoch when the same command is given again.

    \b
    askline train {network} --on wikiqa:train --dev wikiqa:dev --out DIR
    """
    for option in reversed(_OPTIONS):
        train = option(train)
    return click.command(network)(train)


def _train(
    network: str, *, on: str, dev: str | None, out: Path, root: Path | None, **options: Any
) -> None:
    # Read when torch is loaded. Steps are short: threads that wait by spinning take the processor
    # from the one that works as soon as anything else runs beside them.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    require_torch(options["device"])
    _check_out(out)
    from ..training.light.encoded_questions import encode
    from ..training.light.light_training import export, train

    vectors = _vectors(network, options["vectors"], options["start"])
    layout = _layout(network, vectors, options)
    recipe = _recipe(layout, options)
    questions = _questions(on, root)
    encoded = encode(questions, vectors, layout, device=options["device"])
    held = _dev_set(dev, root, vectors, layout, options["device"])
    if recipe.keep == "best" and held is None:
        raise InputError("--keep best needs --dev SET to tell the best epoch by.")
    start = _start(options["start"], layout)
    checkpoint = out.with_name(f"{out.name}.checkpoint.pt")
    out.parent.mkdir(parents=True, exist_ok=True)
    steps = recipe.epochs * -(-len(questions) // recipe.batch)
    with progress_bar(f"Training on {on}", steps) as step:
        trained = train(
            layout,
            encoded,
            recipe,
            dev=held,
            start=start,
            checkpoint=checkpoint,
            on_epoch=_say,
            on_step=step,
        )
    command = shlex.join(["askline", *sys.argv[1:]])
    export(trained, out, vectors=vectors, dev=dev, command=command)
    checkpoint.unlink(missing_ok=True)
    click.echo(f"Trained in {trained.seconds:.1f} s. Use it as: {network}({str(out)!r})", err=True)


def _say(epoch: Epoch) -> None:
    measured = "  ".join(f"{name} {value:.2f}" for name, value in epoch.dev.items())
    click.echo(f"epoch {epoch.number}  loss {epoch.loss:.4f}  {measured}".rstrip())


def _check_out(out: Path) -> None:
    """Now, not after the training."""
    if out.exists() and any(out.iterdir()) and not (out / "config.json").exists():
        raise InputError(f"{out} is there and is no model folder. Name a new folder for --out.")


def _questions(name: str, root: Path | None) -> QuestionSet:
    from .. import data

    found = data.filter_questions(data.load_dataset(name, root=root), "answerable")
    if not len(found):
        raise InputError(f"{name} has no question with an answer.")
    return found


def _vectors(network: str, path: Path | None, start: Path | None) -> WordVectors:
    """The file's; else those that the weights to start from were trained over; else askline's."""
    from ..models.folder import ModelFolder
    from ..models.word_vector_formats import read_vectors
    from ..models.word_vectors import WordVectors

    if path is None and start is not None:
        return ModelFolder.open(start, kind=network).vectors()
    if path is None or path.suffix == ".safetensors":
        return WordVectors.load(path)
    return read_vectors(path)


def _layout(network: str, vectors: WordVectors, options: dict[str, Any]) -> LightConfig:
    from ..models import light_config

    size = vectors.dimensions
    if options["channels"] and network != "cosinet":
        raise InputError(f"--channel is for cosinet; {network} has none to choose.")
    if network == "cosinet":
        channels = options["channels"] or ("related",)
        return light_config.CosinetConfig(size, list_layer=options["variant"], channels=channels)
    if network == "compare-aggregate":
        return light_config.CompareAggregateConfig(size, list_layer=options["variant"])
    if options["variant"] != "none":
        raise InputError("relational-cnn reads no list: leave --variant out.")
    return light_config.RelationalCNNConfig(size)


def _recipe(layout: LightConfig, options: dict[str, Any]) -> Recipe:
    from ..training.light.light_training import recipe_for

    names = ("epochs", "rate", "batch", "dropout", "keep", "seed")
    given = {name: options[name] for name in names if options[name] is not None}
    return replace(recipe_for(layout, options["loss"]), **given)


def _dev_set(
    name: str | None, root: Path | None, vectors: WordVectors, layout: LightConfig, device: str
) -> DevSet | None:
    if name is None:
        return None
    from ..training.light.encoded_questions import encode
    from ..training.light.light_training import DevSet

    questions = _questions(name, root)
    return DevSet(questions, encode(questions, vectors, layout, device=device))


def _start(folder: Path | None, layout: LightConfig) -> Any:
    if folder is None:
        return None
    from ..models.folder import ModelFolder
    from ..training.light.light_training import as_start

    return as_start(ModelFolder.open(folder, kind=layout.kind).tensors(), layout)
