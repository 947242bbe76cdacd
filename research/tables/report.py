"""The report in both forms, written to a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from askline.text.atomic_write import atomic_write

from .about import missing
from .html import html
from .lines import Section, sections
from .markdown import markdown
from .places import ResultFiles

__all__ = ["Written", "page", "write_report"]

QUICK_BANNER = (
    "A quick run that proves the machinery: few questions, one seed, small settings. "
    "Its figures of trained models mean nothing."
)


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and what is still owed."""

    markdown: Path
    html: Path
    sections: tuple[Section, ...]
    missing: tuple[str, ...]
    """Result files that rows are tied to and that are not there."""


def page(folder: str | PathLike[str]) -> str:
    """`research/results.md` as it should be for the result files of that folder."""
    results = ResultFiles(folder)
    return markdown(results, sections(results))


def write_report(
    results: ResultFiles, out: Path, *, only: Sequence[str] = (), quick: bool = False
) -> Written:
    """`OUT/results.md` and `OUT/results.html`."""
    out.mkdir(parents=True, exist_ok=True)
    found = sections(results, only)
    banner = QUICK_BANNER if quick else ""
    pages = out / "results.md", out / "results.html"
    texts = (form(results, found, banner=banner) for form in (markdown, html))
    for path, text in zip(pages, texts, strict=True):
        with atomic_write(path) as stream:
            stream.write(text.encode())
    return Written(*pages, tuple(found), tuple(missing(results, found)))
