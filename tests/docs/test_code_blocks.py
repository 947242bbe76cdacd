"""
The code blocks of the README and of the site run, and print what they show.

All blocks of a page are run in order, in one folder. `page_setups.py` has what a reader of a page
brings along: files, a server, an encoder.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from .blocks import CHECKED_ONLY, ROOT, Block, PageSession, blocks_of, check_command, commands_of
from .page_setups import INTEGRATIONS, NOT_RUN, setup_of

README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [README, *sorted(ROOT.glob("docs/**/*.md"))]
WITH_CODE = [
    page
    for page in PAGES
    if page != INTEGRATIONS
    and any(block.language in {"python", "console", "sh"} for block in blocks_of(page))
]
LANGUAGES = {"python", "console", "sh", "json", "toml", "sql", "nginx", "haproxy", "text"}
MAX_README_WORDS = 700


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").split()) < MAX_README_WORDS


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_known_language(page: Path) -> None:
    assert {block.language for block in blocks_of(page)} <= LANGUAGES


def test_blocks_that_are_not_run_exist() -> None:
    """The list of exceptions has none that is not needed."""
    blocks = [block.text for page in PAGES for block in blocks_of(page)]
    for start in NOT_RUN:
        assert any(text.startswith(start) for text in blocks), start


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=() if page == README else pytest.mark.slow)
        for page in WITH_CODE
    ],
)
def test_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(setup_of(page, tmp_path, request))
        for name, value in session.variables.items():
            monkeypatch.setenv(name, value)
        stack.callback(session.close)
        for block in blocks_of(page):
            if not block.text.startswith(tuple(NOT_RUN)):
                session.run(block)


def test_commands_for_contributors_exist() -> None:
    for block in blocks_of(CONTRIBUTING):
        for command in commands_of(block):
            assert command.startswith(CHECKED_ONLY), command
            check_command(command)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ echo one\ntwo\n"),
        ("console", "$ exit 1\n"),
        ("python", ">>> 1 + 1\n3\n"),
        ("python", "assert 1 + 1 == 3\n"),
        ("sh", "false\n"),
        ("sh", "pip install '.[unknown]'\n"),
    ],
)
def test_a_wrong_block_fails(language: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        PageSession(tmp_path).run(Block(README, language, 1, text))
