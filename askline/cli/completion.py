"""`askline completion`: print a shell completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]


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
