"""Figures are found in result files by JSON paths."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from askline.errors import InputError
from research.tables import Figure, JsonPath, ResultFiles, json_path

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
    ("path", "found"),
    [
        (json_path("x", "deep", "list", 1), Figure(0.63)),
        (json_path("x", "deep", "list", 1, scale=100, shift=-100), Figure(-37.0)),
        (
            json_path("x", "deep", "list", 0, interval=("deep", "95 %"), scale=100),
            Figure(25.0, interval=(20.0, 30.0)),
        ),
        (
            json_path(
                "x",
                *("rows", {"row": "a"}, "MAP"),
                deviation=("rows", {"row": "a"}, "±"),
                seeds=("rows", {"row": "a"}, "seeds"),
            ),
            Figure(70.0, deviation=0.5, seeds=5),
        ),
        (json_path("x", "rows", {"row": "b", "seed": 2}, "MAP"), Figure(82.0)),
        (json_path("x", "rows", {"row": re.compile("[a]")}, "MAP"), Figure(70.0)),
        (json_path("x", "deep", "list", 0, seeds=3), Figure(0.25, seeds=3)),
    ],
    ids=["index", "scaled", "interval", "deviation", "row", "pattern", "seeds"],
)
def test_a_figure_is_found(path: JsonPath, found: Figure, tmp_path: Path) -> None:
    own = _files(tmp_path, x=RECORD).find(path)
    assert own is not None
    assert own.value == pytest.approx(found.value)
    assert own.deviation == found.deviation
    assert own.seeds == found.seeds
    assert own.interval == (pytest.approx(found.interval) if found.interval else None)


def test_several_rows_are_averaged_as_seeds(tmp_path: Path) -> None:
    own = _files(tmp_path, x=RECORD).find(json_path("x", "rows", {"row": "b"}, "MAP"))
    assert own is not None
    assert (own.value, own.seeds) == (81.0, 2)
    assert own.deviation == pytest.approx(2**0.5)


@pytest.mark.parametrize(
    "path",
    [
        json_path("y", "deep"),
        json_path("x", "nothing", "here"),
        json_path("x", "rows", {"row": "c"}, "MAP"),
        json_path("x", "deep", "list", 2),
        json_path("x", "deep", "text"),
        json_path("x", "deep", "yes"),
        json_path("x", "rows", "MAP"),
    ],
    ids=["file", "key", "row", "index", "text", "truth", "kind"],
)
def test_a_path_that_leads_nowhere_gives_none(path: JsonPath, tmp_path: Path) -> None:
    assert _files(tmp_path, x=RECORD).find(path) is None


def test_earlier_folders_take_precedence(tmp_path: Path) -> None:
    _files(tmp_path / "new", x={"v": 2})
    _files(tmp_path / "old", x={"v": 1}, y={"v": 3})
    both = ResultFiles(tmp_path / "new", tmp_path / "old")
    assert both.find(json_path("x", "v")) == Figure(2.0)
    assert both.find(json_path("y", "v")) == Figure(3.0)


@pytest.mark.parametrize(("text", "told"), [("{", "not a JSON"), ("[]", "one JSON object")])
def test_a_broken_file_is_named_in_the_error(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match=told):
        ResultFiles(tmp_path).get("x")
