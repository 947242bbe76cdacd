"""Fixtures that more than one room needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with the real datasets; tests that ask for it skip where there is none."""
    root = os.environ.get("ASKLINE_DATA")
    if not root:
        pytest.skip("ASKLINE_DATA is not set: point it at the folder with the datasets")
    path = Path(root).expanduser().resolve()
    assert path.is_dir(), f"ASKLINE_DATA={root} is not a folder"
    return path
