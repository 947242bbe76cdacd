"""
Server URLs: their parts and options, and the fields or columns that the options name.

Error messages show a URL without user and password.
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
    "require_field",
]

SCHEMES = ("elasticsearch", "opensearch", "postgres", "postgresql")
_TRUE, _FALSE = {"1", "yes", "true", "on"}, {"0", "no", "false", "off"}


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """`scheme://user:password@host:port/path?name=value`, in parts."""

    scheme: str
    host: str = ""
    port: int | None = None
    path: str = ""
    options: dict[str, str] = field(default_factory=dict, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str) -> ServerUrl:
        """Split a URL; InputError if it is invalid. The message never contains the password."""
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            raise InputError(unknown_name_message("kind of server", parts.scheme, SCHEMES))
        try:
            port = parts.port
        except ValueError:
            raise InputError(
                "The port in the URL must be a number up to 65535. If the password contains "
                "@, : or /, write these characters as % codes, or set it in the environment."
            ) from None
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        password_option = options.pop("password", None)  # libpq accepts it there too
        return cls(
            parts.scheme,
            unquote(parts.hostname or ""),
            port,
            unquote(parts.path.strip("/")),
            options,
            None if parts.username is None else unquote(parts.username),
            password_option if parts.password is None else unquote(parts.password),
        )

    def __str__(self) -> str:
        """The URL without user, password and options."""
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{self.host}{port}/{self.path}"

    def check_options(self, known: set[str]) -> None:
        """Raise InputError for an option that is not known."""
        for name in self.options.keys() - known:
            raise InputError(unknown_name_message("option", name, known))

    def number_option(self, name: str, default: float, *, minimum: float) -> float:
        """The value of an option that is a number."""
        given = self.options.get(name)
        if given is None:
            return default
        try:
            value = float(given)
        except ValueError:
            value = minimum - 1
        if not minimum <= value < float("inf"):
            raise InputError(f"{name} must be a number of at least {minimum:g}, got {given!r}.")
        return value

    def flag_option(self, name: str, default: bool) -> bool:
        """The value of an option that is yes or no."""
        given = self.options.get(name)
        if given is None:
            return default
        if given.lower() not in _TRUE | _FALSE:
            raise InputError(f"{name} must be yes or no, got {given!r}.")
        return given.lower() in _TRUE

    def without_password(self, message: object) -> str:
        """A message of the server on one line, with the password replaced by asterisks."""
        text = " ".join(str(message).split())
        return text.replace(self.password, "***") if self.password else text


def find_text_field(given: str | None, available: Collection[str], kind: str, place: str) -> str:
    """The given field, or else the first of the usual names; `kind` is "field" or "column"."""
    if given:
        return require_field(given, available, kind, place)
    for name in TEXT_FIELDS:
        if name in available:
            return name
    raise CorpusError(
        f"{place} has no {kind} called {', '.join(TEXT_FIELDS[:-1])} or {TEXT_FIELDS[-1]}. "
        f"Name the one that holds the text: text={kind.upper()}. "
        f"Available: {', '.join(sorted(available))}."
    )


def require_field(name: str, available: Collection[str], kind: str, place: str) -> str:
    """The name itself; CorpusError with the available ones if it is not among them."""
    if name not in available:
        raise CorpusError(f"{place}: {unknown_name_message(kind, name, available)}")
    return name
