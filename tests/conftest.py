"""Fixtures that more than one room needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Tests work on tiny tensors, for which handing work to other threads costs more than the work.
# Before torch and numpy are imported; a test that is about threads sets their number itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with the real datasets; tests that ask for it skip where there is none."""
    root = os.environ.get("ASKLINE_DATA")
    if not root:
        pytest.skip("ASKLINE_DATA is not set: point it at the folder with the datasets")
    path = Path(root).expanduser().resolve()
    assert path.is_dir(), f"ASKLINE_DATA={root} is not a folder"
    return path
