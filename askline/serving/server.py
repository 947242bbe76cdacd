"""
Start the service and limit its connections: bind the port, start workers and web server, stop them.

uvicorn parses HTTP with h11, which limits the size of incomplete headers. The protocol here limits
that of complete ones too, and adds a time for the headers to arrive and a number of connections
that wait for a request, per client address and in all. When there are more, the one that has waited
longest is closed, so a new connection is always accepted, and `/health` answers whatever other
clients do. A request that has arrived completely is not counted here: the queue of jobs limits
these.

A client may close its side of the connection after its request and still read the response. If it
closes its side when the response has begun, it has left.
"""

from __future__ import annotations

import asyncio
import errno
import http
import ipaddress
import json
import logging
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import InputError
from .limits import Limits
from .monitoring import ACCESS_LOG, Metrics
from .settings import Settings, check_exposure
from .worker_pool import WorkerPool

__all__ = ["ConnectionLimiter", "run_server"]

_SHUTDOWN_SECONDS = 25
"""
Time for requests to finish when the service is stopped. After it, they get status 503. Container
managers kill a service after 30 seconds or more.
"""
_OTHER_FILES = 256  # open files besides connections: pipes to workers, log files
_PROBE_SECONDS = 0.2


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


class ConnectionLimiter:
    """The connections of one server that wait for a request or for their client to read."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: dict[str, dict[_LimitedProtocol, None]] = {}  # oldest first
        self._count = 0

    @property
    def protocol(self) -> Callable[..., asyncio.Protocol]:
        """What uvicorn calls for each connection."""
        return partial(_LimitedProtocol, limiter=self, header_seconds=self._limits.header_seconds)

    def add(self, connection: _LimitedProtocol) -> None:
        """Count a connection that waits. If there are too many, the oldest is closed."""
        own = self._waiting.setdefault(connection.address, {})
        if connection in own:
            return
        own[connection] = None
        self._count += 1
        if len(own) > self._limits.connections_per_address:
            next(iter(own)).end()
        elif self._count > self._limits.connections:
            # The addresses with most connections lose them first.
            most = max(self._waiting, key=lambda address: len(self._waiting[address]))
            next(iter(self._waiting[most])).end()

    def remove(self, connection: _LimitedProtocol) -> None:
        """Forget a connection that has ended or has a complete request."""
        own = self._waiting.get(connection.address, {})
        if connection in own:
            del own[connection]
            self._count -= 1
            if not own:
                del self._waiting[connection.address]


class _LimitedConnection(h11.Connection):
    """h11 limits the size of what is incomplete; this one also limits complete headers."""

    def __init__(self, max_header_bytes: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=max_header_bytes)
        self._max_header_bytes = max_header_bytes

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self.their_state is not h11.IDLE:
            return super().next_event()
        before = len(self.trailing_data[0])
        event = super().next_event()
        if before - len(self.trailing_data[0]) > self._max_header_bytes:
            raise h11.RemoteProtocolError("The headers are too large", error_status_hint=431)
        return event


class _LimitedProtocol(H11Protocol):
    """One connection."""

    def __init__(self, *, limiter: ConnectionLimiter, header_seconds: float, **uvicorn: Any):
        super().__init__(**uvicorn)
        self.conn = _LimitedConnection(_max_header_bytes(self))
        self.address = ""
        self._limiter = limiter
        self._header_seconds = header_seconds
        self._header_timer: asyncio.TimerHandle | None = None
        self._has_ended_input = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = _network(self.client[0] if self.client else "")
        self._update()
        self._limiter.add(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open if the client may still wait for a response."""
        if not self._has_request or self.transport.is_closing():
            return False
        if self.cycle.response_started:  # a client that leaves in the middle of a stream
            return False
        self._has_ended_input = True
        if self.scope["http_version"] == "1.1":
            # The same packet says that a client has closed one side or both. If it has closed
            # both, it rejects whatever is sent to it, and an informational response is harmless.
            informational = h11.InformationalResponse(status_code=100, headers=[])
            self.transport.write(self.conn.send(informational) or b"")
        self._probe()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.remove(self)
        self._stop_header_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._has_ended_input and not self._has_request:
            self.transport.close()
        self._update()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limiter.add(self)  # the client does not read

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has too large headers, with a JSON body."""
        error = sys.exc_info()[1]
        status = getattr(error, "error_status_hint", 400)
        if status == 431:
            msg = f"The headers must have at most {_max_header_bytes(self):,} bytes, got more."
        self._refuse(status, msg)

    def end(self) -> None:
        """Close the connection without waiting for the client."""
        self._limiter.remove(self)
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    @property
    def _has_request(self) -> bool:
        """Whether a request has arrived completely and its response is not complete."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _update(self) -> None:
        """Start or stop waiting, after any event."""
        if self.transport.is_closing():
            return
        in_headers = self.cycle is None or self.cycle.response_complete
        if in_headers and (self.cycle is None or self.conn.trailing_data[0]):
            self._start_header_timer()
        else:
            self._stop_header_timer()  # between two requests, uvicorn's own timer runs
        if self._has_request:
            self._limiter.remove(self)
        else:
            self._limiter.add(self)

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self._header_seconds, self._on_late_headers)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _on_late_headers(self) -> None:
        if self.transport.is_closing():
            return
        if self.conn.trailing_data[0]:
            self._refuse(408, f"The headers must arrive within {self._header_seconds:g} s.")
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        body = json.dumps({"message": message, "detail": message, "error": message}).encode()
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        try:
            reason = http.HTTPStatus(status).phrase.encode()
            response = h11.Response(status_code=status, headers=headers, reason=reason)
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # a response has been sent already
        self.transport.close()

    def _probe(self) -> None:
        """Notice that a client which has closed its side has closed the other side too."""
        if self.transport.is_closing() or not self._has_request:
            return
        own_socket: socket.socket | None = self.transport.get_extra_info("socket")
        if own_socket is not None and own_socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
        else:
            self.loop.call_later(_PROBE_SECONDS, self._probe)


def _max_header_bytes(protocol: H11Protocol) -> int:
    size = protocol.config.h11_max_incomplete_event_size
    assert size is not None
    return size


def _network(host: str) -> str:
    """Return what one client may use: an IPv4 address, or an IPv6 network of 64 bits."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return host
    return str(ipaddress.ip_network((address, 64), strict=False))
