from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from askline.text.readers import iter_sentences
from askline.text.readers.notebook import read_notebook

from .samples import check, originals, read, refusal, shown

CELLS = [
    {
        "cell_type": "markdown",
        "metadata": {"cells": [{"source": ["Not this."]}]},
        "source": ["# On *lamps*\n", "\n", 'A "quoted" é\n', "**word**. Two.\n"],
    },
    {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": [{"name": "stdout", "text": ["Output. Not text.\n"]}],
        "source": ["x = 1.  # Not a sentence.\n", "print(x)"],
    },
    {"cell_type": "raw", "metadata": {}, "source": ["Raw. Text."]},
    {"cell_type": "markdown", "metadata": {}, "source": "| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd."},
]
PAGE = json.dumps({"cells": CELLS, "metadata": {"title": "no"}, "nbformat": 4}, indent=1)


def test_markdown_cells_are_text_and_code_cells_are_code(tmp_path: Path) -> None:
    document = read(tmp_path, "a.ipynb", PAGE)
    assert (document.kind, document.title) == ("notebook", "On lamps")
    assert shown(document) == [
        ("heading", "On lamps"),
        ("sentence", 'A "quoted" é\nword.'),
        ("sentence", "Two."),
        ("code", "x = 1.  # Not a sentence.\nprint(x)"),
        ("columns", "a\nb"),
        ("row", "1\n2"),
        ("sentence", "End."),
    ]
    check(document)


def test_places_are_cells(tmp_path: Path) -> None:
    document = read(tmp_path, "a.ipynb", PAGE)
    places = [str(document.place(s.start)) for s in iter_sentences(document)]
    assert places == ["cell 1"] * 3 + ["cell 2"] + ["cell 4"] * 3


def test_offsets_slice_the_json(tmp_path: Path) -> None:
    found = originals(read(tmp_path, "a.ipynb", PAGE))
    assert found[0] == "On *lamps"
    assert found[1].startswith('A \\"quoted\\" \\u00e9\\n"')
    assert found[1].endswith("**word**.")
    assert found[2] == "Two."


def test_old_notebooks_have_worksheets(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "input": ["a = 1"]}, {"cell_type": "markdown", "source": "Hi."}]
    page = json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]})
    assert shown(read(tmp_path, "a.ipynb", page)) == [("code", "a = 1"), ("sentence", "Hi.")]


@pytest.mark.parametrize("source", ["[1]", "{}", '{"cells": []}', "no json"])
def test_other_json_is_refused(tmp_path: Path, source: str) -> None:
    assert "not a Jupyter notebook" in refusal(tmp_path, "a.ipynb", source)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[", "{", '"a":', '{"cells":[', '"', "\\"])
def test_time_is_linear_in_length(piece: str) -> None:
    start = time.process_time()
    page = '{"cells": [{"cell_type": "code", "source": []}, ' + piece * (100_000 // len(piece))
    read_notebook(page)
    assert time.process_time() - start < 2


def test_offsets_of_formulas(tmp_path: Path) -> None:
    cell = {"cell_type": "markdown", "source": ["It is $\\nu_{\\rm max}$ of $x_1$ & all.\n"]}
    document = read(tmp_path, "a.ipynb", json.dumps({"cells": [cell]}))
    assert [text for _, text in shown(document)] == ["It is ν_max of x_1 & all."]
    check(document)
