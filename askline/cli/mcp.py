"""`askline mcp`: a server for clients of the Model Context Protocol."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import click

from .options import ranker_option

__all__ = ["mcp"]


@click.command(short_help="Run a server for MCP clients.")
@click.option(
    "--index",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of the index to ask.",
)
@click.option(
    "--root",
    "roots",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder whose files may be asked and shown. Repeatable.  [default: none]",
)
@ranker_option
@click.option("--http", is_flag=True, help="Serve streamable HTTP, not standard input and output.")
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on, with --http.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65_535),
    default=8081,
    show_default=True,
    help="Port to listen on, with --http; 0 selects a free one.",
)
@click.option(
    "--open",
    "allow_anyone",
    is_flag=True,
    help="Allow requests from other machines, with --http. There is no password.",
)
def mcp(
    *,
    index: Path | None,
    roots: tuple[Path, ...],
    spec: str | None,
    http: bool,
    host: str,
    port: int,
    allow_anyone: bool,
) -> None:
    """
    Run a server for clients of the Model Context Protocol, such as coding assistants.

    Its tools are `ask`, `rank` and `show`. The ranker is loaded at the first call.

    \b
    Examples:
      askline mcp --index DIR
      askline mcp --root notes/ --http
    """
    if http and not allow_anyone and not _is_loopback(host):
        raise click.UsageError(
            f"--host {host} is open to other machines. Add --open if that is meant."
        )
    from ..integrations.mcp import create_server, serve_http
    from ..rankers.registry import DEFAULT_SPEC

    server = create_server(index, roots=roots, ranker=spec or DEFAULT_SPEC)
    if http:
        serve_http(
            server,
            host=host,
            port=port,
            on_listening=lambda url: click.echo(f"Listening on {url}", err=True),
        )
    else:
        server.run()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
