"""The architecture: which package may import which, no import cycles, and what start-up costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import askline

PACKAGE = Path(askline.__file__).parent

# Each package with those that it may import. Every package may import the first three.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "types": set(),
    "lazy_imports": set(),
    "text": set(),
    "demo": set(),
    "data": {"text"},
    "evaluation": {"text", "models", "engine", "rankers"},
    "models": {"text"},
    "engine": {"text", "models"},
    "rankers": {"text", "models", "engine"},
    "phrases": {"text", "models", "engine", "rankers"},
    "corpus": {"text", "models", "engine", "rankers", "phrases"},
    "plots": {"evaluation", "tuning"},
    "testing": {"rankers"},
    "integrations": {
        *("__init__", "text", "models", "engine", "rankers", "phrases", "corpus", "evaluation"),
    },
    "tuning": {"text", "data", "evaluation", "engine", "rankers"},
    "training": {"text", "data", "evaluation", "models", "engine", "rankers", "phrases"},
}
ENTRY_POINTS = {"__init__", "__main__", "cli", "serving"}  # these may import every package
FOUNDATION = {"errors", "types", "lazy_imports"}
MODULES = {
    ".".join(("askline", *path.relative_to(PACKAGE).with_suffix("").parts)): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def _package(module: str) -> str:
    return module.split(".")[1]


@cache
def _imported(module: str) -> frozenset[str]:
    """Modules of askline that a module imports, also inside functions and for type checking."""
    return frozenset(_read_imports(module))


def _read_imports(module: str) -> Iterator[str]:
    own_package = module.split(".")[:-1]
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            yield from filter(None, (_module(alias.name) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            base = own_package[: len(own_package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                found = _module(f"{stem}.{alias.name}") or _module(stem)
                if found:
                    yield found


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text("utf-8"))


def _module(name: str) -> str | None:
    """The key in MODULES of what an import statement names; None outside askline."""
    return next((key for key in (name, f"{name}.__init__") if key in MODULES), None)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    package = _package(module)
    if package in ENTRY_POINTS:
        return
    imported = {_package(name) for name in _imported(module)} - {package}
    allowed = MAY_IMPORT[package] | (set() if package in FOUNDATION else FOUNDATION)
    assert imported <= allowed, f"{package} must not import {sorted(imported - allowed)}"


def test_there_is_no_import_cycle() -> None:
    """Imports inside functions and under TYPE_CHECKING count too."""
    done: set[str] = set()
    cycles: list[list[str]] = []

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            cycles.append([*path[path.index(module) :], module])
        elif module not in done:
            for imported in sorted(_imported(module) - {module}):
                visit(imported, [*path, module])
            done.add(module)

    for module in MODULES:
        visit(module, [])
    assert not cycles, "\n".join(" -> ".join(cycle) for cycle in cycles)


@pytest.mark.parametrize("module", MODULES)
def test_torch_is_imported_in_training_alone(module: str) -> None:
    tops = {
        alias.name.split(".")[0]
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        (node.module or "").split(".")[0]
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ImportFrom) and not node.level
    }
    assert "torch" not in tops or _package(module) == "training"


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
    heavy += ["asyncio", "http.client", "multiprocessing", "urllib.request"]
    check = f"{program}\nimport sys\nprint(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_corpus_is_opened_without_readers_and_reports() -> None:
    program = "from askline import Corpus\nCorpus.in_memory()\nimport sys\n"
    check = program + "print(*(name for name in sys.modules if name.startswith('askline.')))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "askline.text.readers.limits" in loaded
    others = ("text.readers.document", "text.readers.isolation", "corpus.results", "corpus.shards")
    assert not {f"askline.{name}" for name in others} & {*loaded}


def test_phrases_are_encoded_without_rankers() -> None:
    program = "from askline.phrases import PhraseModel\nPhraseModel.load()\nimport sys\n"
    check = program + "print('askline.rankers.base' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_indexing_loads_no_numpy(tmp_path: Path) -> None:
    """Loading it takes longer than looking at a folder that has not changed."""
    (tmp_path / "a.md").write_text("# Lamp\n\nThe lamp was lit.\n", "utf-8")
    program = (
        "import sys\nfrom askline import Corpus\n"
        "with Corpus.open('index') as corpus:\n    assert corpus.add('a.md').added == 1\n"
        "print('numpy' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "False\n"


DOCS = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")


def test_documented_paths_exist() -> None:
    """Every path in docs/architecture.md, in particular the table "to change X, go to Y"."""
    paths = re.findall(r"`((?:askline|research|tests)/[\w./]+)`", DOCS)
    assert len(paths) > 40
    missing = [path for path in paths if not (PACKAGE.parent / path).exists()]
    assert not missing


def test_every_package_is_documented() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    table = DOCS.split("## To change X")[0]
    missing = {package for package in packages if f"| `{package}/` |" not in table}
    assert not missing
