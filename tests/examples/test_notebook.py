"""The notebook runs from its first cell to its last, and its stored outputs are those of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")

ROOT = Path(__file__).parent.parent.parent
NOTEBOOK = ROOT / "examples" / "askline.ipynb"


@pytest.fixture(scope="module")
def stored() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A copy of the notebook after a run, with nothing written outside a temporary folder."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    home = tmp_path_factory.mktemp("jupyter")
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
            patch.setenv(variable, str(home))
        client.execute()
    return notebook


def _kinds(notebook: Any) -> list[list[str]]:
    """For each code cell, what it shows: text, a table or a picture."""
    return [
        sorted({kind for output in cell.outputs for kind in output.get("data", {"text/plain": ""})})
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _printed(notebook: Any) -> str:
    return "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stdout"
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of packages that only run the notebook
def test_the_notebook_runs(executed: Any) -> None:
    printed = _printed(executed)
    assert printed.count("A late book costs twenty cents per day") == 2
    assert "Use it as: cosinet('mine')" in printed
    found = [float(percent) for percent in re.findall(r"P@1 +([\d.]+) %", printed)]
    assert len(found) == 3
    assert found[2] > 90 > found[1] > found[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_stored_outputs_are_of_the_same_kinds(stored: Any, executed: Any) -> None:
    assert _kinds(stored) == _kinds(executed)
    assert sum("image/png" in kinds for kinds in _kinds(stored)) == 4


def test_the_stored_notebook_is_small_and_complete(stored: Any) -> None:
    assert NOTEBOOK.stat().st_size < 300_000
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    text = NOTEBOOK.read_text("utf-8")
    assert not re.search(r'"output_type": "error"|/home/|/tmp/|/root/|Traceback', text)
    nbformat.validate(stored)
