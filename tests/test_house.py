"""The walls of the house: who may import whom, what the door shows, what start-up costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import askline

PACKAGE = Path(askline.__file__).parent

# Each room with the rooms it may use. `askline.errors` and `askline.types` are open to all.
MAY_USE: dict[str, set[str]] = {
    "errors": set(),
    "types": set(),
    "text": set(),
    "demo": set(),
    "data": {"text"},
    "evaluation": {"text"},
    "models": {"text"},
    "runtime": {"text", "models"},
    "rankers": {"text", "models", "runtime"},
    "pipeline": {"text", "models", "runtime", "rankers"},
    "phrases": {"text", "models", "runtime", "rankers", "pipeline"},
    "corpus": {"text", "models", "runtime", "rankers", "pipeline", "phrases"},
    "testing": set(),
    "tuning": {"text", "data", "evaluation", "runtime", "rankers"},
    "training": {"text", "data", "evaluation", "models", "runtime", "rankers", "phrases"},
}
FREE = {"__init__", "__main__", "cli", "serving"}  # the doors may use every room
GROUND = {"errors", "types"}


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(path: Path) -> Iterator[str]:
    """Rooms of askline that a file imports, inside functions too."""
    own = ("askline", *path.relative_to(PACKAGE).with_suffix("").parts)
    package = own[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{stem}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "askline" and len(parts) > 1:
                yield parts[1]


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    room = _room(path)
    if room in FREE:
        return
    used = set(_imports(path)) - GROUND - {room} if room not in GROUND else set(_imports(path))
    wrong = used - MAY_USE[room] - ({"errors"} if room == "types" else set())
    assert not wrong, f"{room} must not use {sorted(wrong)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_torch_is_imported_in_training_alone(path: Path) -> None:
    tops = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        (node.module or "").split(".")[0]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and not node.level
    }
    assert "torch" not in tops or _room(path) == "training"


def test_public_names_are_sorted_and_there() -> None:
    assert askline.__all__ == sorted(askline.__all__, key=_by_ruff_order)
    for name in askline.__all__:
        assert getattr(askline, name) is not None
    assert set(askline.__all__) <= set(dir(askline))


def _by_ruff_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions: the order that the linter keeps."""
    kind = 0 if name.isupper() or name == "BM25" else 1 if name[0].isupper() else 2
    return kind, name


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'rerank'"):
        _ = askline.rerank


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "askline", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"askline, version {askline.__version__}\n"


@pytest.mark.parametrize("program", ["import askline", "import askline.cli"])
def test_start_up_brings_in_nothing_heavy(program: str) -> None:
    heavy = ["torch", "numpy", "fastapi", "scipy", "rich", "ir_measures", "tantivy", "sqlite3"]
    check = f"{program}\nimport sys\nprint(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
