"""`askline serve`: the HTTP service and its page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from ..errors import MissingExtraError
from .options import POSITIVE_INTEGER, allow_partial_option, complete_ranker

__all__ = ["serve"]


@click.command(short_help="Run the HTTP service and its web page.")
@click.option(
    "--index",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder of the index to search, created if it does not exist; or the database that "
    "`askline index --to` filled, postgresql://HOST/DATABASE.",
)
@allow_partial_option
@click.option(
    "--retriever",
    envvar="ASKLINE_RETRIEVER",
    show_envvar=True,
    metavar="URL",
    help="Search server that holds the texts, in place of an index: opensearch://HOST/INDEX, "
    "elasticsearch://HOST/INDEX or postgresql://HOST/DATABASE?table=TABLE.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65_535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 selects a free one.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    shell_complete=complete_ranker,
    help="Spec of a ranker to serve; the first is the default. Repeatable.",
)
@click.option(
    "--key",
    metavar="KEY",
    envvar="ASKLINE_KEY",
    show_envvar=True,
    help="API key that requests must send; it may also change documents.",
)
@click.option(
    "--keys",
    "keys_file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with accepted API keys, one per line: read:SHA256 or write:SHA256.",
)
@click.option(
    "--open",
    "allow_anyone",
    is_flag=True,
    help="Allow requests from other machines without a key.",
)
@click.option("--workers", type=POSITIVE_INTEGER, help="Worker processes.  [default: CPU cores]")
@click.option(
    "--queue",
    type=POSITIVE_INTEGER,
    default=64,
    show_default=True,
    help="Requests that may wait; more are answered with 429.",
)
@click.option(
    "--batch",
    "batch_size",
    type=POSITIVE_INTEGER,
    default=8,
    show_default=True,
    help="Requests that a worker ranks in one batch, if its ranker gains from that.",
)
@click.option(
    "--max-body",
    type=POSITIVE_INTEGER,
    default=4 * 2**20,
    show_default=True,
    help="Largest request, in bytes.",
)
@click.option(
    "--max-documents",
    type=POSITIVE_INTEGER,
    default=1_000,
    show_default=True,
    help="Most candidates per request.",
)
@click.option(
    "--max-tokens",
    type=POSITIVE_INTEGER,
    default=200_000,
    show_default=True,
    help="Most tokens per request, as the ranker counts them.",
)
@click.option(
    "--max-seconds",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    help="Most time per request.",
)
@click.option(
    "--max-connections",
    type=POSITIVE_INTEGER,
    default=256,
    show_default=True,
    help="Most idle connections per client address; behind a proxy, of all clients together.",
)
@click.option(
    "--drain-seconds",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="After SIGTERM, answer 503 on /ready and go on serving for SECONDS, so that a load "
    "balancer sends no more requests; then stop.",
)
@click.option("--log-text", is_flag=True, help="Write questions to the access log.")
def serve(
    *,
    index: str | None,
    allow_partial: bool,
    retriever: str | None,
    host: str,
    port: int,
    models: tuple[str, ...],
    key: str | None,
    keys_file: Path | None,
    allow_anyone: bool,
    workers: int | None,
    queue: int,
    batch_size: int,
    max_body: int,
    max_documents: int,
    max_tokens: int,
    max_seconds: float,
    max_connections: int,
    drain_seconds: float,
    log_text: bool,
) -> None:
    """
    Run the HTTP service: rerank, score, ask, a web page at /, a reference at /docs.

    Clients of Cohere, Jina, vLLM and TEI work unchanged. Ctrl-C or SIGTERM stops the service after
    running requests have finished.

    \b
    Examples:
      askline serve --index DIR
      askline serve \\
          --retriever 'postgresql://localhost/library?table=books&text=body'
      askline serve --host 0.0.0.0 --key "$KEY"
      askline serve --index postgresql://localhost/library --drain-seconds 5
    """
    if any(find_spec(module) is None for module in ("fastapi", "uvicorn", "prometheus_client")):
        raise MissingExtraError("Serving", "serve")  # checked without importing: that takes time
    from ..engine.threads import available_cores
    from ..serving.auth import ApiKeys
    from ..serving.limits import Limits
    from ..serving.server import run_server
    from ..serving.settings import Settings

    keys = ApiKeys.from_keys([key]) if key else ApiKeys()
    if keys_file:
        keys += ApiKeys.from_file(keys_file)
    settings = Settings(
        models=models,
        index=index,
        allow_partial=allow_partial,
        retriever=retriever,
        host=host,
        port=port,
        keys=keys,
        allow_anyone=allow_anyone,
        workers=workers or available_cores(),
        batch_size=batch_size,
        limits=Limits(
            body=max_body,
            documents=max_documents,
            tokens=max_tokens,
            seconds=max_seconds,
            queue=queue,
            connections=max(max_connections, Limits().connections),
            connections_per_address=max_connections,
        ),
        drain_seconds=drain_seconds,
        log_text=log_text,
    )
    run_server(settings, lambda url: click.echo(f"Listening on {url}", err=True))
