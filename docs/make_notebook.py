"""
Execute examples/askline.ipynb and store its outputs; --picture also makes docs/images/notebook.png.

    python docs/make_notebook.py
    python docs/make_notebook.py --picture

The outputs show times, so run it on a machine that is otherwise idle. The picture needs nbconvert
and chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import nbclient
from playwright.sync_api import sync_playwright

NOTEBOOK = Path(__file__).parent.parent / "examples" / "askline.ipynb"
PICTURE = Path(__file__).parent / "images" / "notebook.png"
nbformat = import_module("nbformat")  # its functions have no types
METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python"},
}


def execute() -> None:
    """Run all cells; times of execution and versions, which differ in every run, are left out."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    nbformat.write(notebook, NOTEBOOK)


def take_picture() -> None:
    """Show the notebook with its stored outputs as a page, from the top to the funnel."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", folder]
        subprocess.run([*command, str(NOTEBOOK)], check=True)
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = chromium.new_page(viewport={"width": 900, "height": 1930})
        page.goto(Path(folder, f"{NOTEBOOK.stem}.html").as_uri())
        page.screenshot(path=PICTURE)
        chromium.close()


if __name__ == "__main__":
    execute()
    if "--picture" in sys.argv[1:]:
        take_picture()
