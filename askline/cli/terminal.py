"""
What the terminal can show: colors and links.

Colors follow, in this order, `--color`, NO_COLOR, FORCE_COLOR, `color` in the configuration file,
and whether the output is a terminal. Links are escape sequences (OSC 8) around a text that stays
readable without them; they are written only to a terminal that is known to support them.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from typing import Literal, get_args
from urllib.parse import quote

import click

__all__ = [
    "COLOR_CHOICES",
    "DEFAULT_LINK",
    "Color",
    "color_option",
    "environment_color",
    "file_link",
    "link_text",
    "set_color",
    "supports_links",
    "uses_color",
]

Color = Literal["auto", "always", "never"]
COLOR_CHOICES: tuple[Color, ...] = get_args(Color)
DEFAULT_LINK = "file://{host}{path}#{line}"
"""The fragment is the line; a terminal that does not know it opens the file at its start."""

_COLORS: dict[Color, bool | None] = {"auto": None, "always": True, "never": False}
_LINKING_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour")
_LINKING_PROGRAMS = frozenset(("iTerm.app", "WezTerm", "vscode", "Hyper", "ghostty", "rio"))
_LINKING_VARIABLES = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM")
_OLDEST_LINKING_VTE = 5000  # 0.50; earlier versions show parts of the escape sequence
_OLDEST_LINKING_TMUX = (3, 4)


def set_color(ctx: click.Context, color: Color | None) -> None:
    """Let all output of a command be colored or not; None and auto decide by the terminal."""
    if color is None:
        return
    ctx.color = _COLORS[color]
    if ctx.color is None and os.environ.get("TERM") == "dumb":
        ctx.color = False


def environment_color(environment: Mapping[str, str] = os.environ) -> Color | None:
    """The choice by NO_COLOR and FORCE_COLOR; empty values count as missing."""
    if environment.get("NO_COLOR"):  # https://no-color.org
        return "never"
    force = environment.get("FORCE_COLOR")  # https://force-color.org
    if not force:
        return None
    return "never" if force == "0" else "always"


def _use_color(ctx: click.Context, parameter: click.Parameter, value: Color | None) -> None:  # noqa: ARG001
    set_color(ctx, value)


color_option = click.option(
    "--color",
    type=click.Choice(COLOR_CHOICES),
    callback=_use_color,
    expose_value=False,
    help="Color the output: always, never, or auto, on a terminal.  [default: auto]",
)


def uses_color() -> bool:
    """Whether standard output is colored."""
    ctx = click.get_current_context(silent=True)
    if ctx is not None and ctx.color is not None:
        return ctx.color
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def supports_links(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether standard output is a terminal that shows links; FORCE_HYPERLINK decides first."""
    forced = environment.get("FORCE_HYPERLINK")
    if forced:
        return forced != "0"
    if not (sys.stdout.isatty() and uses_color()):
        return False
    if environment.get("TMUX"):
        return _tmux_version(environment) >= _OLDEST_LINKING_TMUX
    vte = environment.get("VTE_VERSION", "")
    return (
        environment.get("TERM", "").startswith(_LINKING_TERMS)
        or environment.get("TERM_PROGRAM") in _LINKING_PROGRAMS
        or any(environment.get(name) for name in _LINKING_VARIABLES)
        or (vte.isdecimal() and int(vte) >= _OLDEST_LINKING_VTE)
    )


def _tmux_version(environment: Mapping[str, str]) -> tuple[int, int]:
    if environment.get("TERM_PROGRAM") != "tmux":
        return 0, 0
    found = re.match(r"(\d+)\.(\d+)", environment.get("TERM_PROGRAM_VERSION", ""))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def file_link(path: str, *, unit: str, number: int, template: str = DEFAULT_LINK) -> str:
    """The address of a place in a file; `path` is absolute, and `unit` is line, page and so on."""
    url_path = quote(path.replace(os.sep, "/"), safe="/:")
    if not url_path.startswith("/"):  # a drive letter of Windows
        url_path = f"/{url_path}"
    if template == DEFAULT_LINK and unit != "line":
        template = "file://{host}{path}" + ("#page={line}" if unit == "page" else "")
    line = number if unit in ("line", "page") else 1
    return (
        template.replace("{host}", _host_name())
        .replace("{path}", url_path)
        .replace("{line}", str(line))
    )


def _host_name() -> str:
    """The name that lets a terminal tell local files from those of a remote shell."""
    try:
        return quote(socket.gethostname())
    except OSError:
        return ""


def link_text(text: str, url: str) -> str:
    """The text as a link in a terminal."""
    return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\"
