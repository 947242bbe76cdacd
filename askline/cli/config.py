"""
The configuration file: defaults for options of the command line.

It is `$ASKLINE_CONFIG`, or `askline/config.toml` in the user's configuration folder:

    index = "~/notes-index"   # what `askline ask` searches if no source is named
    top = 5
    threshold = 0.4
    color = "auto"
    link = "vscode://file{path}:{line}"

An option of the command line wins over an environment variable, which wins over the file.

Python 3.10 has no TOML reader. There, a reader of `key = value` lines is used instead, which knows
comments, strings, numbers, true and false.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..engine.user_folders import user_folder
from ..errors import DataError, Problem, unknown_name_message
from .terminal import COLOR_CHOICES, DEFAULT_LINK, Color

__all__ = ["Config", "config_path", "parse_key_value_lines", "read_config"]

_LINE = re.compile(
    r"""\s*([A-Za-z0-9_-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^"'#\s]+)\s*(?:\#.*)?"""
)
_NUMBER = re.compile(r"[+-]?[0-9][0-9_]*(\.[0-9_]+)?([eE][+-]?[0-9]+)?")
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\t": "\t", "\\r": "\r"}


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of the file; None where it has none."""

    index: str | None = None
    top: int | None = None
    threshold: float | None = None
    color: Color | None = None
    link: str = DEFAULT_LINK
    """The form of links, with {host}, {path} and {line}; empty for no links."""


def config_path() -> Path:
    """Where the file is, whether it exists or not."""
    if named := os.environ.get("ASKLINE_CONFIG"):
        return Path(named).expanduser()
    return user_folder("config") / "config.toml"


def read_config(path: Path) -> Config:
    """The settings; the defaults if there is no file. DataError names the lines that are wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        if "ASKLINE_CONFIG" in os.environ:
            raise DataError([Problem(str(path), 0, "There is no such file.")]) from None
        return Config()
    except UnicodeDecodeError as error:
        raise DataError([Problem(str(path), 0, f"Must be UTF-8: {error.reason}.")]) from error
    found = _parse(path, text)
    problems = [
        Problem(str(path), _line_of(text, key), message)
        for key, value in found.items()
        if (message := _problem(key, value))
    ]
    if problems:
        raise DataError(problems)
    return Config(
        # `_problem` has checked the types.
        index=_index(found.get("index"), path),
        top=cast("int | None", found.get("top")),
        threshold=cast("float | None", found.get("threshold")),
        color=cast("Color | None", found.get("color")),
        link=cast(str, found.get("link", DEFAULT_LINK)),
    )


def _index(value: object, path: Path) -> str | None:
    """The folder of the index; a relative one is relative to the file."""
    return None if value is None else str(path.parent / Path(str(value)).expanduser())


def _parse(path: Path, text: str) -> Mapping[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\(at line (\d+), column \d+\)", str(error))
            message = str(error) if found is None else str(error)[: found.start()].strip()
            line = int(found[1]) if found else 0
            raise DataError([Problem(str(path), line, f"Not TOML: {message}.")]) from error
    else:
        return parse_key_value_lines(text, str(path))


def parse_key_value_lines(text: str, name: str) -> dict[str, object]:
    """The part of TOML that the file needs, for Python 3.10; `name` is for error messages."""
    found: dict[str, object] = {}
    problems = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        try:
            if match is None:
                raise ValueError("expected key = value")
            if match[1] in found:
                raise ValueError(f"{match[1]} is set twice")
            found[match[1]] = _value(match[2])
        except ValueError as error:
            problems.append(Problem(name, number, f"Not TOML: {error}, got {line.strip()!r}."))
    if problems:
        raise DataError(problems)
    return found


def _value(text: str) -> object:
    if text.startswith("'"):
        return text[1:-1]
    if text.startswith('"'):
        return re.sub(r"\\.", lambda match: _unescape(match[0]), text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    if not _NUMBER.fullmatch(text):
        raise ValueError("a value must be a number, true, false or in quotes")
    return float(text) if re.search(r"[.eE]", text) else int(text)


def _unescape(escape: str) -> str:
    if escape not in _ESCAPES:
        raise ValueError(f"unknown escape {escape}")
    return _ESCAPES[escape]


def _is_top(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_probability(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _is_link(value: object) -> bool:
    return isinstance(value, str) and (not value or "{path}" in value)


_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "index": (lambda value: isinstance(value, str) and bool(value), "a folder in quotes"),
    "top": (_is_top, "a positive integer"),
    "threshold": (_is_probability, "a probability from 0 to 1"),
    "color": (lambda value: value in COLOR_CHOICES, "auto, always or never, in quotes"),
    "link": (_is_link, 'an address that contains {path}, or "" for no links'),
}


def _problem(key: str, value: object) -> str:
    """What is wrong with a setting; empty if nothing is."""
    if key not in _CHECKS:
        return unknown_name_message("setting", key, _CHECKS)
    is_valid, expected = _CHECKS[key]
    return "" if is_valid(value) else f"{key} must be {expected}, got {value!r}."


def _line_of(text: str, key: str) -> int:
    """The line that sets a key; 0 if it cannot be found."""
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""", line):
            return number
    return 0
