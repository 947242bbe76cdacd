"""The versions in requirements/constraints.txt, which `make lock` writes."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LINES = [
    line
    for line in (ROOT / "requirements" / "constraints.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
PINNED = {canonicalize_name(Requirement(line).name): Requirement(line) for line in LINES}


def test_each_line_is_one_version_without_hosts_and_paths() -> None:
    pin = r'[a-z0-9-]+==[0-9][0-9a-z.]*(; python_version >= "3\.\d+")?'
    assert [line for line in LINES if not re.fullmatch(pin, line)] == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is new in Python 3.11")
def test_every_requirement_of_the_project_has_a_version_that_fits() -> None:
    tomllib = import_module("tomllib")  # mypy checks for Python 3.10, which has none
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    required = [*project["dependencies"], *(each for extra in extras for each in extra)]
    for requirement in map(Requirement, required):
        if requirement.name == "askline":
            continue
        pinned = PINNED.get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement} is not in constraints.txt: run `make lock`"
        (version,) = pinned.specifier
        assert requirement.specifier.contains(version.version), f"{requirement}: run `make lock`"


def test_torch_has_the_version_of_the_makefile() -> None:
    (version,) = re.findall(r"^TORCH := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert str(PINNED[canonicalize_name("torch")]) == version
