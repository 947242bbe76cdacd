"""The training log: lines of JSON that are written during a training, and a plot of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError, require_extra
from .checkpoint import Epoch
from .loop import TrainingStep

__all__ = ["StepRecord", "StepRecorder", "TrainingLog", "check_plot_path", "plot_training_log"]

_STEPS_PER_RECORD = 50
_SECONDS_PER_RECORD = 30.0


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The position of a training in an epoch. Numbers count from 1."""

    epoch: int
    step: int
    steps: int
    """In this epoch."""
    loss: float
    """The mean since the last record."""
    rate: float

    def __str__(self) -> str:
        return f"epoch {self.epoch}  step {self.step} of {self.steps}  loss {self.loss:.4f}"


@dataclass(slots=True)
class StepRecorder:
    """
    Hands on a record every 50 steps, and earlier if they take longer than half a minute.

    Losses are read from the device only then.
    """

    on_record: Callable[[StepRecord], None]
    _losses: list[Tensor] = field(default_factory=list)
    _last: float = field(default_factory=lambda: time.perf_counter())

    def __call__(self, step: TrainingStep) -> None:
        """Count one step of the loop."""
        if step.step == 1:
            self._losses.clear()
        self._losses.append(step.loss)
        late = time.perf_counter() - self._last > _SECONDS_PER_RECORD
        if late or step.step % _STEPS_PER_RECORD == 0:
            loss = float(torch.stack(self._losses).mean())
            self.on_record(StepRecord(step.epoch, step.step, step.steps, loss, step.learning_rate))
            self._losses.clear()
            self._last = time.perf_counter()


class TrainingLog:
    """
    A file with one line per record, for steps and for epochs, in the order in which they came.

    Lines are appended, so a training that is resumed has one log. Steps of an epoch that was
    interrupted appear twice; the later ones count.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)

    def add_step(self, step: StepRecord) -> None:
        """Add a line such as `{"epoch": 1, "step": 50, "steps": 400, "loss": …, "rate": …}`."""
        self._append(asdict(step))

    def add_epoch(self, epoch: Epoch) -> None:
        """Add a line such as `{"epoch": 1, "loss": …, "seconds": …, "dev": {"MAP": …}}`."""
        row = asdict(epoch)
        self._append({"epoch": row.pop("number"), **row})

    def _append(self, row: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def plot_training_log(log: str | PathLike[str], out: str | PathLike[str]) -> Path:
    """
    Plot the loss and, below it, the dev measures by epoch; the suffix of `out` sets the format.

    Needs matplotlib, which is in the extra `plots`.
    """
    library = _figure_library(Path(out))
    steps, epochs = _read(Path(log))
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


def check_plot_path(out: str | PathLike[str]) -> None:
    """Raise now what `plot_training_log` would raise about `out` after hours of training."""
    _figure_library(Path(out))


def _figure_library(out: Path) -> Any:
    # Not pyplot, which keeps every figure in a global list.
    library = require_extra("matplotlib.figure", purpose="A plot of a training", extra="plots")
    formats = library.Figure().canvas.get_supported_filetypes()
    if out.suffix[1:].lower() not in formats:
        raise InputError(
            f"Expected the name of a plot to end with .png, .svg or .pdf, got {out.name!r}."
        )
    return library


def _losses(steps: list[dict[str, Any]], epochs: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """(epochs done, loss), from the records within epochs if there are any."""
    if not steps:
        return [(row["epoch"], row["loss"]) for row in epochs]
    return [(row["epoch"] - 1 + row["step"] / row["steps"], row["loss"]) for row in steps]


def _read(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Records of steps and of epochs, the last of each."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found[row["epoch"], row.get("step", 0)] = row
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read as a training log: {error}") from error
    if not found:
        raise InputError(f"{path} is empty: there is nothing to plot yet.")
    rows = [found[key] for key in sorted(found)]
    return [row for row in rows if "step" in row], [row for row in rows if "step" not in row]
