"""
A cascade from a start and labelled sets: what `askline train cascade` runs.

New classifiers are fitted to the encoder first. Then several seeds are trained one after another
from there, and the mean of their weights is the result, or a point on the way to it: it ranks like
their ensemble at the cost of one model, and keeps more of what the start knew.

The README of a trained cascade: data and their licences, measures by depth, the command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ... import data
from ...errors import InputError
from ..checkpoint import Epoch, average, blend
from ..model_card import LICENCES
from ..transformer.cross_encoder_folder import load_tokeniser
from .cascade_examples import WholeSource, transfer_sets
from .cascade_network import CascadeNetwork, CascadeShape, Dev, is_cascade, load_cascade
from .cascade_training import ADAPT, FIT, TRANSFER, CascadeRecipe, Phase, anchored, train_cascade

__all__ = [
    "Made",
    "Making",
    "Say",
    "Sets",
    "cascade_card",
    "make_cascade",
]


@dataclass(frozen=True, slots=True)
class Making:
    """How a cascade is made."""

    shape: CascadeShape
    transfer: CascadeRecipe = TRANSFER
    adapt: CascadeRecipe = ADAPT
    fit: CascadeRecipe = FIT
    """Before the transfer step, where the start is no cascade yet."""
    seeds: tuple[int, ...] = (0,)
    share: float = 1.0
    """How far to go from the fitted start to what was trained."""
    anchored: bool = False
    """Whether full depth is held to the start, which is then the teacher too."""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"share must be from 0 to 1, got {self.share}.")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"Expected one seed or several different ones, got {self.seeds}.")
        if self.anchored and self.shape.reads(self.shape.depths[-1]) != "first":
            raise InputError(
                "An anchored cascade keeps the start's own classifier, which reads the first "
                f"token: head must be 'mixed' or 'first', got {self.shape.head!r}."
            )
        if self.anchored and self.shape.reader:
            raise InputError("An anchored cascade learns to rank alone: train it without a reader.")

    def recipes(self) -> Making:
        """With the recipes of fit and transfer anchored, where that is asked for."""
        if not self.anchored:
            return self
        return replace(self, fit=anchored(self.fit), transfer=anchored(self.transfer))


@dataclass(frozen=True, slots=True)
class Sets:
    """Names of labelled sets, and where they lie."""

    transfer: Sequence[str] = ()
    adapt: str | None = None
    dev: str | None = None
    root: Path | None = None
    negatives: Path | None = None
    """The file of sentences from elsewhere, made where it is not there; for the transfer step."""


@dataclass(frozen=True, slots=True)
class Say:
    """Where progress goes. The first argument of `epoch` and `step` is the seed."""

    epoch: Callable[[int, Epoch], None] = lambda _seed, _epoch: None
    step: Callable[[int, int, int], None] = lambda _seed, _done, _of: None
    note: Callable[[str], None] = lambda _note: None


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A trained cascade."""

    network: CascadeNetwork
    tokeniser: Any
    history: dict[int, tuple[Epoch, ...]]
    """By seed."""


def make_cascade(
    init: str | PathLike[str],
    how: Making,
    sets: Sets,
    *,
    teacher: str | PathLike[str] | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
    say: Say = Say(),  # noqa: B008 it holds functions only, and is frozen
) -> Made:
    """
    Start from an encoder, a cross-encoder or a cascade, and train.

    `teacher` is a cross-encoder whose scores the classifiers learn in the transfer step. With
    `checkpoint`, a path, every seed keeps its state beside it and a training that was broken off
    goes on.
    """
    if how.anchored and (teacher is None or is_cascade(init) or Path(teacher) != Path(init)):
        raise InputError(
            "An anchored cascade starts from a cross-encoder, which is its teacher as well: give "
            f"both the same folder, got {fspath(init)!r} and {fspath(teacher or '')!r}."
        )
    how = how.recipes()
    tokeniser = load_tokeniser(init)
    told = _teacher(teacher, device)
    phases = _phases(how, sets, tokeniser, told)
    dev = Dev.of(data.load_dataset(sets.dev, root=sets.root), tokeniser) if sets.dev else None
    torch.manual_seed(how.seeds[0])  # what is new in the network is drawn from it
    network = _start(init, how.shape).to(device)
    if how.anchored and not _same_end(network, told):
        raise InputError(f"{fspath(init)} has no classifier of its own that could be kept.")

    def train(seed: int, chosen: Sequence[Phase], name: str) -> tuple[Epoch, ...]:
        return train_cascade(
            network,
            [replace(phase, recipe=replace(phase.recipe, seed=seed)) for phase in chosen],
            dev=dev,
            checkpoint=checkpoint and checkpoint.with_name(f"{checkpoint.name}.{name}.pt"),
            on_epoch=lambda epoch: say.epoch(seed, epoch),
            on_step=lambda done, of: say.step(seed, done, of),
            on_note=say.note,
        )

    if sets.transfer and not is_cascade(init):
        train(how.seeds[0], [replace(phases[0], recipe=how.fit)], "fit")
    start, states, history = _state(network), [], {}
    for seed in how.seeds:
        network.load_state_dict(start)
        history[seed] = train(seed, phases, str(seed))
        states.append(_state(network))
    network.load_state_dict(blend(start, average(states), how.share))
    return Made(network.eval(), tokeniser, history)


