"""Shared by all benchmarks: processor time, data, sampling, and result files with provenance."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from askline.types import QuestionSet

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "research" / "results"
"""The result files behind published figures; written only from a tree without local changes."""
ARCHIVED = ".git_archival.txt"
"""`git archive` writes the commit into this file, for machines that get no clone."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one ranking: wall clock, and processor time of all cores."""

    wall: float
    processor: float


def cost(work: Callable[[], Any]) -> Cost:
    """Measure one call."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return Cost(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def data_root() -> Path:
    """The folder of the datasets, from the environment variable ASKLINE_DATA."""
    root = os.environ.get("ASKLINE_DATA")
    if not root:
        raise SystemExit("Set ASKLINE_DATA to the folder of the datasets.")
    return Path(root)


def evenly(questions: QuestionSet, most: int | None) -> QuestionSet:
    """At most `most` questions at even steps through the set; all questions if it is None."""
    wanted = most or len(questions)
    step = max(1, len(questions) // max(1, wanted))
    return replace(questions, questions=questions.questions[::step][:wanted])


def results_folder() -> Path:
    """`research/results`, or the folder in the environment variable ASKLINE_RESULTS for trials."""
    return Path(os.environ.get("ASKLINE_RESULTS") or PUBLISHED)


def save(name: str, figures: Mapping[str, Any], *packages: str) -> Path:
    """
    Write `NAME.json` with its provenance to the results folder, whole or not at all.

    Exits with an error if the folder is `research/results` and the working tree has uncommitted
    changes, because the figures could not be rebuilt from the recorded commit. The figures
    are kept in a temporary folder.
    """
    folder = results_folder()
    record = {"environment": environment(*packages), **figures}
    changes = _uncommitted()
    if folder.resolve() == PUBLISHED and changes:
        kept = _write(Path(tempfile.mkdtemp(prefix="askline-results-")), name, record)
        raise SystemExit(
            f"research/results/{name}.json was not written: {changes}. The figures are in {kept}. "
            "Commit your changes and run the benchmark again, or save trial runs elsewhere with "
            "ASKLINE_RESULTS=DIR."
        )
    return _write(folder, name, record)


def load(name: str) -> dict[str, Any]:
    """Read what `save` wrote."""
    found: dict[str, Any] = json.loads((results_folder() / f"{name}.json").read_text("utf-8"))
    return found


def load_or_empty(name: str) -> dict[str, Any]:
    """What `load` returns, or an empty record if the file does not exist."""
    return load(name) if (results_folder() / f"{name}.json").is_file() else {}


def environment(*packages: str) -> dict[str, Any]:
    """
    Hardware, package versions, commit and time of a measurement.

    A plus sign after the commit means uncommitted changes; only trial runs can have it.
    """
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "instructions": _instructions(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("numpy", *packages)},
    }


def _write(folder: Path, name: str, record: Mapping[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    half = path.with_suffix(".tmp")
    half.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    half.replace(path)
    return path


def _uncommitted() -> str:
    """Why the recorded commit does not describe the code; empty if it does."""
    if not _git("rev-parse", "HEAD"):
        return "this is not a git clone"
    # Benchmarks that save after each row change result files themselves.
    changed = _git("status", "--short", "--", ".", ":!research/results").splitlines()
    if not changed:
        return ""
    names = ", ".join(line[3:].strip() for line in changed[:3])
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"the working tree has uncommitted changes ({names}{more})"


def _commit() -> str:
    archived = ROOT / ARCHIVED
    text = archived.read_text("utf-8").strip() if archived.is_file() else ""
    if text and "$" not in text:  # in a clone it has git's placeholder
        return text
    return _git("rev-parse", "--short", "HEAD") + ("+" if _uncommitted() else "")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:  # git is not installed
        return ""
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""


def _cpu() -> str:
    return next(iter(_cpuinfo("model name")), platform.processor())


def _instructions() -> list[str]:
    """Instruction sets that the speed of int8 products depends on."""
    known = next(iter(_cpuinfo("flags")), "").split()
    return [name for name in ("avx2", "avx512f", "avx512_vnni", "amx_int8") if name in known]


def _cpuinfo(entry: str) -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return []
    return [line.partition(":")[2].strip() for line in lines if line.startswith(entry)]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
