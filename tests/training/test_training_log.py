from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from askline.errors import InputError, MissingExtraError
from askline.training.checkpoint import Epoch
from askline.training.training_log import (
    StepRecord,
    TrainingLog,
    check_plot_path,
    plot_training_log,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two epochs; the second was broken off once after its first note."""
    log = TrainingLog(tmp_path / "new" / "training.jsonl")
    log.add_step(StepRecord(1, 50, 100, 0.9, 1e-5))
    log.add_epoch(Epoch(1, 0.8, 3.0, {"MAP": 70.0, "MRR": 71.0}))
    for loss in (0.7, 0.6):
        log.add_step(StepRecord(2, 50, 100, loss, 2e-5))
    log.add_epoch(Epoch(2, 0.5, 3.0, {"MAP": 72.0, "MRR": 73.0}))
    return log.path


def test_lines_come_in_the_order_of_the_training(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["epoch"], row.get("step")) for row in rows] == [
        (1, 50),
        (1, None),
        (2, 50),
        (2, 50),
        (2, None),
    ]
    assert rows[0] == {"epoch": 1, "step": 50, "steps": 100, "loss": 0.9, "rate": 1e-5}
    assert rows[1] == {"epoch": 1, "loss": 0.8, "seconds": 3.0, "dev": {"MAP": 70.0, "MRR": 71.0}}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_training_log_is_plotted(path: Path, tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    out = plot_training_log(path, tmp_path / "plots" / f"training.{ending}")
    assert out.stat().st_size > 1000


def test_a_plot_without_matplotlib_names_the_extra(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[plots\]'"):
        plot_training_log(path, tmp_path / "training.png")


def test_a_plot_of_an_unknown_kind_is_refused_before_a_training(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    with pytest.raises(InputError, match=r"end with \.png, \.svg or \.pdf, got 'plot\.xyz'"):
        check_plot_path(tmp_path / "plot.xyz")
    check_plot_path(tmp_path / "plot.PNG")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "nothing to plot"),
        ("{", "cannot be read as a training log"),
        ("[1]", "cannot be read as a training log"),
        ("{}", "cannot be read as a training log"),
    ],
    ids=["empty", "cut", "list", "other"],
)
def test_other_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "training.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        plot_training_log(path, tmp_path / "training.png")
