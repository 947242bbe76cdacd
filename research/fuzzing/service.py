"""
Fuzz the service with schemathesis: generated requests for every route, valid and invalid.

    python -m research.fuzzing.service [--seconds N]

Starts `askline serve` with a small index and one worker, and runs all checks of schemathesis in all
of its phases until the time is over. The exit code is that of schemathesis: 0 without findings.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from askline.corpus import Corpus
from askline.demo import documents

__all__ = ["fuzz", "main"]

_FOLDER = Path(__file__).parent
_ROOT = _FOLDER.parent.parent


def fuzz(seconds: int) -> int:
    """Fuzz a service of its own; return the exit code of schemathesis."""
    with tempfile.TemporaryDirectory() as folder:
        with Corpus.open(Path(folder) / "index", ranker=None) as corpus:
            corpus.add_texts(documents())
        with _service(Path(folder) / "index") as url:
            return _run_schemathesis(url, seconds, Path(folder))


@contextmanager
def _service(index: Path) -> Iterator[str]:
    program = "from askline.cli import main; main()"
    options = ["--port", "0", "--index", str(index), "--model", "cosinet", "--workers", "1"]
    log = index.with_suffix(".log")
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", program, "serve", *options], stderr=errors, cwd=_ROOT
        )
        try:
            yield _await_url(log, process)
            if process.poll() is not None:
                raise SystemExit("The service ended during the run.")
        finally:
            process.terminate()
            process.wait(60)
    tracebacks = log.read_text("utf-8").count("Traceback")
    if tracebacks:
        raise SystemExit(f"The service logged {tracebacks} exceptions.")


def _await_url(log: Path, process: subprocess.Popen[bytes]) -> str:
    while process.poll() is None:
        match = re.search(r"Listening on (\S+)", log.read_text("utf-8"))
        if match:
            return match[1]
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    raise SystemExit(f"The service did not start: {log.read_text('utf-8')}")


def _run_schemathesis(url: str, seconds: int, folder: Path) -> int:
    options = [
        *("--config-file", str(_FOLDER / "schemathesis.toml")),
        *("run", f"{url}/openapi.json", "--checks", "all", "--mode", "all"),
        *("--phases", "examples,coverage,fuzzing,stateful", "--max-time", str(seconds)),
        *("--suppress-health-check", "all", "--continue-on-failure", "--no-color"),
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from schemathesis.cli import schemathesis; schemathesis()",
            *options,
        ],
        cwd=folder,
    )
    return done.returncode


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300, metavar="N", help="default: 300")
    sys.exit(fuzz(parser.parse_args().seconds))


if __name__ == "__main__":
    main()
