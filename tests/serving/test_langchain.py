"""LangChain's client, in the environment that `make test-clients` makes for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .server_process import Server

PYTHON = os.environ.get("ASKLINE_CLIENTS")
SCRIPT = Path(__file__).with_name("langchain_client.py")


@pytest.mark.skipif(not PYTHON, reason="LangChain is heavy: `make test-clients` runs this")
def test_langchains_jina_rerank_works_unchanged(server: Server) -> None:
    done = subprocess.run(
        [str(PYTHON), str(SCRIPT), server.base], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "works unchanged" in done.stdout
