"""
Addresses of servers: what they say, and how to show them without what is secret.

Which field or column holds the text, the title, the id.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from ...errors import CorpusError, InputError, unknown_name_message
from ...text.readers.records import TEXT_FIELDS

__all__ = [
    "SCHEMES",
    "ServerUrl",
    "find_text_field",
    "named",
]

SCHEMES = ("elasticsearch", "opensearch", "postgres", "postgresql")
_YES, _NO = {"1", "yes", "true", "on"}, {"0", "no", "false", "off"}


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """`scheme://user:password@host:port/path?name=value`, taken apart. Its text has no secrets."""

    scheme: str
    host: str = ""
    port: int | None = None
    path: str = ""
    options: dict[str, str] = field(default_factory=dict, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str) -> ServerUrl:
        """Refuses with an InputError what is no address; the message never repeats a password."""
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            raise InputError(unknown_name_message("kind of server", parts.scheme, SCHEMES))
        try:
            port = parts.port
        except ValueError:
            raise InputError(
                "The port in the address is no number up to 65535. A password with one of @ : / "
                "in it must be written with % codes, or come from the environment."
            ) from None
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        secret = options.pop("password", None)  # libpq takes it there too
        return cls(
            parts.scheme,
            unquote(parts.hostname or ""),
            port,
            unquote(parts.path.strip("/")),
            options,
            None if parts.username is None else unquote(parts.username),
            secret if parts.password is None else unquote(parts.password),
        )

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{self.host}{port}/{self.path}"

    def only(self, known: set[str]) -> None:
        """Refuse options that nobody knows."""
        for name in self.options.keys() - known:
            raise InputError(unknown_name_message("option", name, known))

    def number(self, name: str, default: float, *, least: float) -> float:
        """An option that is a number."""
        given = self.options.get(name)
        if given is None:
            return default
        try:
            value = float(given)
        except ValueError:
            value = least - 1
        if not least <= value < float("inf"):
            raise InputError(f"{name} must be a number from {least:g}, got {given!r}.")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """An option that is yes or no."""
        given = self.options.get(name)
        if given is None:
            return default
        if given.lower() not in _YES | _NO:
            raise InputError(f"{name} must be yes or no, got {given!r}.")
        return given.lower() in _YES

    def without_secrets(self, message: object) -> str:
        """A server's message, on one line, with the password taken out where it repeats it."""
        text = " ".join(str(message).split())
        return text.replace(self.password, "***") if self.password else text


def find_text_field(given: str | None, there: Collection[str], what: str, place: str) -> str:
    """The field asked for, or the first of the usual names."""
    if given:
        return named(given, there, what, place)
    for name in TEXT_FIELDS:
        if name in there:
            return name
    raise CorpusError(
        f"{place} has no {what} called {', '.join(TEXT_FIELDS[:-1])} or {TEXT_FIELDS[-1]}. "
        f"Say which one holds the text: text={what.upper()}. There: {', '.join(sorted(there))}."
    )


def named(given: str, there: Collection[str], what: str, place: str) -> str:
    """The field asked for; a CorpusError with those that are there where it is not."""
    if given not in there:
        raise CorpusError(f"{place}: {unknown_name_message(what, given, there)}")
    return given
