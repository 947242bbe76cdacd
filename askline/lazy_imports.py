"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_imports"]


def lazy_imports(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """
    The functions `__getattr__` and `__dir__` of a package.

    `modules` are the names to import from each module, which is named relative to the package.
    """
    module_of = {name: module for module, names in modules.items() for name in names}
    known = vars(sys.modules[package])

    def import_name(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = known[name] = getattr(import_module(f"{package}.{module_of[name]}"), name)
        return value

    return import_name, lambda: sorted({*known, *module_of})
