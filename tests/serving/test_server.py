from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "Other machines can reach"),
        (["--model", "cosnet"], "Did you mean 'cosinet'?"),
        (["--key", "short"], "at least 16 characters"),
        (["--open", "--host", "256.0.0.1"], "Cannot listen on 256.0.0.1"),
    ],
    ids=["exposure", "model", "key", "host"],
)
def test_errors_at_start_are_reported_without_a_traceback(options: list[str], message: str) -> None:
    command = [sys.executable, "-c", "from askline.cli import main; main()", "serve"]
    done = subprocess.run(
        [*command, "--port", "0", *options],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ,
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_reported_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-c", "from askline.cli import main; main()", "serve"]
        done = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, timeout=60, env=os.environ
        )
    assert done.returncode == 2, done.stderr
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert "Choose another with --port." in done.stderr


def test_a_worker_process_does_not_import_the_web_framework() -> None:
    program = (
        "import askline.serving.worker, sys\n"
        "print(*{'fastapi', 'starlette', 'uvicorn'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.split() == []
