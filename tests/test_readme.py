"""The code blocks of the README and of some pages print what they show."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [ROOT / "docs" / "corpus.md"]
"""Pages whose later blocks use what earlier blocks created."""


class Block(NamedTuple):
    language: str
    line: int
    text: str


def blocks(page: Path = README) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(match[1], text.count("\n", 0, match.start()) + 1, match[2])
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def of(*languages: str, page: Path = README) -> list[Block]:
    return [block for block in blocks(page) if block.language in languages]


def name(block: Block) -> str:
    return f"line {block.line}"


def test_every_block_has_a_language_that_is_tested() -> None:
    assert {block.language for block in blocks()} <= {"python", "console", "sh"}
    assert of("python")
    assert of("console")
    assert of("sh")


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.name)
def test_python_blocks_print_what_they_show(page: Path) -> None:
    # One session for all blocks of a page.
    session = "\n".join(block.text for block in of("python", page=page))
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


@pytest.mark.parametrize("block", of("console"), ids=name)
def test_console_blocks_print_what_they_show(block: Block, tmp_path: Path) -> None:
    if "ASKLINE_DATA" in block.text and not os.environ.get("ASKLINE_DATA"):
        pytest.skip("ASKLINE_DATA is not set: this block measures a real dataset")
    run_console(block, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_blocks_of_a_page_print_what_they_show(page: Path, tmp_path: Path) -> None:
    for block in of("console", page=page):
        run_console(block, tmp_path)


def run_console(block: Block, folder: Path) -> None:
    """Run each command after `$`; a backslash or a line that begins with `>` continues it."""
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    assert commands
    settings = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    for command in commands:
        line, _, shown = command.partition("\n")
        while line.endswith("\\") or shown.startswith("> "):
            more, _, shown = shown.partition("\n")
            line = f"{line}\n{more.removeprefix('> ')}"
        done = subprocess.run(
            line, shell=True, cwd=folder, env=settings, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(shown, done.stdout, flags), done.stdout


@pytest.mark.parametrize("block", of("sh"), ids=name)
def test_make_targets_exist(block: Block) -> None:
    """The commands themselves are not run, because they create environments."""
    targets = re.findall(r"^make (\w+)", block.text, re.MULTILINE)
    assert targets
    for target in targets:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
