"""
A cascade from an initial encoder and labeled sets: what `askline train cascade` runs.

New classifiers are fitted to the encoder first. Then several seeds are trained one after another
from there, and the result is the mean of their weights, or a point on the way to it: it ranks like
their ensemble at the cost of one model, and keeps more of what the start knew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ... import data
from ...data.datasets import data_license
from ...errors import InputError
from ...models.folder import ModelCard
from ..checkpoint import Epoch, average_weights, interpolate_weights
from ..loop import TrainingProgress
from ..packing import is_bert
from ..transformer.cross_encoder_folder import load_tokenizer
from ..transformer.pair_network import encoder_layers, read_encoder
from .cascade_examples import WholeCandidateLists, load_transfer_sets
from .cascade_network import (
    CascadeDevSet,
    CascadeNetwork,
    CascadeShape,
    is_cascade,
    load_cascade,
    save_cascade,
    torch_folder,
)
from .cascade_training import (
    ADAPT,
    FIT,
    TRANSFER,
    CascadePhase,
    CascadeRecipe,
    anchored,
    train_cascade,
)

__all__ = [
    "CascadeData",
    "CascadePlan",
    "TrainedCascade",
    "build_cascade",
    "check_exportable",
    "remove_checkpoints",
    "save_trained_cascade",
]


@dataclass(frozen=True, slots=True)
class CascadePlan:
    """The shape of a cascade, its recipes and its seeds."""

    shape: CascadeShape
    transfer: CascadeRecipe = TRANSFER
    adapt: CascadeRecipe = ADAPT
    fit: CascadeRecipe = FIT
    """Before the transfer, unless the start is already a cascade."""
    seeds: tuple[int, ...] = (0,)
    share: float = 1.0
    """How far to go from the fitted start to the trained weights."""
    anchored: bool = False
    """Whether full depth is held to the start, which is then the teacher as well."""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"share must be from 0 to 1, got {self.share}.")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"Expected one seed or several different ones, got {self.seeds}.")
        if self.anchored and self.shape.reads(self.shape.depths[-1]) != "first":
            raise InputError(
                "An anchored cascade keeps the classifier of the start, which reads the first "
                f"token: head must be 'mixed' or 'first', got {self.shape.head!r}."
            )
        if self.anchored and self.shape.reader:
            raise InputError("An anchored cascade cannot have a reader: train it without one.")

    def with_anchored_recipes(self) -> CascadePlan:
        """With anchored recipes for fit and transfer, if the plan is anchored."""
        if not self.anchored:
            return self
        return replace(self, fit=anchored(self.fit), transfer=anchored(self.transfer))


@dataclass(frozen=True, slots=True)
class CascadeData:
    """Names of labeled sets, and where their files are."""

    transfer: Sequence[str] = ()
    adapt: str | None = None
    dev: str | None = None
    root: Path | None = None
    negatives: Path | None = None
    """The file of mined negatives for the transfer, created if it does not exist."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedCascade:
    """A trained cascade."""

    network: CascadeNetwork
    tokenizer: Any
    history: dict[int, tuple[Epoch, ...]]
    """By seed."""


def build_cascade(
    init: str | PathLike[str],
    plan: CascadePlan,
    sets: CascadeData,
    *,
    teacher: str | PathLike[str] | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
    progress: TrainingProgress | None = None,
) -> TrainedCascade:
    """
    Start from an encoder, a cross-encoder or a cascade, and train.

    `teacher` is a cross-encoder whose scores the classifiers learn during the transfer. With
    `checkpoint`, a path, every seed keeps its state in a file beside it and can be resumed.
    """
    progress = progress or TrainingProgress()
    if plan.anchored and (teacher is None or is_cascade(init) or Path(teacher) != Path(init)):
        raise InputError(
            "An anchored cascade starts from a cross-encoder, which is its teacher as well: give "
            f"both the same folder, got {fspath(init)!r} and {fspath(teacher or '')!r}."
        )
    plan = plan.with_anchored_recipes()
    tokenizer = load_tokenizer(torch_folder(init) if is_cascade(init) else init)
    fixed_teacher = _load_teacher(teacher, device)
    phases = _phases(plan, sets, tokenizer, fixed_teacher)
    dev = (
        CascadeDevSet.of(data.load_dataset(sets.dev, root=sets.root), tokenizer)
        if sets.dev
        else None
    )
    torch.manual_seed(plan.seeds[0])  # new layers are drawn from it
    network = _initial_network(init, plan.shape).to(device)
    if plan.anchored and not _same_last_classifier(network, fixed_teacher):
        raise InputError(f"{fspath(init)} has no classifier of its own that could be kept.")

    def train(seed: int, chosen: Sequence[CascadePhase], name: str) -> tuple[Epoch, ...]:
        return train_cascade(
            network,
            [replace(phase, recipe=replace(phase.recipe, seed=seed)) for phase in chosen],
            dev=dev,
            checkpoint=None if checkpoint is None else _checkpoint_file(checkpoint, name),
            on_epoch=partial(progress.on_epoch, f"seed {seed}"),
            on_step=partial(progress.on_step, f"seed {seed}"),
            on_note=progress.on_note,
        )

    if sets.transfer and not is_cascade(init):
        train(plan.seeds[0], [replace(phases[0], recipe=plan.fit)], "fit")
    start, states, history = _cpu_state(network), [], {}
    for seed in plan.seeds:
        network.load_state_dict(start)
        history[seed] = train(seed, phases, str(seed))
        states.append(_cpu_state(network))
    network.load_state_dict(interpolate_weights(start, average_weights(states), plan.share))
    return TrainedCascade(network.eval(), tokenizer, history)


