"""Figures found in result files, and none where there is none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from askline.errors import InputError
from research.tables import Figure, Place, ResultFiles
from research.tables.places import place

RECORD = {
    "rows": [
        {"row": "a", "seed": 1, "MAP": 70.0, "±": 0.5, "seeds": 5},
        {"row": "b", "seed": 1, "MAP": 80.0},
        {"row": "b", "seed": 2, "MAP": 82.0},
    ],
    "deep": {"list": [0.25, 0.63], "95 %": [0.2, 0.3], "yes": True, "text": "70"},
}


def _files(folder: Path, **records: Any) -> ResultFiles:
    folder.mkdir(exist_ok=True)
    for name, record in records.items():
        (folder / f"{name}.json").write_text(json.dumps(record))
    return ResultFiles(folder)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (place("x", "deep", "list", 1), Figure(0.63)),
        (place("x", "deep", "list", 1, scale=100, shift=-100), Figure(-37.0)),
        (
            place("x", "deep", "list", 0, interval=("deep", "95 %"), scale=100),
            Figure(25.0, interval=(20.0, 30.0)),
        ),
        (
            place(
                "x",
                *("rows", {"row": "a"}, "MAP"),
                deviation=("rows", {"row": "a"}, "±"),
                seeds=("rows", {"row": "a"}, "seeds"),
            ),
            Figure(70.0, deviation=0.5, seeds=5),
        ),
        (place("x", "rows", {"row": "b", "seed": 2}, "MAP"), Figure(82.0)),
        (place("x", "rows", {"row": re.compile("[a]")}, "MAP"), Figure(70.0)),
        (place("x", "deep", "list", 0, seeds=3), Figure(0.25, seeds=3)),
    ],
    ids=["index", "scaled", "interval", "deviation", "row", "pattern", "seeds"],
)
def test_a_figure_is_found(where: Place, found: Figure, tmp_path: Path) -> None:
    own = _files(tmp_path, x=RECORD).find(where)
    assert own is not None
    assert own.value == pytest.approx(found.value)
    assert own.deviation == found.deviation
    assert own.seeds == found.seeds
    assert own.interval == (pytest.approx(found.interval) if found.interval else None)


def test_several_rows_are_seeds_of_one_figure(tmp_path: Path) -> None:
    own = _files(tmp_path, x=RECORD).find(place("x", "rows", {"row": "b"}, "MAP"))
    assert own is not None
    assert (own.value, own.seeds) == (81.0, 2)
    assert own.deviation == pytest.approx(2**0.5)


@pytest.mark.parametrize(
    "where",
    [
        place("y", "deep"),
        place("x", "nothing", "here"),
        place("x", "rows", {"row": "c"}, "MAP"),
        place("x", "deep", "list", 2),
        place("x", "deep", "text"),
        place("x", "deep", "yes"),
        place("x", "rows", "MAP"),
    ],
    ids=["file", "key", "row", "index", "text", "truth", "kind"],
)
def test_what_is_not_there_is_no_figure(where: Place, tmp_path: Path) -> None:
    assert _files(tmp_path, x=RECORD).find(where) is None


def test_the_first_folder_goes_before_the_others(tmp_path: Path) -> None:
    _files(tmp_path / "new", x={"v": 2})
    _files(tmp_path / "old", x={"v": 1}, y={"v": 3})
    both = ResultFiles(tmp_path / "new", tmp_path / "old")
    assert both.find(place("x", "v")) == Figure(2.0)
    assert both.find(place("y", "v")) == Figure(3.0)


@pytest.mark.parametrize(("text", "told"), [("{", "no JSON"), ("[]", "one JSON object")])
def test_a_broken_file_is_named(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=told):
        ResultFiles(tmp_path).get("x")
