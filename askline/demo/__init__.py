"""A few pages of plain prose, written for askline, to ask questions of before you have your own."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["documents"]


def documents() -> list[tuple[str, str]]:
    """(file name, text) of each page, in the order of their names."""
    pages = (entry for entry in files(__name__).iterdir() if entry.name.endswith((".md", ".txt")))
    return sorted((page.name, page.read_text(encoding="utf-8")) for page in pages)
