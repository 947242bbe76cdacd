"""A training as lines of JSON, written while it goes on, and a plot of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import InputError, require_extra
from .checkpoint import Epoch

__all__ = [
    "Journal",
    "Step",
    "check_plot",
    "plot_journal",
]


@dataclass(frozen=True, slots=True)
class Step:
    """Where a training stands in an epoch. Both are counted from 1."""

    epoch: int
    step: int
    steps: int
    """In this epoch."""
    loss: float
    """The mean since the last such note."""
    rate: float

    def __str__(self) -> str:
        return f"epoch {self.epoch}  step {self.step} of {self.steps}  loss {self.loss:.4f}"


class Journal:
    """
    A file with a line for each note of a step and for each epoch, in the order they came.

    It is added to, so that a training that goes on after a kill has one journal. Steps of an epoch
    that was broken off come twice; the later ones count.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)

    def step(self, step: Step) -> None:
        """Add a line such as `{"epoch": 1, "step": 50, "steps": 400, "loss": …, "rate": …}`."""
        self._add(asdict(step))

    def epoch(self, epoch: Epoch) -> None:
        """Add a line such as `{"epoch": 1, "loss": …, "seconds": …, "dev": {"MAP": …}}`."""
        row = asdict(epoch)
        self._add({"epoch": row.pop("number"), **row})

    def _add(self, row: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def plot_journal(journal: str | PathLike[str], out: str | PathLike[str]) -> Path:
    """
    The loss and, below it, the dev measures over the epochs; the ending of `out` says the format.

    Needs the extra `plots`.
    """
    library = _library(Path(out))
    steps, epochs = _read(Path(journal))
    names = list(dict.fromkeys(name for row in epochs for name in row["dev"]))
    figure = library.Figure(figsize=(6, 5 if names else 2.5), layout="constrained")
    axes = figure.subplots(1 + bool(names), 1, sharex=True, squeeze=False)[:, 0]
    axes[0].plot(*zip(*_losses(steps, epochs), strict=True))
    axes[0].set_ylabel("loss")
    for name in names:
        points = [(row["epoch"], row["dev"][name]) for row in epochs if name in row["dev"]]
        axes[1].plot(*zip(*points, strict=True), marker="o", label=name)
    if names:
        axes[1].set_ylabel("dev, %")
        axes[1].legend()
    axes[-1].set_xlabel("epoch")
    path = Path(out).expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def check_plot(out: str | PathLike[str]) -> None:
    """Raise now what `plot_journal` would raise about `out` after hours of training."""
    _library(Path(out))


def _library(out: Path) -> Any:
    # Not pyplot, which keeps every figure in a global list.
    library = require_extra("matplotlib.figure", purpose="A plot of a training", extra="plots")
    formats = library.Figure().canvas.get_supported_filetypes()
    if out.suffix[1:].lower() not in formats:
        raise InputError(
            f"Expected a plot's name to end with .png, .svg or .pdf, got {out.name!r}."
        )
    return library


def _losses(steps: list[dict[str, Any]], epochs: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """(epochs done, loss), from the notes within epochs where there are any."""
    if not steps:
        return [(row["epoch"], row["loss"]) for row in epochs]
    return [(row["epoch"] - 1 + row["step"] / row["steps"], row["loss"]) for row in steps]


def _read(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Notes of steps and of epochs, the last word on each."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found[row["epoch"], row.get("step", 0)] = row
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no journal of a training: {error}") from error
    if not found:
        raise InputError(f"{path} is empty: there is nothing to plot yet.")
    rows = [found[key] for key in sorted(found)]
    return [row for row in rows if "step" in row], [row for row in rows if "step" not in row]
