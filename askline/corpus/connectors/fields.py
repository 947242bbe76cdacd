"""Which field or column holds the text, the title, the id."""

from __future__ import annotations

from collections.abc import Collection

from ...errors import CorpusError, unknown_name_message
from ...text.reading.rows import TEXT_FIELDS

__all__ = ["named", "text_field"]


def text_field(given: str | None, there: Collection[str], what: str, place: str) -> str:
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
