"""
The command line, one module per command or pair of related commands.

Results go to stdout, messages and progress to stderr. Exit codes: 0 done; 1 a ranker, an index or
the machine failed; 2 the input cannot be used; 3 done, but some files could not be read; 4 no
answer found; 130 interrupted. The modules import nothing heavy at their top, so that
`askline --help` is fast.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any

import click
from click.shell_completion import get_completion_class

from .. import __version__
from ..errors import AsklineError, InputError, LanguageWarning, MissingExtraError
from .config import config_path, read_config
from .terminal import COLOR_CHOICES, Color, environment_color, set_color

__all__ = ["cli", "main"]

# The commands of each section of the help, as `module` or `module:function`. A module is imported
# when its command is used, so that a question does not wait for the options of all trainings.
_SECTIONS: dict[str, dict[str, str]] = {
    "Answer questions": {
        "demo": "ask:demo",
        "ask": "ask",
        "index": "index",
        "status": "index:status",
        "cache": "cache",
        "serve": "serve",
        "mcp": "mcp",
    },
    "Rank and evaluate": {
        "rank": "rank",
        "rankers": "rank:rankers",
        "eval": "eval:eval_",
        "compare": "eval:compare",
        "data": "data",
    },
    "Train": {"train": "", "tune": "tune", "export": "export"},
    "Shell": {"completion": ""},
}
_ONE_QUESTION = ("ask", "demo", "rank")  # commands that mostly answer one question and end
_COMMANDS = {name: place for section in _SECTIONS.values() for name, place in section.items()}


def _load_command(name: str) -> click.Command:
    """Import a command."""
    if name == "completion":
        return completion
    if name == "train":
        return _train_group()
    module, _, function = _COMMANDS[name].partition(":")
    command: click.Command = getattr(import_module(f"{__name__}.{module}"), function or name)
    return command


def _train_group() -> click.Group:
    from .train_cascade import cascade, context, reader
    from .train_light import light_commands
    from .train_phrases import extractor, phrases
    from .train_transformer import transformer

    return click.Group(
        "train",
        [*light_commands(), transformer, cascade, context, reader, extractor, phrases],
        help="Train a network and write it as a model folder.",
    )


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """
    Print a shell completion script.

    Add one of these lines to the start-up file of your shell:

    \b
      bash:  eval "$(askline completion bash)"
      zsh:   eval "$(askline completion zsh)"
      fish:  askline completion fish | source
    """
    script = get_completion_class(shell)
    assert script is not None  # click supports these three shells
    group = ctx.find_root().command
    click.echo(script(group, {}, "askline", "_ASKLINE_COMPLETE").source())


class _FailureError(click.ClickException):
    """A ranker, a model or the machine failed."""

    exit_code = 1


class _InputError(click.ClickException):
    """The input cannot be used."""

    exit_code = 2


class _Interruption(click.ClickException):
    """The user pressed Ctrl-C."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("Interrupted.")

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002
        click.echo(f"\n{self.message}", err=True)


class _Group(click.Group):
    """
    Turns errors into one message without a traceback, and lists commands in sections.

    A command is imported when it is used; `commands` imports all of them.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._loaded: dict[str, click.Command] = {}
        super().__init__(*args, **kwargs)

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        for name in _COMMANDS:
            self._load(name)
        return self._loaded

    @commands.setter
    def commands(self, commands: MutableMapping[str, click.Command]) -> None:
        self._loaded.update(commands)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return self._load(cmd_name) if cmd_name in _COMMANDS else None

    def _load(self, name: str) -> click.Command:
        if name not in self._loaded:
            self._loaded[name] = _load_command(name)
        return self._loaded[name]

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except KeyboardInterrupt as error:  # else click prints "Aborted!"
            raise _Interruption from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (InputError, MissingExtraError) as error:
            raise _InputError(str(error)) from error
        except AsklineError as error:
            raise _FailureError(str(error)) from error
        except BrokenPipeError:
            raise  # the reader of our output has stopped; click exits without a message
        except OSError as error:
            place = f" {error.filename}" if error.filename else ""
            raise _InputError(f"Cannot use{place}: {error.strerror or error}.") from error
        except (KeyboardInterrupt, EOFError, click.Abort) as error:
            raise _Interruption from error

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        width = max(map(len, _COMMANDS))
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        ((command.name or "").ljust(width), command.get_short_help_str(100))
                        for command in map(self._load, names)
                    ]
                )


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print a LanguageWarning once and without the line of code that it came from."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_plainly(
            message: Warning | str, category: type[Warning], *place: Any, **options: Any
        ) -> None:
            if issubclass(category, LanguageWarning):
                from .output import print_wrapped

                print_wrapped(str(message))
            else:
                show(message, category, *place, **options)

        warnings.showwarning = show_plainly
        warnings.simplefilter("once", LanguageWarning)
        yield


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="askline")
@click.option(
    "--color",
    type=click.Choice(COLOR_CHOICES),
    help="Color the output: always, never, or auto, on a terminal.  [default: auto]",
)
@click.pass_context
def cli(ctx: click.Context, color: Color | None) -> None:
    """
    Find the sentence that answers a question.

    \b
    Examples:
      askline demo
      askline ask 'Who wrote Emma?' notes/ letter.pdf
    """
    ctx.with_resource(_plain_warnings())
    if ctx.invoked_subcommand in _ONE_QUESTION and "numpy" not in sys.modules:
        # The threads of OpenBLAS wait actively for work, on cores that the encoder needs.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    config = read_config(config_path())
    set_color(ctx, color or environment_color() or config.color or "auto")
    ctx.obj = config
    # click looks here for an option that neither the command line nor the environment has.
    settings = {"folder": config.index, "top": config.top, "threshold": config.threshold}
    given = {name: value for name, value in settings.items() if value is not None}
    ctx.default_map = {"ask": given}


def main() -> None:
    """Run the `askline` command."""
    for stream in (sys.stdout, sys.stderr):
        # JSON may contain lone surrogates; print them escaped instead of failing.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    cli(prog_name="askline")
