from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from askline.cli.progress import progress_bar, progress_count, progress_files, step_logger

Clock = Callable[[float], None]


@pytest.fixture
def tick(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Moves the clock that progress uses."""
    now = 0.0

    def forward(seconds: float) -> None:
        nonlocal now
        now += seconds

    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("askline.cli.progress.time", clock)
    return forward


def test_a_file_gets_one_line_per_minute(tick: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("Training", 1_000) as step:
        for _ in range(400):
            tick(0.5)
            step()
    assert capsys.readouterr().err.splitlines() == [
        "Training: 120 of 1,000, about 7 min left",
        "Training: 240 of 1,000, about 6 min left",
        "Training: 360 of 1,000, about 5 min left",
    ]


@pytest.mark.parametrize(
    ("total", "left"), [(2, "60 s"), (3, "2 min"), (1_000, "16.6 h")], ids=["s", "min", "h"]
)
def test_the_remaining_time_has_a_fitting_unit(
    total: int, left: str, tick: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("Training", total) as step:
        tick(60)
        step()
    assert capsys.readouterr().err == f"Training: 1 of {total:,}, about {left} left\n"


def test_without_a_total_the_line_has_a_count(
    tick: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_count("Files") as step:
        for _ in range(1_900):
            tick(0.0625)
            step()
    assert capsys.readouterr().err == "Files: 960\n"


@pytest.mark.parametrize(
    "shown", [lambda: progress_bar("Ranking", 50), lambda: progress_count("Files")]
)
def test_a_file_gets_no_line_in_the_first_minute(
    shown: Callable[[], object], tick: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown() as step:  # type: ignore[attr-defined]
        for _ in range(50):
            tick(1)
            step()
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_after_two_seconds(
    tick: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("Ranking", 4) as step:
        tick(1)
        step()
        quiet = capsys.readouterr().err
        tick(2)
        step()
    assert quiet == ""
    assert "Ranking" in capsys.readouterr().err


def test_a_terminal_keeps_the_last_count(
    tick: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_count("Files") as step:
        for _ in range(7):
            tick(1)
            step()
    assert capsys.readouterr().err.endswith("\rFiles: 7\n")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_files_are_shown_with_their_speed_and_what_is_left(
    tick: Clock,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr("askline.cli.progress.Thread", _ThreadAtOnce)
    with progress_files(lambda: 400_000_000) as step:
        for _ in range(61):
            tick(1)
            step(2_000_000)
    last = "Files: 61, 122 MB of 400 MB, 2.0 MB/s, about 2 min left"
    assert capsys.readouterr().err.endswith(f"{last}\n")


def test_the_time_left_is_not_estimated_from_a_first_small_file(
    tick: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("askline.cli.progress.Thread", _ThreadAtOnce)
    with progress_files(lambda: 2_000_000) as step:
        tick(3)
        step(30)
        assert capsys.readouterr().err == "\rFiles: 1, 0 MB of 2 MB, 0.0 MB/s"
        tick(1)
        step(1_000_000)
    assert capsys.readouterr().err.endswith("about 4 s left\n")


class _ThreadAtOnce:
    def __init__(self, target: Callable[[], None], daemon: bool) -> None:
        assert daemon
        self.start = target


def test_step_logger_prints_every_twenty_seconds_and_the_last_step(
    tick: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    log = step_logger()
    for done in range(1, 1_009):
        tick(0.125)
        log("seed 1", done, 1_008, f"loss {1 / done:.3f}")
    assert capsys.readouterr().err.splitlines() == [
        *(f"seed 1  step {done} of 1,008  loss {1 / done:.3f}" for done in range(160, 961, 160)),
        "seed 1  step 1,008 of 1,008  loss 0.001",
    ]
