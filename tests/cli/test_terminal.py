from __future__ import annotations

import os
import socket
import sys

import pytest

from askline.cli import terminal
from askline.cli.terminal import environment_color, file_link, supports_links


@pytest.mark.parametrize(
    ("environment", "color"),
    [
        ({}, None),
        ({"NO_COLOR": "", "FORCE_COLOR": ""}, None),
        ({"NO_COLOR": "1"}, "never"),
        ({"FORCE_COLOR": "1"}, "always"),
        ({"FORCE_COLOR": "0"}, "never"),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "never"),
    ],
)
def test_color_by_environment(environment: dict[str, str], color: str | None) -> None:
    assert environment_color(environment) == color


@pytest.mark.parametrize(
    ("environment", "links"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "6003"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4800"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-256color", "WT_SESSION": "1"}, True),
        ({"TMUX": "x", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4"}, True),
        ({"TMUX": "x", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.3a"}, False),
        ({"TERM": "screen", "TMUX": "x", "VTE_VERSION": "6003"}, False),
        ({"TERM": "xterm-kitty", "FORCE_HYPERLINK": "0"}, False),
        ({"TERM": "dumb", "FORCE_HYPERLINK": "1"}, True),
    ],
)
def test_links_by_terminal(
    environment: dict[str, str], links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert supports_links(environment) is links


def test_a_pipe_has_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert not supports_links({"TERM": "xterm-kitty"})


@pytest.mark.skipif(os.sep != "/", reason="POSIX paths")
@pytest.mark.parametrize(
    ("unit", "template", "url"),
    [
        ("line", terminal.DEFAULT_LINK, "file://{host}/my%20notes/a%23b.md#7"),
        ("page", terminal.DEFAULT_LINK, "file://{host}/my%20notes/a%23b.md#page=7"),
        ("paragraph", terminal.DEFAULT_LINK, "file://{host}/my%20notes/a%23b.md"),
        ("line", "vscode://file{path}:{line}", "vscode://file/my%20notes/a%23b.md:7"),
    ],
)
def test_the_address_of_a_place(unit: str, template: str, url: str) -> None:
    found = file_link("/my notes/a#b.md", unit=unit, number=7, template=template)
    assert found == url.replace("{host}", socket.gethostname())
