"""Run the code blocks of a page in order, in one folder and one Python session, like a reader."""

from __future__ import annotations

import ast
import doctest
import gc
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "pyproject.toml"
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_DECIMAL = re.compile(r"\d+\.\d+")
_TOLERANCE = 0.02
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_COMMAND_SECONDS = 600
_START_SECONDS = 60
CHECKED_ONLY = ("pip install", "make ", "python3 -m venv", ". .venv/bin/activate")
"""
Commands that change the machine or take hours: they are checked and not run.

`research/benchmarks/first_answer.py` runs those of the first page in an empty environment.
"""


class Block(NamedTuple):
    page: Path
    language: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, those inside lists and tabs too."""
    text = page.read_text("utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(page, match["language"], line, dedent(match["text"]))


def commands_of(block: Block) -> list[str]:
    """The lines of a `sh` block without comments; a line that ends in a backslash continues."""
    joined = block.text.replace("\\\n", " ")
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines()]
    return [line for line in lines if line]


class _OutputChecker(doctest.OutputChecker):
    """Allows small differences: int8 scores depend on the instructions of the CPU."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        wanted, found = _DECIMAL.findall(want), _DECIMAL.findall(got)
        if len(wanted) == len(found):
            shown = iter(
                one if abs(float(one) - float(other)) <= _TOLERANCE else other
                for one, other in zip(wanted, found, strict=True)
            )
            got = _DECIMAL.sub(lambda _: next(shown), got)
        return super().check_output(want, got, optionflags)


@dataclass
class PageSession:
    """A reader who copies the blocks of one page."""

    folder: Path
    replaced: Mapping[str, str] = field(default_factory=dict)
    """What the test environment has in another place: addresses of servers, a GPU."""
    variables: Mapping[str, str] = field(default_factory=dict)
    services: list[subprocess.Popen[str]] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    run_sql: Callable[[str], object] | None = None
    """Runs statements in the database of the page."""

    def run(self, block: Block) -> None:
        """Run a block by its language; other languages are checked where they can be."""
        runners: dict[str, Callable[[Block], object]] = {
            "python": self._python,
            "console": self._console,
            "sh": self._shell,
            "sql": self._sql,
            "json": lambda block: [json.loads(each) for each in _json_texts(block.text)],
            "toml": lambda block: _check_toml(block.text),
        }
        if block.language in runners:
            runners[block.language](block)

    def close(self) -> None:
        """Stop the services that the page started."""
        with warnings.catch_warnings():  # HTTP clients that the page opens and does not close
            warnings.simplefilter("ignore", ResourceWarning)
            self.names.clear()
            gc.collect()
        for service in self.services:
            service.terminate()
        for service in self.services:
            service.communicate(timeout=40)

    def _replace(self, text: str) -> str:
        for shown, real in self.replaced.items():
            text = text.replace(shown, real)
        return text

    def _python(self, block: Block) -> None:
        text = self._replace(block.text)
        if not text.startswith(">>>"):
            tree = ast.parse(text, str(block))
            exec(compile(tree, str(block), "exec"), self.names)
            return
        test = doctest.DocTestParser().get_doctest(text, {}, str(block), str(block.page), 0)
        test.globs = self.names  # not a copy: later blocks use the names of earlier ones
        runner = doctest.DocTestRunner(_OutputChecker(), optionflags=_FLAGS)
        assert runner.run(test, clear_globs=False).failed == 0, str(block)

    def _sql(self, block: Block) -> None:
        assert self.run_sql is not None, f"{block}: the page has no database"
        self.run_sql(block.text)

    def _console(self, block: Block) -> None:
        """Run each command after `$`; a backslash or an open quote continues it."""
        commands = re.split(r"^\$ ", self._replace(block.text), flags=re.MULTILINE)[1:]
        assert commands, str(block)
        if "ASKLINE_DATA" in block.text and "ASKLINE_DATA" not in self.environment:
            return  # the published sets are not part of the project
        for command in commands:
            line, _, shown = command.partition("\n")
            while line.endswith("\\") or (shown.startswith("> ") and _has_open_quotes(line)):
                more, _, shown = shown.partition("\n")
                line = f"{line}\n{more.removeprefix('> ')}"
            printed = self._bash(line, block)
            assert _OutputChecker().check_output(shown, printed, _FLAGS), f"{block}\n{printed}"

    def _shell(self, block: Block) -> None:
        for command in commands_of(block):
            if command.startswith(CHECKED_ONLY):
                check_command(command)
            elif command.startswith("askline serve"):
                self.start_service(self._replace(command))
            else:
                self._bash(self._replace(command), block)

    def _bash(self, command: str, block: Block) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
        )
        assert done.returncode == 0, f"{block}: {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start_service(self, command: str) -> None:
        """Start a service in the background, and wait until it answers."""
        expanded = subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {command}"], env=self.environment, capture_output=True
        )
        words = expanded.stdout.decode().split("\0")[:-1]
        if "--port" not in words:
            words += ["--port", self.replaced["8080"]]
        service = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=self.environment,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.services.append(service)
        wait_until_ready(f"http://127.0.0.1:{words[words.index('--port') + 1]}/ready", service)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a shell in which the page is followed."""
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),  # not another version that is installed
            "COLUMNS": "80",
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            **self.variables,
        }


def wait_until_ready(url: str, service: subprocess.Popen[str]) -> None:
    """Return when the service answers, and fail when it ended or takes too long."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        assert service.poll() is None, "the service ended"
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"no answer from {url}")


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def check_command(command: str) -> None:
    """The extras and the targets of make that a command names exist."""
    extras = set(re.findall(r"^([a-z-]+) = \[", PROJECT.read_text("utf-8"), re.MULTILINE))
    for extra in re.findall(r"pip install '\.\[([\w,-]+)\]'", command):
        assert set(extra.split(",")) <= extras, command
    for target in re.findall(r"^make ([\w-]+)", command):
        make = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert make.returncode == 0, make.stderr


def _check_toml(text: str) -> None:
    if sys.version_info >= (3, 11):
        import tomllib

        tomllib.loads(text)


def _json_texts(text: str) -> list[str]:
    """A block of JSON: one object, or one object per line."""
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return text.splitlines()
    return [text]


def _has_open_quotes(line: str) -> bool:
    try:
        shlex.split(line)
    except ValueError:
        return True
    return False
