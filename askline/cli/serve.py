"""`askline serve`: the HTTP service and its page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from ..errors import MissingExtraError
from .options import complete_ranker

__all__ = ["serve"]


@click.command()
@click.option(
    "--index",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of the index to ask; made where it is missing.",
)
@click.option(
    "--retriever",
    envvar="ASKLINE_RETRIEVER",
    metavar="URL",
    help="In place of an index, a server that holds the texts: opensearch://HOST/INDEX, "
    "elasticsearch://HOST/INDEX or postgresql://HOST/DATABASE?table=TABLE.  "
    "[env: ASKLINE_RETRIEVER]",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8080,
    show_default=True,
    help="And this port; 0 takes a free one.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    shell_complete=complete_ranker,
    help="A ranker's spec text; may be given again. The first is the default.",
)
@click.option("--key", envvar="ASKLINE_KEY", help="Ask for this bearer key.  [env: ASKLINE_KEY]")
@click.option(
    "--keys",
    "keys_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Ask for a key whose SHA-256 stands in this file, one a line.",
)
@click.option(
    "--open", "may_be_open", is_flag=True, help="Listen beyond this machine without a key."
)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes that rank.  [default: cores]"
)
@click.option(
    "--queue",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Requests that may wait; others get 429.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Requests that a worker ranks together, where its ranker is faster so.",
)
@click.option(
    "--max-body",
    "body",
    type=click.IntRange(min=1),
    default=4 * 2**20,
    show_default=True,
    help="Bytes of a request.",
)
@click.option(
    "--max-documents",
    "documents",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Candidates of a request.",
)
@click.option(
    "--max-tokens",
    "tokens",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    help="Words of a request.",
)
@click.option("--log-text", is_flag=True, help="Write questions into the access log.")
def serve(
    index: Path | None,
    *,
    models: tuple[str, ...],
    key: str | None,
    keys_file: Path | None,
    workers: int | None,
    **options: Any,
) -> None:
    """
    Serve HTTP: rerank, score, ask, a page at /, a reference at /docs.

    Clients of Cohere, Jina, vLLM and TEI work unchanged. Ctrl-C or SIGTERM stops it when what is
    running is done.

    \b
    askline serve --index DIR
    askline serve --retriever 'postgresql://localhost/library?table=books&text=body'
    askline serve --host 0.0.0.0 --key "$KEY"
    """
    if any(find_spec(module) is None for module in ("fastapi", "uvicorn", "prometheus_client")):
        raise MissingExtraError("Serving", "serve")  # they are imported while the model loads
    from ..serving import Limits, Settings
    from ..serving.api_keys import Keys
    from ..serving.server import serve as run

    limits = Limits(
        **{name: options.pop(name) for name in ("body", "documents", "tokens", "queue")}
    )
    keys = (Keys.of([key]) if key else Keys()) + (Keys.read(keys_file) if keys_file else Keys())
    if workers:
        options["workers"] = workers
    settings = Settings(models, index, keys=keys, limits=limits, **options)
    run(settings, lambda address: click.echo(f"Listening on {address}", err=True))
