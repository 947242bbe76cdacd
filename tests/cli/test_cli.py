"""What holds for all commands: help, errors, colors, interruption, completion."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from askline.cli import cli
from askline.rankers.registry import DEFAULT_SPEC

from .conftest import Run


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*each, id=each[0]) for each in commands(cli, "askline")]
)
def test_every_command_and_option_has_help(path: str, command: click.Command) -> None:
    assert command.help, f"{path} has no help"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.name} has no help"


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*each, id=each[0]) for each in commands(cli, "askline")]
)
def test_help_fits_80_columns(path: str, command: click.Command, run: Run) -> None:
    lines = run(*path.split()[1:], "--help").stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("path", ["askline", "askline data", "askline train", "askline tune"])
def test_help_lists_commands_with_whole_sentences(path: str, run: Run) -> None:
    names = path.split()[1:]
    group: click.Command = cli
    for name in names:
        assert isinstance(group, click.Group)
        group = group.commands[name]
    assert isinstance(group, click.Group)
    lines = run(*names, "--help").stdout.splitlines()
    for name in group.commands:
        [line] = [line for line in lines if line.startswith(f"  {name} ")]
        assert line.endswith(".")
        assert not line.endswith("...")


def test_help_names_the_default_ranker(run: Run) -> None:
    for command in ("ask", "rank", "demo"):
        text = " ".join(run(command, "--help").stdout.split())
        assert f"[default: {DEFAULT_SPEC}]" in text


def test_rankers_prints_names(run: Run) -> None:
    assert "bm25" in run("rankers").stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(run: Run, shell: str) -> None:
    assert "_ASKLINE_COMPLETE" in run("completion", shell).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "rr", "--on", "wikqa:test"], "Did you mean 'wikiqa"),
        (["eval", "rr", "--on", "wikiqa:tset"], "wikiqa:test"),
        (["eval", "rr", "--on", "wikiqa:test"], "ASKLINE_DATA"),
        (["eval", "cosnet", "--on", "wikiqa:test"], "No ranker 'cosnet'"),
        (["eval", "rr", "--on", "wikiqa:test", "--measures", "MPA"], "No measure 'MPA'"),
        (
            ["eval", "rr", "--on", "wikiqa:test", "--pad-to", "0"],
            "a positive integer, got 0.",
        ),
        (["eval", "rr", "jaccard", "--on", "x.jsonl", "--run", "r"], "name one SPEC"),
    ],
    ids=["set", "split", "no data folder", "ranker", "measure", "padding", "two runs"],
)
def test_a_wrong_name_gives_one_message(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_interrupting_a_command_prints_one_line(tmp_path: Path) -> None:
    # Where the tests run in the background, SIGINT is ignored, and children would ignore it too.
    handle = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{handle}; from askline.cli import main; main()"
    fifo = tmp_path / "fifo"  # reading it blocks until somebody writes
    os.mkfifo(fifo)
    command = [sys.executable, "-c", program, "rank", "Who?", str(fifo)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        open(fifo, "wb"),  # returns once the command has opened it for reading
    ):
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, stderr) == (130, b"", b"\nInterrupted.\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_interrupting_while_the_command_is_loaded_prints_one_line(tmp_path: Path) -> None:
    program = """
import builtins, signal
from askline.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)
real = builtins.__import__
def interrupted(name, *arguments, **options):
    if name == "click":
        signal.raise_signal(signal.SIGINT)
    return real(name, *arguments, **options)
builtins.__import__ = interrupted
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nInterrupted.\n")


def test_a_prompt_that_is_interrupted_is_not_aborted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def abort() -> None:
        raise click.Abort

    monkeypatch.setattr("askline.rankers.registry.ranker_names", abort)
    result = run("rankers")
    assert result.exit_code == 130
    assert "Abort" not in result.output
