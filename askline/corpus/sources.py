"""What can be added to a corpus: paths, or texts with ids."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from ..errors import InputError

__all__ = ["PathOrPaths", "Texts", "listed", "taken"]

PathOrPaths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Texts = Mapping[str, str] | Iterable[tuple[str, str]]


def taken(source: PathOrPaths | Texts) -> list[str] | Iterator[tuple[str, str]]:
    """Paths as a list; texts one by one, for a stream of them may not fit into memory."""
    if isinstance(source, Mapping):
        return map(_text, source.items())
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if not isinstance(source, Iterable):
        raise InputError(f"Expected paths, or texts with ids, got {_shown(source)}.")
    items = iter(source)
    start = list(next(zip(items), ()))  # the first item, where there is one
    if start and isinstance(start[0], (tuple, list)):
        return map(_text, chain(start, items))
    return [_path(item) for item in chain(start, items)]


def listed(paths: PathOrPaths) -> list[str]:
    """Paths alone."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [_path(item) for item in paths]


def _path(item: Any) -> str:
    if isinstance(item, (str, os.PathLike)):
        return os.fspath(item)
    raise InputError(
        f"Expected a path, got {_shown(item)}. Add paths and texts one after the other."
    )


def _text(item: Any) -> tuple[str, str]:
    pair = tuple(item) if isinstance(item, (tuple, list)) else ()
    if len(pair) != 2 or not isinstance(pair[1], str):
        raise InputError(f"Expected a pair (id, text), got {_shown(item)}.")
    name, text = pair
    if not isinstance(name, str) or not name:
        raise InputError(f"The id of a text must be a text itself, got {name!r}.")
    return name, text


def _shown(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:60]} …"
