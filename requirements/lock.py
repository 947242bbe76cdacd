"""
Write a file of constraints: the version of every package that is installed in this environment.

`make lock` runs it in the environment of the development, for constraints.txt, in one with the
packages of all integrations, for integrations.txt, and in one for spark.txt. A version that does
not support every Python that askline supports gets a marker, so that pip chooses freely where it
cannot be used.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

_OLDEST_PYTHON = (3, 10)  # requires-python of pyproject.toml
_NOT_LOCKED = {"askline", "pip", "setuptools", "wheel"}
_HEADER = """\
# Written by `make lock`: the versions that `make` and CI install (pip install -c).
# The wheel does not use this file; its own requirements are in pyproject.toml.
"""


def lock() -> str:
    """The text of the file: `name==version` of each package, sorted by name."""
    lines = {
        name: _constraint(name, distribution)
        for distribution in distributions()
        if (name := _normalize(distribution.metadata["Name"])) not in _NOT_LOCKED
    }
    return _HEADER + "".join(f"{lines[name]}\n" for name in sorted(lines))


def _constraint(name: str, distribution: Distribution) -> str:
    # A local version such as `+cpu` names a build, which not every package index has.
    version = distribution.version.partition("+")[0]
    required = distribution.metadata["Requires-Python"] or ""
    oldest = re.search(r">=?\s*(\d+)\.(\d+)", required)
    if oldest and tuple(map(int, oldest.groups())) > _OLDEST_PYTHON:
        return f'{name}=={version}; python_version >= "{".".join(oldest.groups())}"'
    return f"{name}=={version}"


def _normalize(name: str) -> str:
    """The form of a package name in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(lock(), encoding="utf-8")