def check_exportable(init: str | PathLike[str]) -> None:
    """Raise InputError if the engine cannot run a cascade that starts from this encoder."""
    encoder = load_cascade(init)[0].encoder if is_cascade(init) else _base_encoder(init)
    if not is_bert(encoder):
        raise InputError(
            f"Only BERT encoders run without torch, got {type(encoder).__name__} in "
            f"{fspath(init)}. Start from a BERT encoder, or train with --no-export."
        )


def _base_encoder(init: str | PathLike[str]) -> Any:
    with torch.random.fork_rng(devices=[]):  # missing layers would be drawn
        return read_encoder(init, plain=True)[0].base_model


def save_trained_cascade(
    trained: TrainedCascade,
    folder: Path,
    plan: CascadePlan,
    sets: CascadeData,
    *,
    start: str,
    teacher: str,
    command: str,
) -> Path:
    """Write the network, its tokenizer, the card, and the history as training.json."""
    save_cascade(trained.network, trained.tokenizer, folder)
    card = _card(trained, plan, sets, start=start, teacher=teacher, command=command)
    (folder / "README.md").write_text(card.to_markdown(), encoding="utf-8")
    rows = {
        str(seed): [asdict(epoch) for epoch in epochs] for seed, epochs in trained.history.items()
    }
    text = json.dumps(rows, indent=2) + "\n"
    (folder / "training.json").write_text(text, encoding="utf-8")
    return folder


def remove_checkpoints(checkpoint: Path, plan: CascadePlan) -> None:
    """Remove the files that `build_cascade` resumes from."""
    for name in ("fit", *map(str, plan.seeds)):
        _checkpoint_file(checkpoint, name).unlink(missing_ok=True)


def _checkpoint_file(checkpoint: Path, name: str) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.{name}.pt")


def _same_last_classifier(network: CascadeNetwork, teacher: CascadeNetwork | None) -> bool:
    """Whether both end in one classifier: if a folder has none, each has drawn its own."""
    ends = [
        {} if own is None else own.classifiers[str(own.shape.depths[-1])].state_dict()
        for own in (network, teacher)
    ]
    return all(torch.equal(value, ends[1][name]) for name, value in ends[0].items())


def _cpu_state(network: CascadeNetwork) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}


def _initial_network(init: str | PathLike[str], shape: CascadeShape) -> CascadeNetwork:
    if not is_cascade(init):
        return CascadeNetwork.start(init, shape)
    network, _ = load_cascade(init)
    if network.shape != shape:
        raise InputError(f"{init} is a cascade of another shape: {network.shape}, not {shape}.")
    return network


def _load_teacher(folder: str | PathLike[str] | None, device: str) -> CascadeNetwork | None:
    if folder is None:
        return None
    layers = len(encoder_layers(read_encoder(folder, plain=True)[0]))
    return CascadeNetwork.start(folder, CascadeShape((layers,), reader=False)).to(device).eval()


def _phases(
    plan: CascadePlan, sets: CascadeData, tokenizer: Any, teacher: CascadeNetwork | None
) -> list[CascadePhase]:
    phases = []
    if sets.transfer:
        if sets.negatives is None:
            raise InputError("The transfer needs a file for mined negatives.")
        lists, paragraphs = load_transfer_sets(
            sets.transfer, tokenizer, sets.negatives, root=sets.root
        )
        wanted = paragraphs if plan.shape.reader else None
        phases.append(CascadePhase(lists, plan.transfer, wanted, teacher))
    if sets.adapt:
        target = data.load_dataset(sets.adapt, root=sets.root)
        phases.append(CascadePhase(WholeCandidateLists(target, tokenizer), plan.adapt))
    if not phases:
        raise InputError("Expected a set to transfer from or to adapt to, got neither.")
    return phases


def _card(
    trained: TrainedCascade,
    plan: CascadePlan,
    sets: CascadeData,
    *,
    start: str,
    teacher: str,
    command: str,
) -> ModelCard:
    """Measures are those of each seed after its last epoch."""
    shape = plan.shape
    weights = sum(weight.numel() for weight in trained.network.parameters())
    used = [*sets.transfer, *filter(None, [sets.adapt])]
    facts = [
        f"Classifiers after layers {', '.join(map(str, shape.depths))}, head `{shape.head}`"
        f"{', and a reader' if shape.reader else ''}: {weights:,} parameters",
        f"Started from: {start}" + (f"; teacher: {teacher}" if teacher else ""),
        f"Seeds: {', '.join(map(str, plan.seeds))}"
        f"{' (the mean of their weights)' if len(plan.seeds) > 1 else ''}",
        "Trained on:",
        *(f"  {name} ({data_license(name)})" for name in used),
    ]
    if plan.anchored:
        facts.insert(2, "Full depth was held to the start, whose own classifier it is")
    return ModelCard(
        "cascade",
        facts,
        "The weights are under the licenses of the data, and of the start, that they come from.",
        command,
        _measures(trained, sets.dev),
    )


def _measures(trained: TrainedCascade, dev: str | None) -> list[list[str]]:
    last = {seed: epochs[-1].dev for seed, epochs in trained.history.items()}
    names = list(next(iter(last.values())))
    if not names:
        return []
    header = [dev or "dev", *(f"seed {seed}" for seed in last)]
    return [header, *([name, *(f"{row[name]:.2f}" for row in last.values())] for name in names)]
