"""Types that map the rows of published tables to our figures, and shared sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .result_files import JsonPath, json_path

__all__ = [
    "NO_ASNQ",
    "NO_GPD",
    "OTHER_SYSTEM",
    "Absent",
    "Empty",
    "ExtraRow",
    "Measured",
    "RowSource",
    "TableMapping",
    "adapted",
    "general",
    "light",
]


@dataclass(frozen=True)
class Empty:
    """A cell without a figure of ours, with the reason: what would fill it, or why nothing can."""

    reason: str


@dataclass(frozen=True)
class Measured:
    """Our figures for a row: for each measure a JSON path, or why there is no figure."""

    paths: tuple[JsonPath | Empty, ...]
    note: str = ""
    """What differs from the paper, in data or in model."""
    run: str = ""
    """Names in `research/runs.py` of the runs that make the figures; default: the table's."""


@dataclass(frozen=True)
class Absent:
    """A row without a figure of ours, with the reason and what would fill it."""

    reason: str


RowSource: TypeAlias = Measured | Absent


@dataclass(frozen=True)
class ExtraRow:
    """A row of ours that the paper does not have."""

    name: str
    source: Measured


@dataclass(frozen=True)
class TableMapping:
    """Sources for all rows of one published table."""

    rows: dict[str, RowSource]
    run: str = ""
    replacement: str = ""
    """The data used in place of the paper's, if those are not available."""
    extras: tuple[ExtraRow, ...] = ()
    remark: str = ""
    """An explanation of differences, as far as measured."""


NO_ASNQ = Absent("ASNQ was not available: its files would fill the row, `askline data` reads them")
NO_GPD = Absent("GPD has never been published: only its owners can fill the row")
OTHER_SYSTEM = Absent(
    "another group's system, not reimplemented here: its code or weights would fill the row"
)


_GENERAL = {"share": 0.7}  # rows with 0.8 are of an earlier recipe
_ADAPTED = {
    "wikiqa": ("cross_adapt", {}),  # the loss that cross-validation chose
    "trecqa": ("adapt_trecqa", {"start": "general", "loss": "point"}),  # the best on dev
}


def general(question_set: str, measure: str) -> JsonPath:
    """The general transformer on a test set, not adapted."""
    return json_path(
        "transformers", "rows", "blend_on_test", _GENERAL, "test", question_set, measure
    )


def adapted(task: str, measure: str) -> JsonPath:
    """The general transformer adapted to WikiQA or TrecQA, three seeds."""
    rows, which = _ADAPTED[task]
    return json_path("transformers", "rows", rows, which, "test", measure)


def light(table: str, row: str, measure: str, file: str = "light_rankers") -> JsonPath:
    """A light ranker's test figure, mean and standard deviation over seeds."""
    own = (table, {"row": row})
    name = f"test {measure}"
    return json_path(file, *own, name, deviation=(*own, f"{name} ±"), seeds=(*own, "seeds"))
