"""What `askline serve` is told, as frozen records, and the rule about who may be listened to."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InputError
from .api_keys import Keys

__all__ = ["Limits", "Settings", "check_exposure", "is_loopback"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may bring, and how much may wait. Beyond it: 413, or 429 for the queue."""

    body: int = 4 * 2**20
    """Bytes of a body."""
    documents: int = 1_000
    """Candidates, texts or documents in a body."""
    tokens: int = 200_000
    """Words over all texts of a body."""
    queue: int = 64
    """Requests that wait for a worker."""
    connections: int = 1_024
    """Open at a time."""
    body_seconds: float = 30.0
    """For a body to arrive whole."""

    def __post_init__(self) -> None:
        for name in ("body", "documents", "tokens", "queue", "connections", "body_seconds"):
            if getattr(self, name) <= 0:
                raise InputError(f"The limit {name} must be above 0, got {getattr(self, name)}.")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Settings:
    """A service, before it starts."""

    models: tuple[str, ...] = ()
    """Spec texts; the first, or else askline's default, is used where a request names none."""
    index: Path | None = None
    retriever: str | None = field(default=None, repr=False)
    """The address of a server that holds the texts, in place of an index."""
    host: str = "127.0.0.1"
    port: int = 8080
    keys: Keys = field(default_factory=Keys)
    may_be_open: bool = False
    """Whether to listen beyond loopback without keys."""
    workers: int = field(default_factory=_cores)
    batch: int = 8
    """Requests that a worker ranks together, where its ranker is faster so."""
    limits: Limits = field(default_factory=Limits)
    log_text: bool = False
    """Whether questions go into the access log."""

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"workers must be at least 1, got {self.workers}.")
        if self.index is not None and self.retriever is not None:
            raise InputError("Give an index or a retriever, not both.")
        if self.batch < 1:
            raise InputError(f"batch must be at least 1, got {self.batch}.")
        if not 0 <= self.port <= 65_535:
            raise InputError(f"port must be from 0 to 65535, got {self.port}.")

    @property
    def threads(self) -> int:
        """For the arithmetic of one worker: together they have as many as there are cores."""
        return max(1, _cores() // self.workers)

    @property
    def is_guarded(self) -> bool:
        """
        Whether only names of this machine are answered to.

        Without it any web page could reach a service on loopback, by a name of its own that leads
        there.
        """
        return is_loopback(self.host) and not self.keys


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def check_exposure(settings: Settings) -> None:
    """Refuse to listen where others can reach it, unless there is a key or it was asked for."""
    if is_loopback(settings.host) or settings.keys or settings.may_be_open:
        return
    raise InputError(
        f"{settings.host} can be reached by others and there is no key. Give --key or --keys FILE, "
        "or say --open if anybody may ask."
    )
