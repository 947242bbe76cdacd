"""Generated pages are up to date, links lead somewhere, and commands in the docs exist."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

import askline
from askline.cli import cli
from research.benchmarks import first_answer

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("examples/*.md"),
    *ROOT.glob("research/*.md"),
    *ROOT.glob("research/notes/*.md"),
    *ROOT.glob("research/decisions/*.md"),
]


def _docs_program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cli_reference_is_up_to_date() -> None:
    """In a new process, because click caches help that other tests have formatted."""
    code = (
        "import sys, make_reference; sys.stdout.buffer.write(make_reference.reference().encode())"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, check=True
    )
    written = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert written == made.stdout.decode(), "run: make docs"


def test_http_reference_is_up_to_date() -> None:
    generator = _docs_program("make_reference")
    written = generator.HTTP_TARGET.read_text("utf-8")
    assert written == generator.http_reference(), "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_within_the_project_exist(page: Path) -> None:
    missing = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)", _without_code(page)):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            missing.append(link)
    assert missing == []


def test_the_navigation_of_the_site_has_every_page() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    pages = _docs_program("make_site").sources().values()
    assert {page.as_posix() for page in pages if page.suffix == ".md"} == listed


def test_the_python_reference_has_every_public_name() -> None:
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs/reference").glob("*.md"))
    documented = set(re.findall(r"^::: askline\.(\w+)$", pages, re.MULTILINE))
    assert set(askline.__all__) - documented == set()
    missing = [name for name in askline.__all__ if not inspect.getdoc(getattr(askline, name))]
    assert missing == []


def test_the_first_answer_takes_as_long_as_the_first_page_says() -> None:
    page = (ROOT / "docs" / "index.md").read_text("utf-8")
    measured = json.loads((ROOT / "research/results/first_answer.json").read_text("utf-8"))
    assert "takes less than a minute" in " ".join(page.split())
    assert measured["seconds to the first answer"] < 60
    assert [step["command"] for step in measured["steps"]] == first_answer.commands(page)


def _without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """The anchors that code hosts give the headings."""
    headings = re.findall(r"^#+ (.+)$", _without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(page: Path) -> list[list[str]]:
    """The words of each `askline …` command in the shell blocks of a page."""
    found = []
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        if match := re.search(r"(?:^|[|$] |\| *)(askline .*)", line):
            words = shlex.split(match[1], comments=True)
            found.append([word for word in words if word not in ("|", ">")])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_docs_have_the_options_they_are_given(page: Path) -> None:
    for words in commands(page):
        command: click.Command = cli
        rest = words[1:]
        while isinstance(command, click.Group) and rest:
            assert rest[0] in command.commands, words
            command = command.commands[rest.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        known |= {option for parameter in command.params for option in parameter.secondary_opts}
        given = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        assert given <= known | {"--help", "-h"}, words
