"""Every benchmark is described, and every result file feeds a published page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = sorted((ROOT / "research" / "benchmarks").glob("[a-z]*.py"))
RESULTS = sorted((ROOT / "research" / "results").iterdir())
README = (ROOT / "research" / "README.md").read_text("utf-8")
PAGES = [
    ROOT / "README.md",
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("research/notes/*.md"),
    *ROOT.glob("research/decisions/*.md"),
    ROOT / "research" / "results.md",
]


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_is_in_the_readme_and_names_its_command(path: Path) -> None:
    assert f"`{path.stem}`" in README
    source = path.read_text("utf-8")
    if "__main__" in source:
        text = ast.get_docstring(ast.parse(source)) or ""
        assert f"python -m research.benchmarks.{path.stem}" in text


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_a_result_file_feeds_a_published_page(path: Path) -> None:
    named = re.compile(rf"results/{re.escape(path.name)}")
    assert any(named.search(page.read_text("utf-8")) for page in PAGES)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_a_result_file_is_in_the_readme(path: Path) -> None:
    stem = path.name.removesuffix(".json")
    pattern = "corpus_answers_*" if stem.startswith("corpus_answers_") else stem
    assert f"`{pattern}`" in README


@pytest.mark.slow
def test_askline_does_not_import_research() -> None:
    for path in (ROOT / "askline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not any(name.split(".")[0] == "research" for name in names), path
