"""The code blocks of the README and of the guides print what they show."""

from __future__ import annotations

import ast
import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PROJECT = ROOT / "pyproject.toml"
GENERATED = {ROOT / "docs" / "reference" / "cli.md", ROOT / "docs" / "reference" / "http.md"}
PAGES = [README, *sorted(set(ROOT.glob("docs/**/*.md")) - GENERATED)]
RUN_PAGES = [
    pytest.param(page, id=page.name, marks=() if page == README else pytest.mark.slow)
    for page in PAGES
]
LANGUAGES = {"python", "console", "sh", "json", "sql", ""}
MAX_README_WORDS = 700
DECIMAL = re.compile(r"\d+\.\d+")
TOLERANCE = 0.02
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    page: Path
    language: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


class OutputChecker(doctest.OutputChecker):
    """Allows small differences: int8 scores depend on the instructions of the CPU."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        wanted, found = DECIMAL.findall(want), DECIMAL.findall(got)
        if len(wanted) == len(found):
            shown = iter(
                one if abs(float(one) - float(other)) <= TOLERANCE else other
                for one, other in zip(wanted, found, strict=True)
            )
            got = DECIMAL.sub(lambda _: next(shown), got)
        return super().check_output(want, got, optionflags)


def read_blocks(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page) if block.language in languages]


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Block(page, match[1], text.count("\n", 0, match.start()) + 1, match[2])


def commands_of(block: Block) -> list[str]:
    """The lines of a `sh` block without comments; a line that ends in a backslash continues."""
    joined = block.text.replace("\\\n", " ")
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines()]
    return [line for line in lines if line]


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").split()) < MAX_README_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_has_a_known_language(page: Path) -> None:
    assert {block.language for block in blocks_of(page)} <= LANGUAGES


@pytest.mark.parametrize("page", RUN_PAGES)
def test_python_sessions_print_what_they_show(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All `>>>` blocks of a page are one session, as a reader would type them."""
    blocks = [block for block in blocks_of(page) if block.language == "python"]
    session = "\n".join(block.text for block in blocks if block.text.startswith(">>>"))
    if not session:
        pytest.skip("no session on this page")
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(OutputChecker(), optionflags=FLAGS).run(test).failed == 0


@pytest.mark.parametrize(
    "block", [b for b in read_blocks("python") if not b.text.startswith(">>>")], ids=str
)
def test_python_without_a_session_compiles_and_its_imports_exist(block: Block) -> None:
    """These blocks need a server or files of the reader."""
    for node in ast.parse(block.text).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            exec(compile(ast.Module([node], []), str(block), "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_blocks_print_what_they_show(page: Path, tmp_path: Path) -> None:
    """Later blocks of a page find the files that earlier ones wrote."""
    for block in blocks_of(page):
        if block.language != "console":
            continue
        if "ASKLINE_DATA" not in block.text or os.environ.get("ASKLINE_DATA"):
            run_console(block, tmp_path)


def run_console(block: Block, folder: Path) -> None:
    """Run each command after `$`; a backslash or an open quote continues it in the next line."""
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    assert commands
    settings = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    for command in commands:
        line, _, shown = command.partition("\n")
        while line.endswith("\\") or (shown.startswith("> ") and _has_open_quotes(line)):
            more, _, shown = shown.partition("\n")
            line = f"{line}\n{more.removeprefix('> ')}"
        done = subprocess.run(
            line, shell=True, cwd=folder, env=settings, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert OutputChecker().check_output(shown, done.stdout, FLAGS), done.stdout


def _has_open_quotes(line: str) -> bool:
    try:
        shlex.split(line)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("block", read_blocks("sh"), ids=str)
def test_extras_and_make_targets_exist(block: Block) -> None:
    """
    These commands install, train, serve or need files of the reader, so they are not run.

    `test_docs.py` checks the options of `askline` commands.
    """
    extras = set(re.findall(r"^([a-z]+) = \[", PROJECT.read_text("utf-8"), re.MULTILINE))
    for command in commands_of(block):
        for extra in re.findall(r"pip install '\.\[([\w,]+)\]'", command):
            assert set(extra.split(",")) <= extras, command
        for target in re.findall(r"^make (\w+)", command):
            make = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
            assert make.returncode == 0, make.stderr
