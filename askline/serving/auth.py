"""
Who may use the service: API keys, and the check of the Host header on loopback.

A read key may rank, ask and read documents; a write key may also add and remove them. Only the
SHA-256 of a key is stored, and all are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import DataError, InputError, Problem
from .http_errors import ServiceError, error_response

__all__ = ["Access", "ApiKeys", "AuthMiddleware", "is_loopback"]

_PUBLIC_PATHS = {"/", "/health", "/ready", "/docs", "/openapi.json"}
"""Paths that need no key: they say nothing about the documents and cost no work."""
_KEY_HEADERS = ("x-api-key", "api-key")
"""Headers that carry a key alone, beside Authorization: Bearer."""
_KEY_LINE = re.compile(r"(?:(read|write):)?(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_MIN_KEY_LENGTH = 16
"""Long random keys cannot be guessed from a fast hash; short ones could be."""


class Access(IntEnum):
    """What a request may do. A higher value includes the lower ones."""

    NONE = 0
    READ = 1
    """Rank, ask, and read documents."""
    WRITE = 2
    """Also add and remove documents."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The hashes of the accepted keys. Without keys every request is accepted."""

    read: tuple[bytes, ...] = ()
    write: tuple[bytes, ...] = ()

    @classmethod
    def from_keys(cls, keys: Iterable[str]) -> ApiKeys:
        """Hash keys given in plain text. They may write."""
        given = list(keys)
        if any(len(key) < _MIN_KEY_LENGTH for key in given):
            raise InputError(f"A key must have at least {_MIN_KEY_LENGTH} characters, got fewer.")
        return cls(write=tuple(_hash(key) for key in given))

    @classmethod
    def from_file(cls, path: Path) -> ApiKeys:
        """
        Read a file with one key per line: `read:` or `write:`, then its SHA-256 in hexadecimal.

        A hash without a word before it is a read key. `#` begins a comment. A file that other users
        of the machine may read, or that anyone but its owner may change, is refused.
        """
        _check_permissions(path)
        hashes: dict[str, list[bytes]] = {"read": [], "write": []}
        problems: list[Problem] = []
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            word = line.partition("#")[0].strip()
            match = _KEY_LINE.fullmatch(word)
            if match:
                hashes[(match[1] or "read").lower()].append(bytes.fromhex(match[2]))
            elif word:
                # The message does not repeat the line: it may be a key, put there by mistake.
                message = (
                    "expected read: or write: and a SHA-256 of 64 hexadecimal digits, got "
                    "something else."
                )
                problems.append(Problem(str(path), number, message))
        if problems:
            raise DataError(problems)
        if not any(hashes.values()):
            raise InputError(f"{path} must contain at least one SHA-256 of a key, got none.")
        return cls(tuple(hashes["read"]), tuple(hashes["write"]))

    def __add__(self, other: ApiKeys) -> ApiKeys:
        return ApiKeys(self.read + other.read, self.write + other.write)

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    def access_of(self, headers: Mapping[str, str]) -> Access:
        """Return what the keys in the headers of a request allow; the highest, if it has more."""
        if not self:
            return Access.WRITE
        given = [headers.get(name, "") for name in _KEY_HEADERS]
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            given.append(bearer)
        return max((self._access_of_key(key.strip()) for key in given if key), default=Access.NONE)

    def _access_of_key(self, key: str) -> Access:
        hashed = _hash(key)
        # All hashes are compared, so that the time does not reveal which one matched.
        can_read = [hmac.compare_digest(hashed, known) for known in self.read]
        can_write = [hmac.compare_digest(hashed, known) for known in self.write]
        return Access.WRITE if any(can_write) else Access.READ if any(can_read) else Access.NONE


class AuthMiddleware:
    """Refuses requests without a valid key, before any of the body is read."""

    def __init__(self, app: ASGIApp, *, keys: ApiKeys, only_local_hosts: bool) -> None:
        self._app = app
        self._keys = keys
        self._only_local_hosts = only_local_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with an error."""
        if scope["type"] == "http":
            error = self._check(scope)
            if error is not None:
                await error_response(scope["path"], error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> ServiceError | None:
        path, headers = scope["path"], Headers(scope=scope)
        if self._only_local_hosts and not _names_this_machine(headers, scope["http_version"]):
            return ServiceError("This service only answers requests to localhost.", status=421)
        if path in _PUBLIC_PATHS or path.startswith("/page/"):
            return None
        access = self._keys.access_of(headers)
        if access == Access.NONE:
            return ServiceError(
                "An API key is needed: Authorization: Bearer KEY, or X-API-Key: KEY.", status=401
            )
        if access < Access.WRITE and _is_write(scope["method"], path):
            return ServiceError(
                "This API key may only read. Changing documents needs a write key.", status=403
            )
        return None


def _is_write(method: str, path: str) -> bool:
    return path.startswith("/v1/documents") and method not in ("GET", "HEAD", "OPTIONS")


def _names_this_machine(headers: Headers, http_version: str) -> bool:
    """
    Whether the Host header names this machine.

    HTTP/1.0 has no such header, and no browser uses it, so there is nothing to protect from.
    """
    if "host" not in headers and http_version == "1.0":
        return True
    return is_loopback(_host_name(headers.get("host", "")))


def _check_permissions(path: Path) -> None:
    """Refuse a file of keys that other users may read or change."""
    mode = path.stat().st_mode
    if os.name == "posix" and mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise InputError(
            f"Other users of this machine can read or change {path}: its mode is "
            f"{stat.S_IMODE(mode):04o}. Make it private: chmod 600 {path}"
        )


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
