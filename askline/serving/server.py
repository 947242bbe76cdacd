"""From settings to a listening service, and back when it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module

import uvicorn

from ..errors import InputError
from .access_log import ACCESS
from .metrics import Metrics
from .settings import Settings, check_exposure
from .worker_pool import Pool

__all__ = ["serve"]

_FINISH_SECONDS = 30
"""For requests that run when the service is told to stop."""


def serve(settings: Settings, on_ready: Callable[[str], None] = lambda _: None) -> None:
    """Serve until SIGINT or SIGTERM; what is running then is finished. Sets up logging."""
    check_exposure(settings)
    listening = _bind(settings)
    _set_up_logging()
    with listening:
        asyncio.run(_serve(settings, listening, on_ready))


async def _serve(
    settings: Settings, listening: socket.socket, on_ready: Callable[[str], None]
) -> None:
    metrics = Metrics()
    pool = Pool(settings, metrics)
    # The worker loads its models while this process loads the web framework.
    starting = asyncio.create_task(pool.start())
    making = await asyncio.to_thread(import_module, ".app", __package__)
    try:
        await starting
        app = making.create_app(settings, pool, metrics)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=settings.limits.connections,
            timeout_graceful_shutdown=_FINISH_SECONDS,
        )
        for name in ("SIGINT", "SIGTERM"):
            # uvicorn hears them while it runs and raises them again after: we have stopped by then.
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        on_ready(_address(listening))
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        await pool.stop()


def _bind(settings: Settings) -> socket.socket:
    """Before anything is loaded, so that a port in use is said at once."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, proto)
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1_024)
    except OSError as error:
        raise InputError(
            f"Cannot listen on {settings.host} port {settings.port}: {error.strerror or error}."
        ) from error
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _set_up_logging() -> None:
    """Messages and the access log to standard error; this is the program, not the library."""
    messages = logging.StreamHandler()
    messages.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[messages])
    access = logging.StreamHandler()
    access.setFormatter(logging.Formatter("%(message)s"))
    ACCESS.addHandler(access)
    ACCESS.setLevel(logging.INFO)
    ACCESS.propagate = False
