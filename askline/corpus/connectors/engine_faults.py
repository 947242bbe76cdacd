"""What the clients of the search engines raise, as errors that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import CorpusError
from .address import Address

__all__ = ["engine_faults"]

_CLIENTS = ("opensearchpy", "elasticsearch", "elastic_transport")


@contextmanager
def engine_faults(address: Address, seconds: float) -> Iterator[None]:
    """
    Raise what a client raises as a CorpusError.

    By the names of the classes: both clients have the same ones, and only one may be installed.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _CLIENTS:
            raise
        raise CorpusError(f"{address}: {_advice(error, address, seconds)}") from error


def _advice(error: Exception, address: Address, seconds: float) -> str:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    said = address.without_secrets(error)
    if "ConnectionTimeout" in kinds:
        return f"No answer within {seconds:g} seconds. Try again, or allow more: timeout=SECONDS."
    if "SSLError" in kinds:
        return (
            f"No secure connection: {said}. Name the authority that signed its certificate, "
            "ca=FILE, or write tls=no if it speaks plain HTTP."
        )
    if "ConnectionError" in kinds:
        return f"It cannot be reached{_cause(said)}. Check host and port, and tls=yes or tls=no."
    if "UnsupportedProductError" in kinds:
        return "This is no Elasticsearch. If it is OpenSearch, write opensearch://."
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return (
            f"It refuses this user ({status}). Put user and password into the address, or set "
            f"{_variables(address.scheme)}."
        )
    if status == 404:
        return f"No index {address.path!r} there. The path of the address names it."
    if "media_type_header" in said or "compatible-with" in said:
        return (
            f"The client is of another major version than the server: {said}. Install the one "
            "that fits, for instance: pip install 'elasticsearch<9'."
        )
    return f"It cannot answer: {said}."


def _cause(said: str) -> str:
    """The system's own words, out of the long message around them."""
    found = re.search(r"\[Errno -?\d+\] ([^)\]]+)", said)
    return f": {found[1].strip()}" if found else ""


def _variables(scheme: str) -> str:
    if scheme == "opensearch":
        return "OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD"
    return "ELASTIC_API_KEY, or ELASTIC_USERNAME and ELASTIC_PASSWORD"
