"""
Who may use the service: API keys, and the check of the Host header on loopback.

Only the SHA-256 of a key is stored, and all are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import DataError, InputError, Problem
from .http_errors import ServiceError, error_response

__all__ = ["ApiKeys", "AuthMiddleware", "is_loopback"]

_PUBLIC_PATHS = {"/", "/health", "/ready", "/docs", "/openapi.json"}
"""Paths that need no key: they say nothing about the documents and cost no work."""
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_MIN_KEY_LENGTH = 16
"""Long random keys cannot be guessed from a fast hash; short ones could be."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The hashes of the accepted keys. Without keys every request is accepted."""

    hashes: tuple[bytes, ...] = ()

    @classmethod
    def from_keys(cls, keys: Iterable[str]) -> ApiKeys:
        """Hash keys given in plain text."""
        given = list(keys)
        if any(len(key) < _MIN_KEY_LENGTH for key in given):
            raise InputError(f"A key must have at least {_MIN_KEY_LENGTH} characters, got fewer.")
        return cls(tuple(_hash(key) for key in given))

    @classmethod
    def from_file(cls, path: Path) -> ApiKeys:
        """Read a file with one SHA-256 per line, in hexadecimal; `#` begins a comment."""
        hashes: list[bytes] = []
        problems: list[Problem] = []
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            word = line.partition("#")[0].strip()
            match = _SHA256.fullmatch(word)
            if match:
                hashes.append(bytes.fromhex(match[1]))
            elif word:
                # The message does not repeat the line: it may be a key, put there by mistake.
                message = "expected a SHA-256 of 64 hexadecimal digits, got something else."
                problems.append(Problem(str(path), number, message))
        if problems:
            raise DataError(problems)
        if not hashes:
            raise InputError(f"{path} must contain at least one SHA-256 of a key, got none.")
        return cls(tuple(hashes))

    def __add__(self, other: ApiKeys) -> ApiKeys:
        return ApiKeys(self.hashes + other.hashes)

    def __bool__(self) -> bool:
        return bool(self.hashes)

    def accepts(self, authorization: str | None) -> bool:
        """Whether the value of an Authorization header contains one of the keys."""
        if not self.hashes:
            return True
        scheme, _, key = (authorization or "").partition(" ")
        given = _hash(key.strip())
        # All hashes are compared, so that the time does not reveal which one matched.
        matches = [hmac.compare_digest(given, known) for known in self.hashes]
        return any(matches) and scheme.lower() == "bearer"


class AuthMiddleware:
    """Refuses requests without a valid key, before any of the body is read."""

    def __init__(self, app: ASGIApp, *, keys: ApiKeys, only_local_hosts: bool) -> None:
        self._app = app
        self._keys = keys
        self._only_local_hosts = only_local_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with an error."""
        if scope["type"] == "http":
            error = self._check(scope["path"], Headers(scope=scope))
            if error is not None:
                await error_response(scope["path"], error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> ServiceError | None:
        if self._only_local_hosts and not is_loopback(_host_name(headers.get("host", ""))):
            return ServiceError("This service only answers requests to localhost.", status=421)
        is_public = path in _PUBLIC_PATHS or path.startswith("/page/")
        if not is_public and not self._keys.accepts(headers.get("authorization")):
            return ServiceError("An API key is needed: Authorization: Bearer KEY.", status=401)
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _host_name(host: str) -> str:
    """Return a Host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
