"""
Write research/results.md, and the README's table of quality, latency and size, from the result files.

    python -m research.make_results
"""

from __future__ import annotations

from pathlib import Path

from research.tables import ResultFiles, page, with_headline

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "research" / "results.md"
README = ROOT / "README.md"


def results_page() -> str:
    """The page as it should be."""
    return page(ROOT / "research" / "results")


def readme() -> str:
    """The README with its table as it should be."""
    return with_headline(README.read_text("utf-8"), ResultFiles(ROOT / "research" / "results"))


if __name__ == "__main__":
    TARGET.write_text(results_page(), encoding="utf-8")
    README.write_text(readme(), encoding="utf-8")
