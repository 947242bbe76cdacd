"""Bearer keys: only their SHA-256 is kept, and all are compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError, InputError, Problem

__all__ = [
    "Keys",
]

_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)
_SHORTEST = 16
"""A key is random and long, so a fast hash will do; a short one could be guessed from it."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The hashes of the keys that are let in; none lets everybody in."""

    hashes: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, keys: Iterable[str]) -> Keys:
        """From keys as their owners know them."""
        given = list(keys)
        if any(len(key) < _SHORTEST for key in given):
            raise InputError(f"A key must have at least {_SHORTEST} characters, got fewer.")
        return cls(tuple(_hash(key) for key in given))

    @classmethod
    def read(cls, path: Path) -> Keys:
        """From a file with one SHA-256 a line, in hexadecimal; # begins a comment."""
        hashes: list[bytes] = []
        problems: list[Problem] = []
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            word = line.partition("#")[0].strip()
            match = _HASH.fullmatch(word)
            if match:
                hashes.append(bytes.fromhex(match[1]))
            elif word:
                # The line itself is left out: it may be a key that somebody put there by mistake.
                message = "expected a SHA-256 of 64 hexadecimal digits, got something else."
                problems.append(Problem(str(path), number, message))
        if problems:
            raise DataError(problems)
        if not hashes:
            raise InputError(f"{path} must hold at least one SHA-256 of a key, got none.")
        return cls(tuple(hashes))

    def __add__(self, other: Keys) -> Keys:
        return Keys(self.hashes + other.hashes)

    def __bool__(self) -> bool:
        return bool(self.hashes)

    def admit(self, authorization: str | None) -> bool:
        """Whether the value of an Authorization header carries one of the keys."""
        if not self.hashes:
            return True
        scheme, _, key = (authorization or "").partition(" ")
        given = _hash(key.strip())
        # Every hash is looked at, so that the time says nothing about which one came near.
        known = [hmac.compare_digest(given, each) for each in self.hashes]
        return any(known) and scheme.lower() == "bearer"


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
