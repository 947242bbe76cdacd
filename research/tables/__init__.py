"""
Every figure of the papers beside ours, and the runs that make ours.

`published.json` has what the papers print; `links/` ties each row to a place in a result file or to
the reason why there is none; `runs.py` names the commands; the rest puts both on a page.
"""

from __future__ import annotations

from .headline import headline, with_headline
from .lines import Cell, Line, Section, sections
from .places import Figure, Place, ResultFiles
from .published import Published, papers, published
from .report import Written, page, write_report
from .runs import QUICK, RUNS, Done, Run, carry_out, checkout

__all__ = [
    "QUICK",
    "RUNS",
    "Cell",
    "Done",
    "Figure",
    "Line",
    "Place",
    "Published",
    "ResultFiles",
    "Run",
    "Section",
    "Written",
    "carry_out",
    "checkout",
    "headline",
    "page",
    "papers",
    "published",
    "sections",
    "with_headline",
    "write_report",
]
