"""Start the service: bind the port, set up logging, start workers and web server; stop them all."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import FrameType

import uvicorn

from ..errors import InputError
from .access_log import ACCESS_LOG
from .connections import ConnectionLimiter
from .metrics import Metrics
from .settings import Settings, check_exposure
from .worker_pool import WorkerPool

__all__ = ["run_server"]

_SHUTDOWN_SECONDS = 25
"""
Time for requests to finish when the service is stopped. After it, they get status 503. Container
managers kill a service after 30 seconds or more.
"""
_OTHER_FILES = 256  # open files besides connections: pipes to workers, log files


def run_server(settings: Settings, on_ready: Callable[[str], None] = lambda _: None) -> None:
    """
    Serve until SIGINT or SIGTERM, then finish running requests. Configures logging.

    `on_ready` is called with the URL once requests are accepted.
    """
    check_exposure(settings)
    listener = _bind(settings)
    _configure_logging()
    with listener:
        asyncio.run(_serve(settings, listener, on_ready))


async def _serve(
    settings: Settings, listener: socket.socket, on_ready: Callable[[str], None]
) -> None:
    metrics = Metrics()
    pool = WorkerPool(settings, metrics)
    # The worker loads its models while this process imports the web framework.
    starting = asyncio.create_task(pool.start())
    app_module = await asyncio.to_thread(import_module, ".app", __package__)
    try:
        await starting
        app = app_module.create_app(settings, pool, metrics)
        limits = settings.limits
        config = uvicorn.Config(
            app,
            http=ConnectionLimiter(limits).protocol,  # type: ignore[arg-type]
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=limits.header_bytes,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        _allow_open_files(limits.connections + limits.queue + _OTHER_FILES)
        for name in ("SIGINT", "SIGTERM"):
            # uvicorn handles them while it runs and raises them again at its end. By then the
            # service has stopped, so they are ignored.
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        on_ready(_url(listener))
        server = _DrainingServer(config, pool, settings.drain_seconds)
        await server.serve(sockets=[listener])
    finally:
        await pool.stop()


class _DrainingServer(uvicorn.Server):
    """Reports that it is not ready, serves on for some seconds, and stops; at once for Ctrl-C."""

    def __init__(self, config: uvicorn.Config, pool: WorkerPool, seconds: float) -> None:
        super().__init__(config)
        self._pool, self._seconds = pool, seconds
        self._loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called for SIGINT and SIGTERM. A second signal ends the draining."""
        is_first = not self._pool.is_draining
        self._pool.is_draining = True
        if sig == signal.SIGTERM and is_first and self._seconds:
            stop = partial(self.handle_exit, sig, frame)
            self._loop.call_soon_threadsafe(self._loop.call_later, self._seconds, stop)
        else:
            super().handle_exit(sig, frame)


def _bind(settings: Settings) -> socket.socket:
    """Bind the port before anything is loaded, so that a port in use is reported at once."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1_024)
    except OSError as error:
        advice = " Choose another with --port." if error.errno == errno.EADDRINUSE else ""
        raise InputError(
            f"Cannot listen on {settings.host} port {settings.port}: {error.strerror or error}."
            f"{advice}"
        ) from error
    return listener


def _allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, as far as the system allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _configure_logging() -> None:
    """Write messages and the access log to standard error."""
    messages = logging.StreamHandler()
    messages.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[messages])
    access = logging.StreamHandler()
    access.setFormatter(logging.Formatter("%(message)s"))
    ACCESS_LOG.addHandler(access)
    ACCESS_LOG.setLevel(logging.INFO)
    ACCESS_LOG.propagate = False
