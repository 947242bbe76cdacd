"""The versions in the files of `requirements/`, which `make lock` writes."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
FILES = ["constraints.txt", "integrations.txt", "spark.txt"]


def read_lines(name: str) -> list[str]:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def read_pinned(name: str) -> dict[str, Requirement]:
    return {
        canonicalize_name(Requirement(line).name): Requirement(line) for line in read_lines(name)
    }


@pytest.mark.parametrize("name", FILES)
def test_each_line_is_one_version_without_hosts_and_paths(name: str) -> None:
    pin = r'[a-z0-9-]+==[0-9][0-9a-z.]*(; python_version >= "3\.\d+")?'
    assert [line for line in read_lines(name) if not re.fullmatch(pin, line)] == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is new in Python 3.11")
def test_every_requirement_of_the_project_has_a_version_that_fits() -> None:
    tomllib = import_module("tomllib")  # mypy checks for Python 3.10, which has none
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    required = [*project["dependencies"], *(each for extra in extras for each in extra)]
    files = [read_pinned(name) for name in FILES]
    for requirement in map(Requirement, required):
        if requirement.name == "askline":
            continue
        found = [
            pinned[name]
            for pinned in files
            if (name := canonicalize_name(requirement.name)) in pinned
        ]
        assert found, f"{requirement} is in no file of requirements/: run `make lock`"
        versions = [version.version for pin in found for version in pin.specifier]
        # Spark supports older versions of pandas than the other integrations are tested with.
        fits = any if requirement.name == "pandas" else all
        assert fits(map(requirement.specifier.contains, versions)), f"{requirement}: `make lock`"


def test_torch_has_the_version_of_the_makefile() -> None:
    (version,) = re.findall(r"^TORCH := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert str(read_pinned("constraints.txt")["torch"]) == version
