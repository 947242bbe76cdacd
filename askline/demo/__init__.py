"""A few pages of plain prose, written for askline, to try questions on before you have your own."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["documents"]


def documents() -> list[tuple[str, str]]:
    """The file name and text of each page, sorted by name."""
    pages = (entry for entry in files(__name__).iterdir() if entry.name.endswith((".md", ".txt")))
    return sorted((page.name, page.read_text(encoding="utf-8")) for page in pages)
