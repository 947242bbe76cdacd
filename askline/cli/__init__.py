"""
The command line: the library's verbs, one file a command.

Results go to stdout, messages and progress to stderr. Exit codes: 0 done, 1 a ranker, an index or
the machine failed, 2 what was given cannot be used, 3 done except for some files that could not be
read, 4 no answer found, 130 stopped by the user. Modules of this room import nothing heavy at their
top, so that `askline --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from .. import __version__
from ..errors import AsklineError, InputError, MissingExtraError
from .ask import ask
from .compare import compare
from .completion import completion
from .data import data
from .demo import demo
from .eval import eval_
from .export import export
from .index import index
from .rank import rank
from .rankers import rankers
from .serve import serve
from .status import status
from .train import train
from .tune import tune

__all__ = ["cli", "main"]


class _Failed(click.ClickException):
    """A ranker, a model or the machine failed; shown as one message without a traceback."""

    exit_code = 1


class _Unusable(click.ClickException):
    """What was given cannot be used."""

    exit_code = 2


class _Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (InputError, MissingExtraError) as error:
            raise _Unusable(str(error)) from error
        except AsklineError as error:
            raise _Failed(str(error)) from error
        except BrokenPipeError:
            raise  # whoever read our output has stopped; click ends quietly
        except OSError as error:
            place = f" {error.filename}" if error.filename else ""
            raise _Unusable(f"Cannot use{place}: {error.strerror or error}.") from error


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="askline")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Ask a question, get the line that answers it."""
    if os.environ.get("NO_COLOR"):  # as no-color.org has it: set to anything
        ctx.color = False


for command in (
    *(ask, index, status, serve, rank, eval_, compare, data, rankers),
    *(train, tune, export, demo, completion),
):
    cli.add_command(command)


def main() -> None:
    """The `askline` command."""
    for stream in (sys.stdout, sys.stderr):
        # A lone surrogate out of someone's JSON is shown escaped rather than ending the program.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    cli(prog_name="askline")
