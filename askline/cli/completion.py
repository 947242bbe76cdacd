"""`askline completion`: a script that teaches the shell askline's words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """
    Print the completion script for a shell.

    \b
    bash:  eval "$(askline completion bash)"
    zsh:   eval "$(askline completion zsh)"
    fish:  askline completion fish | source
    """
    writer = get_completion_class(shell)
    assert writer is not None  # the three choices are click's own
    group = ctx.find_root().command
    click.echo(writer(group, {}, "askline", "_ASKLINE_COMPLETE").source())
