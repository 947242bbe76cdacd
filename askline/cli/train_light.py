"""`askline train cosinet`, `compare-aggregate` and `relational-cnn`: the light rankers."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

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
from .train_common import (
    batch_size_option,
    checkpoint_beside,
    command_line,
    epochs_option,
    learning_rate_option,
    print_epoch,
)

if TYPE_CHECKING:
    from ..models.folder import ModelFolder
    from ..models.light_config import LightConfig, ListLayerKind
    from ..models.word_vectors import WordVectors
    from ..training.light.first_stage import FirstStageRecipe
    from ..training.light.light_training import LightDevSet, LightRecipe, TrainedLightRanker
    from ..training.loop import TrainingRecipe
    from ..training.losses import Loss
    from ..types import QuestionSet

__all__ = ["light_commands"]

_Recipe = TypeVar("_Recipe", "LightRecipe", "FirstStageRecipe")

_NETWORKS = ("cosinet", "compare-aggregate", "relational-cnn")
_LIST_LAYERS = ("none", "rnn", "birnn", "lstm", "bilstm")


_OPTIONS = [
    click.option(
        "--on",
        required=True,
        metavar="SET",
        shell_complete=complete_set,
        help="Question set to train on: NAME:SPLIT or a JSONL file.",
    ),
    dev_option,
    out_option,
    data_option,
    click.option(
        "--variant",
        type=click.Choice(_LIST_LAYERS),
        default="none",
        show_default=True,
        help="Recurrent layer over the list of candidates.",
    ),
    click.option(
        "--channel",
        "channels",
        metavar="NAME",
        multiple=True,
        help="Match feature added to each word vector (cosinet only). Repeatable.  "
        "[default: related]",
    ),
    click.option(
        "--loss",
        type=click.Choice(["list", "point"]),
        default="list",
        show_default=True,
        help="Softmax over the candidates of a question, or one decision per candidate.",
    ),
    epochs_option(3),
    learning_rate_option(None),
    batch_size_option(None, "Questions"),
    click.option(
        "--dropout",
        metavar="X",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.0,
        show_default=True,
        help="Dropout probability.",
    ),
    click.option(
        "--keep",
        type=click.Choice(["last", "best"]),
        default="last",
        show_default=True,
        help="Epoch whose weights are written. The best has the highest MAP on --dev.",
    ),
    seed_option,
    click.option(
        "--vectors",
        metavar="FILE",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Word vectors: a .safetensors set, or a word2vec, GloVe or Numberbatch file.  "
        "[default: those of --init, else those that ship with askline]",
    ),
    click.option(
        "--init",
        metavar="DIR",
        help="Model folder of the same network to start from; `cosinet` for the one that ships "
        "with askline.",
    ),
    device_option,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LightOptions:
    """The options of one command."""

    network: str
    on: str
    dev: str | None
    out: Path
    root: Path | None
    variant: ListLayerKind
    channels: tuple[str, ...]
    loss: Loss
    epochs: int
    learning_rate: float | None
    batch_size: int | None
    dropout: float
    keep: Literal["last", "best"]
    seed: int
    vectors: Path | None
    init: str | None
    device: str

    @property
    def start(self) -> ModelFolder | None:
        """The model folder to start from."""
        if self.init is None:
            return None
        from ..models.folder import ModelFolder
        from ..models.light_config import CosinetConfig, FirstStageConfig

        if self.init == self.network == "cosinet":
            shipped = files("askline.models") / "shipped" / "cosinet"
            return ModelFolder.open(str(shipped), kind=FirstStageConfig.kind)
        kinds = {"cosinet": (CosinetConfig.kind, FirstStageConfig.kind)}
        return ModelFolder.open(self.init, kind=kinds.get(self.network, (self.network,)))


def light_commands() -> list[click.Command]:
    """One command per light network."""
    return [_command(network) for network in _NETWORKS]


def _command(network: str) -> click.Command:
    # Click passes the values of the options, whose types the options check.
    def run(**values: Any) -> None:
        _train(_LightOptions(network=network, **values))

    run.__doc__ = f"""
    Train {network}, a light ranker.

    Questions without an answer are left out. Run the same command again to resume an interrupted
    training after its last complete epoch.

    \b
    Example:
      askline train {network} --on wikiqa:train --dev wikiqa:dev --out DIR
    """
    for option in reversed(_OPTIONS):
        run = option(run)
    return click.command(network)(run)


def _train(options: _LightOptions) -> None:
    # Torch reads this when it is imported. Steps are short: threads that wait by spinning would
    # take the processor from the working thread.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    require_torch(options.device)
    out = options.out
    if out.exists() and any(out.iterdir()) and not (out / "config.json").exists():
        raise InputError(f"{out} exists and is not a model folder. Name a new folder for --out.")
    if options.keep == "best" and options.dev is None:
        raise InputError("--keep best needs --dev SET to choose the best epoch.")
    from ..models.light_config import FirstStageConfig
    from ..training.light.light_training import export_light_ranker

    start = options.start
    checkpoint = checkpoint_beside(out, ".pt")
    if start is not None and start.config["kind"] == FirstStageConfig.kind:
        trained, vectors = _fine_tune_first_stage(start, options, checkpoint)
    else:
        trained, vectors = _train_network(start, options, checkpoint)
    export_light_ranker(trained, out, vectors=vectors, dev=options.dev, command=command_line())
    checkpoint.unlink(missing_ok=True)
    spec = f"{options.network}({str(out)!r})"
    click.echo(f"Trained in {trained.seconds:.1f} s. Use it as: {spec}", err=True)


def _train_network(
    start: ModelFolder | None, options: _LightOptions, checkpoint: Path
) -> tuple[TrainedLightRanker, WordVectors]:
    """A network of one of the papers, with new weights or those of a folder."""
    from ..training.light.encoded_questions import encode_questions
    from ..training.light.light_training import initial_weights, train_light_ranker

    vectors = _vectors(start, options.vectors)
    config = _config(options.network, vectors, options)
    weights = None if start is None else initial_weights(start.tensors(), config)
    recipe = _recipe(config, options)
    questions = _questions(options.on, options.root)
    encoded = encode_questions(questions, vectors, config, device=options.device)
    dev = _dev_set(options, vectors, config)
    with _progress(options, len(questions), recipe) as count_step:
        trained = train_light_ranker(
            config,
            encoded,
            recipe,
            dev=dev,
            start=weights,
            checkpoint=checkpoint,
            on_epoch=print_epoch,
            on_step=lambda _: count_step(),
        )
    return trained, vectors


def _fine_tune_first_stage(
    start: ModelFolder, options: _LightOptions, checkpoint: Path
) -> tuple[TrainedLightRanker, WordVectors]:
    """The network of the shipped `cosinet`; its layers, loss and word vectors stay as they are."""
    given = {
        "--variant": options.variant != "none",
        "--channel": bool(options.channels),
        "--loss point": options.loss != "list",
        "--vectors": options.vectors is not None,
    }
    wrong = [name for name, is_given in given.items() if is_given]
    if wrong:
        raise InputError(
            f"{', '.join(wrong)} cannot be used with --init {options.init}: the layers, the loss "
            "and the word vectors of that network are fixed."
        )
    from ..models.light_config import FirstStageConfig
    from ..training.light.first_stage import (
        FINE_TUNING,
        Vocabulary,
        first_stage_examples,
        train_first_stage,
    )

    vectors, vocabulary = start.vectors(), Vocabulary()
    questions = _questions(options.on, options.root)
    dev = None if options.dev is None else _questions(options.dev, options.root)
    lists = list(first_stage_examples([questions], vectors, vocabulary, seed=options.seed))
    recipe = _with_options(FINE_TUNING, options)
    with _progress(options, len(lists), recipe) as count_step:
        trained = train_first_stage(
            lists,
            vocabulary,
            vectors,
            FirstStageConfig.from_config(start.config),
            recipe,
            name=questions.name,
            start=start.tensors(),
            dev=dev,
            device=options.device,
            checkpoint=checkpoint,
            on_epoch=print_epoch,
            on_step=lambda _: count_step(),
        )
    return trained, vectors


def _progress(
    options: _LightOptions, questions: int, recipe: TrainingRecipe
) -> AbstractContextManager[Callable[[], None]]:
    steps = recipe.epochs * -(-questions // recipe.batch_size)
    return progress_bar(f"Training on {options.on}", steps)


def _questions(name: str, root: Path | None) -> QuestionSet:
    from .. import data

    found = data.filter_questions(data.load_dataset(name, root=root), "answerable")
    if not len(found):
        raise InputError(f"{name} has no question with an answer.")
    return found


def _vectors(start: ModelFolder | None, path: Path | None) -> WordVectors:
    from ..models.word_vector_formats import read_vectors
    from ..models.word_vectors import WordVectors

    if path is None and start is not None:
        return start.vectors()
    if path is None or path.suffix == ".safetensors":
        return WordVectors.load(path)
    return read_vectors(path)


def _config(network: str, vectors: WordVectors, options: _LightOptions) -> LightConfig:
    from ..models import light_config

    size, list_layer = vectors.dimensions, options.variant
    if options.channels and network != "cosinet":
        raise InputError(f"--channel is for cosinet; {network} has no channels to choose.")
    if network == "cosinet":
        channels = options.channels or ("related",)
        return light_config.CosinetConfig(size, list_layer=list_layer, channels=channels)
    if network == "compare-aggregate":
        return light_config.CompareAggregateConfig(size, list_layer=list_layer)
    if list_layer != "none":
        raise InputError("relational-cnn has no list layer: leave --variant out.")
    return light_config.RelationalCNNConfig(size)


def _recipe(config: LightConfig, options: _LightOptions) -> LightRecipe:
    from ..training.light.light_training import default_recipe

    return _with_options(default_recipe(config, options.loss), options)


def _with_options(recipe: _Recipe, options: _LightOptions) -> _Recipe:
    return replace(
        recipe,
        epochs=options.epochs,
        learning_rate=options.learning_rate or recipe.learning_rate,
        batch_size=options.batch_size or recipe.batch_size,
        dropout=options.dropout,
        keep=options.keep,
        seed=options.seed,
    )


def _dev_set(
    options: _LightOptions, vectors: WordVectors, config: LightConfig
) -> LightDevSet | None:
    if options.dev is None:
        return None
    from ..training.light.encoded_questions import encode_questions
    from ..training.light.light_training import LightDevSet

    questions = _questions(options.dev, options.root)
    encoded = encode_questions(questions, vectors, config, device=options.device)
    return LightDevSet(questions, encoded)
