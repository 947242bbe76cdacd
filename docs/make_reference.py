"""
Write docs/cli.md from the commands themselves.

    python docs/make_reference.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from askline.cli import cli

TARGET = Path(__file__).parent / "cli.md"
_HEAD = """\
# The command line

Made from the commands' own help by `make docs`. Results go to stdout, messages and progress to
stderr. Exit codes: 0 done, 1 a ranker, an index or the machine failed, 2 what was given cannot be
used, 3 done except for some files that could not be read, 4 no answer found.
"""


def reference() -> str:
    """Every command's help, in one page."""
    return _HEAD + "".join(_sections(cli, "askline"))


def _sections(command: click.Command, path: str) -> Iterator[str]:
    settings = {**cli.context_settings, "terminal_width": 80}
    context = click.Context(command, info_name=path, **settings)
    yield f"\n## `{path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _sections(command.commands[name], f"{path} {name}")


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
