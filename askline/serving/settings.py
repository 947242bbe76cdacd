"""The settings of a service, and the rule when it may listen on an address that others reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..engine.threads import available_cores
from ..errors import InputError
from .auth import ApiKeys, is_loopback
from .limits import Limits

__all__ = ["Settings", "check_exposure"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that `askline serve` can be told."""

    models: tuple[str, ...] = ()
    """Specs of rankers. The first is the default; without any, askline's default ranker is used."""
    index: str | Path | None = field(default=None, repr=False)
    """The folder of the index, or the URL of the database that has it."""
    allow_partial: bool = False
    """Whether an index of shards is searched of which some are missing or damaged."""
    retriever: str | None = field(default=None, repr=False)
    """The URL of a search server that holds the texts, in place of an index."""
    host: str = "127.0.0.1"
    port: int = 8080
    keys: ApiKeys = field(default_factory=ApiKeys)
    allow_anyone: bool = False
    """Whether to listen without keys on an address that other machines can reach."""
    workers: int = field(default_factory=available_cores)
    """Worker processes."""
    batch_size: int = 8
    """Requests that a worker ranks in one batch, if its ranker gains from that."""
    limits: Limits = field(default_factory=Limits)
    drain_seconds: float = 0.0
    """Seconds between SIGTERM and the end of listening, in which `/ready` answers 503."""
    log_text: bool = False
    """Whether the access log contains the questions."""

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"workers must be at least 1, got {self.workers}.")
        if self.index is not None and self.retriever is not None:
            raise InputError("Give an index or a retriever, not both.")
        if self.batch_size < 1:
            raise InputError(f"batch_size must be at least 1, got {self.batch_size}.")
        if not 0 <= self.port <= 65_535:
            raise InputError(f"port must be from 0 to 65535, got {self.port}.")

    @property
    def threads_per_worker(self) -> int:
        """Threads for the arithmetic of one worker; all workers together use every core once."""
        return max(1, available_cores() // self.workers)

    @property
    def only_local_hosts(self) -> bool:
        """
        Whether requests must name this machine in the Host header.

        Without this check any web page could reach a service on loopback, through a domain name
        that resolves to it (DNS rebinding).
        """
        return is_loopback(self.host) and not self.keys


def check_exposure(settings: Settings) -> None:
    """Raise InputError if other machines could use the service without a key by accident."""
    if is_loopback(settings.host) or settings.keys or settings.allow_anyone:
        return
    raise InputError(
        f"Other machines can reach {settings.host} and there is no key. Give --key or --keys FILE, "
        "or --open to allow everyone."
    )
