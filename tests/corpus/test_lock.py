from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from askline.corpus.lock import BusyError, lock_holder, writer_lock

HOLD = """
import sys, time
from pathlib import Path
from askline.corpus.lock import writer_lock
with writer_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_one_writer_at_a_time_within_a_process(tmp_path: Path) -> None:
    busy = pytest.raises(BusyError, match=r"is being written by process \d+\. Wait for it")
    with writer_lock(tmp_path), busy, writer_lock(tmp_path):
        pass
    with writer_lock(tmp_path):
        pass
    assert lock_holder(tmp_path) is None


def test_a_killed_process_releases_the_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert lock_holder(tmp_path) == holder.pid
        with pytest.raises(BusyError, match=f"process {holder.pid}"), writer_lock(tmp_path):
            pass
        holder.kill()
    with writer_lock(tmp_path):
        pass


def test_patience_waits_that_long(tmp_path: Path) -> None:
    with writer_lock(tmp_path):
        start = time.monotonic()
        with pytest.raises(BusyError), writer_lock(tmp_path, timeout=0.2):
            pass
        assert time.monotonic() - start >= 0.2


def test_a_missing_folder_has_no_lock_holder(tmp_path: Path) -> None:
    assert lock_holder(tmp_path / "nowhere") is None
