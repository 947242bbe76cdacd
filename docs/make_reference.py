"""
Write docs/cli.md from the commands themselves, and docs/http.md from the service's OpenAPI.

    python docs/make_reference.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from askline.cli import cli
from askline.serving import Settings
from askline.serving.app import create_app
from askline.serving.metrics import Metrics
from askline.serving.openapi_reference import as_markdown
from askline.serving.worker_pool import Pool

TARGET = Path(__file__).parent / "cli.md"
HTTP_TARGET = Path(__file__).parent / "http.md"
_HTTP_HEAD = """\
# HTTP

Made from the service's OpenAPI by `make docs`; a running service shows the same at `/docs`, and the
OpenAPI itself at `/openapi.json`. How to run one, and what its clients may expect:
[the service](service.md).

"""
_HEAD = """\
# The command line

Made from the commands' own help by `make docs`. Results go to stdout, messages and progress to
stderr. Exit codes: 0 done, 1 a ranker, an index or the machine failed, 2 what was given cannot be
used, 3 done except for some files that could not be read, 4 no answer found.
"""


def reference() -> str:
    """Every command's help, in one page."""
    return _HEAD + "".join(_sections(cli, "askline"))


def http_reference() -> str:
    """Every route and record, in one page."""
    settings, metrics = Settings(), Metrics()
    app = create_app(settings, Pool(settings, metrics), metrics)
    return _HTTP_HEAD + as_markdown(app.openapi())


def _sections(command: click.Command, path: str) -> Iterator[str]:
    settings = {**cli.context_settings, "terminal_width": 80}
    context = click.Context(command, info_name=path, **settings)
    yield f"\n## `{path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _sections(command.commands[name], f"{path} {name}")


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    HTTP_TARGET.write_text(http_reference(), encoding="utf-8")
