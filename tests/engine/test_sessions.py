from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RANK = """
import os
import askline
askline.load("cascade").rank("Who wrote Emma?", ["It sold well.", "Austen wrote Emma."])
print(os.environ["ORT_DISABLE_TELEMETRY"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("given", [None, "0"])
def test_telemetry_of_onnx_runtime_is_off_unless_it_is_asked_for(
    tmp_path: Path, given: str | None
) -> None:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    }
    chosen = {} if given is None else {"ORT_DISABLE_TELEMETRY": given}
    done = subprocess.run(
        [sys.executable, "-c", RANK],
        env={**kept, **chosen, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == (given or "1")
    if given is None:  # its packages for Linux keep what they will send in the user's folders
        assert list(tmp_path.rglob("*")) == []
