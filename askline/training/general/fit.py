"""Several trainings from one start, their mean, and a step back towards the start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from safetensors.torch import load_file, save_file

from ...errors import InputError
from ..recipe import Epoch
from ..transformer.averaging import average, blend
from ..transformer.journal import Journal, Step
from ..transformer.loop import train_transformer
from ..transformer.network import PairNetwork
from ..transformer.recipe import Phase, TransformerRecipe
from ..transformer.sampling import ListSource

__all__ = ["GeneralRecipe", "general_run", "merged", "run_file"]


@dataclass(frozen=True, slots=True)
class GeneralRecipe:
    """Chosen on four dev sets, by MAP and by what padding costs: research/notes/transformers.md."""

    transfer: TransformerRecipe = field(default_factory=lambda: TransformerRecipe(keep="last"))
    seeds: tuple[int, ...] = (1, 2, 3)
    share: float = 0.7
    """How far to go from the start to the mean of the runs."""

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise InputError(f"seeds must be different and at least one, got {self.seeds}.")
        if not 0 <= self.share <= 1:
            raise InputError(f"share must be from 0 to 1, got {self.share}.")


def run_file(folder: Path, seed: int) -> Path:
    """Where the weights of a finished run are."""
    return folder / f"run-{seed}.safetensors"


def general_run(
    init: str | PathLike[str],
    lists: ListSource,
    recipe: TransformerRecipe,
    folder: Path,
    *,
    device: str = "cpu",
    depth: int | None = None,
    on_step: Callable[[Step], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    One training from the start, its weights written to `run_file(folder, recipe.seed)`.

    Runs do not depend on each other, so they may be made at the same time, on several GPUs or by
    several processes on one. One that was broken off goes on after its last whole epoch.
    """
    folder.mkdir(parents=True, exist_ok=True)
    out = run_file(folder, recipe.seed)
    checkpoint = out.with_suffix(".checkpoint.pt")
    journal = Journal(out.with_suffix(".jsonl"))
    network = PairNetwork.start(init, depth=depth).to(device)

    def noted(step: Step) -> None:
        journal.step(step)
        on_step(step)

    history = train_transformer(
        network,
        [Phase(lists, recipe)],
        checkpoint=checkpoint,
        on_step=noted,
        on_epoch=journal.epoch,
        on_note=on_note,
    )
    draft = out.with_suffix(".tmp")
    save_file({name: value.cpu() for name, value in network.state_dict().items()}, draft)
    draft.replace(out)
    checkpoint.unlink()
    return history


def merged(network: PairNetwork, folder: Path, seeds: Sequence[int], share: float) -> None:
    """Give a network at the start the mean of finished runs, `share` of the way from the start."""
    start = {name: value.cpu() for name, value in network.state_dict().items()}
    mean = average([load_file(run_file(folder, seed)) for seed in seeds])
    network.load_state_dict(blend(start, mean, share))
