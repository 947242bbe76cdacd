"""
Rankers by name: the same name in code, on the command line and in result tables.

A ranker's module is imported when the ranker is first used. Other packages register theirs in the
entry point group `askline.rankers`: `my-ranker = "my_package:MyRanker"`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import SpecError, unknown_name_message

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .base import Ranker

__all__ = [
    "DEFAULT_SPEC",
    "OptionValue",
    "build",
    "ranker_names",
    "takes_option",
]

OptionValue = bool | int | float | str

DEFAULT_SPEC = "cosinet % 100 >> cascade"
"""The ranker used where none is named: the best one that ships with askline."""

_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
_BUILT_IN = {
    "bm25": "askline.rankers.lexical:BM25",
    "cascade": "askline.rankers.cascade:Cascade",
    "compare-aggregate": "askline.rankers.paper_networks:CompareAggregate",
    "cosinet": "askline.rankers.cosinet:Cosinet",
    "idf-overlap": "askline.rankers.lexical:IdfOverlap",
    "jaccard": "askline.rankers.lexical:Jaccard",
    "random": "askline.rankers.lexical:RandomOrder",
    "relational-cnn": "askline.rankers.paper_networks:RelationalCNN",
    "rr": "askline.rankers.lexical:OriginalOrder",
    "wo": "askline.rankers.lexical:WordOverlap",
    "wo+rr": "askline.rankers.lexical:WordOverlapThenOrder",
}


def ranker_names() -> list[str]:
    """Return every name that a spec text may use, sorted."""
    return sorted(_BUILT_IN.keys() | _third_party().keys())


def build(name: str, positional: list[OptionValue], options: dict[str, OptionValue]) -> Ranker:
    """Make the ranker of that name with those options."""
    from .base import Ranker  # it loads numpy, which the names need not

    factory = _factory(name)
    signature = inspect.signature(factory)
    try:
        signature.bind(*positional, **options)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "none"
        raise SpecError(f"Ranker {name!r}: {error}. Its options: {takes}.") from error
    given = signature.bind(*positional, **options).arguments
    for key, value in given.items():
        _check_type(name, key, value, signature.parameters[key].default)
    try:
        ranker = factory(*positional, **options)
    except TypeError as error:  # an option without a default, whose type cannot be checked before
        raise SpecError(f"Ranker {name!r}: {error}.") from error
    if not isinstance(ranker, Ranker):
        kind = type(ranker).__name__
        raise SpecError(f"Ranker {name!r} must be a subclass of askline.Ranker, got {kind}.")
    return ranker


def takes_option(name: str, option: str) -> bool:
    """Whether the ranker of that name has an option of that name."""
    return option in inspect.signature(_factory(name)).parameters


def _check_type(name: str, key: str, value: OptionValue, default: object) -> None:
    if isinstance(default, (bool, int, float, str)):
        fits = (int, float) if type(default) is float else type(default)
        if not isinstance(value, fits) or (isinstance(value, bool) and type(default) is not bool):
            raise SpecError(
                f"Ranker {name!r}: {key} must be {_KINDS[type(default)]}, got {value!r}."
            )


def _factory(name: str) -> Callable[..., Ranker]:
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        target = getattr(import_module(module), attribute)
    elif name in (others := _third_party()):
        target = others[name].load()
    else:
        raise SpecError(unknown_name_message("ranker", name, ranker_names()))
    # A class with weights in a folder is made by its `load`.
    return getattr(target, "load", target)  # type: ignore[no-any-return]


def _third_party() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # 10 ms, for the names that are not built in

    return {point.name: point for point in entry_points(group="askline.rankers")}