def _same_end(network: CascadeNetwork, teacher: CascadeNetwork | None) -> bool:
    """Whether both end in one classifier: where a folder has none, each has drawn its own."""
    ends = [
        {} if own is None else own.classifiers[str(own.shape.depths[-1])].state_dict()
        for own in (network, teacher)
    ]
    return all(torch.equal(value, ends[1][name]) for name, value in ends[0].items())


def _state(network: CascadeNetwork) -> dict[str, Tensor]:
    return {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}


def _start(init: str | PathLike[str], shape: CascadeShape) -> CascadeNetwork:
    if not is_cascade(init):
        return CascadeNetwork.start(init, shape)
    network, _ = load_cascade(init)
    if network.shape != shape:
        raise InputError(f"{init} is a cascade of another shape: {network.shape}, not {shape}.")
    return network


def _teacher(folder: str | PathLike[str] | None, device: str) -> CascadeNetwork | None:
    if folder is None:
        return None
    from ..transformer.pair_network import encoder_layers, read_encoder

    layers = len(encoder_layers(read_encoder(folder, plain=True)[0]))
    return CascadeNetwork.start(folder, CascadeShape((layers,), reader=False)).to(device).eval()


def _phases(how: Making, sets: Sets, tokeniser: Any, teacher: CascadeNetwork | None) -> list[Phase]:
    phases = []
    if sets.transfer:
        if sets.negatives is None:
            raise InputError("The transfer step needs a file for sentences from elsewhere.")
        lists, reading = transfer_sets(sets.transfer, tokeniser, sets.negatives, root=sets.root)
        wanted = reading if how.shape.reader else None
        phases.append(Phase(lists, how.transfer, wanted, teacher))
    if sets.adapt:
        target = data.load_dataset(sets.adapt, root=sets.root)
        phases.append(Phase(WholeSource(target, tokeniser), how.adapt))
    if not phases:
        raise InputError("Expected a set to transfer from or to adapt to, got neither.")
    return phases


def cascade_card(
    made: Made, how: Making, sets: Sets, *, start: str, teacher: str, command: str
) -> str:
    """Markdown. Measures are those of each seed after its last epoch."""
    shape = how.shape
    used = [*sets.transfer, *filter(None, [sets.adapt])]
    weights = sum(weight.numel() for weight in made.network.parameters())
    lines = [
        "# cascade",
        "",
        f"- Classifiers after layers {', '.join(map(str, shape.depths))}, head `{shape.head}`"
        f"{', and a reader' if shape.reader else ''}: {weights:,} parameters",
        f"- Started from: {start}" + (f"; taught by: {teacher}" if teacher else ""),
        *(
            ["- Full depth was held to the start, whose own classifier it is"]
            if how.anchored
            else []
        ),
        f"- Seeds: {', '.join(map(str, how.seeds))}"
        f"{' (the mean of their weights)' if len(how.seeds) > 1 else ''}",
        "- Trained on:",
        *(f"  - {name} ({_licence(name)})" for name in used),
        "",
        "The weights are under the licences of the data, and of the start, that they come from.",
        "",
        "```",
        command,
        "```",
        "",
        *_measures(made, sets.dev),
    ]
    return "\n".join(lines)


def _licence(name: str) -> str:
    return LICENCES.get(name.partition(":")[0], "see the data")


def _measures(made: Made, dev: str | None) -> list[str]:
    rows = {seed: epochs[-1].dev for seed, epochs in made.history.items()}
    names = list(next(iter(rows.values())))
    if not names:
        return []
    header = [dev or "dev", *(f"seed {seed}" for seed in rows)]
    table = [header, ["---"] * len(header)]
    table += [[name, *(f"{row[name]:.2f}" for row in rows.values())] for name in names]
    return [f"| {' | '.join(row)} |" for row in table] + [""]
