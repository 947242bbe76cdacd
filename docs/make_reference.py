"""
Generate docs/reference: cli.md from the help of the commands, http.md from the OpenAPI document.

    python docs/make_reference.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from askline.cli import cli
from askline.serving.app import create_app
from askline.serving.monitoring import Metrics
from askline.serving.routes.page import as_markdown
from askline.serving.settings import Settings
from askline.serving.worker_pool import WorkerPool

TARGET = Path(__file__).parent / "reference" / "cli.md"
HTTP_TARGET = Path(__file__).parent / "reference" / "http.md"
_HTTP_HEAD = """\
# HTTP reference

Generated from the OpenAPI document by `make docs`. A running service has this reference at `/docs`
and the OpenAPI document at `/openapi.json`. How to run it: [HTTP service](../guides/service.md).

"""
_HEAD = """\
# Command-line reference

Generated from the help of the commands by `make docs`. Results go to stdout, messages and progress
to stderr.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a ranker, an index or the machine failed |
| 2 | the input cannot be used |
| 3 | done, but some files could not be read |
| 4 | no answer found |
| 130 | interrupted with Ctrl-C |
"""


def reference() -> str:
    """The help of all commands as one page."""
    return _HEAD + "".join(_sections(cli, "askline"))


def http_reference() -> str:
    """All routes and schemas as one page."""
    settings, metrics = Settings(), Metrics()
    app = create_app(settings, WorkerPool(settings, metrics), metrics)
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
