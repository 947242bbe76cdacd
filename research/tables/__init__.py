"""
The papers' tables beside our figures.

`published.json` holds what the papers print. The `*_rows` modules map each row to a figure in a
result file, or give the reason why there is none. `report` and `html` write the pages.
"""

from __future__ import annotations

from .published import Published, papers, published
from .report import Written, page, write_report
from .report_rows import STATES, Cell, ReportRow, ReportTable, report_tables
from .result_files import Figure, JsonPath, ResultFiles, json_path

__all__ = [
    "STATES",
    "Cell",
    "Figure",
    "JsonPath",
    "Published",
    "ReportRow",
    "ReportTable",
    "ResultFiles",
    "Written",
    "json_path",
    "page",
    "papers",
    "published",
    "report_tables",
    "write_report",
]
