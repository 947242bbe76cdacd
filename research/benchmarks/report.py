"""What every result file says about itself, and the one way it is written."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(os.environ.get("ASKLINE_RESULTS") or ROOT / "research" / "results")
"""Trials set the variable, so that they never write over the figures that are kept."""


def environment(*packages: str) -> dict[str, Any]:
    """Hardware, versions, commit and time: what a figure means nothing without."""
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--short") else ""),
        "cpu": _cpu(),
        "instructions": _instructions(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("numpy", *packages)},
    }


def save(name: str, figures: Mapping[str, Any], *packages: str) -> Path:
    """Write `research/results/NAME.json` whole or not at all."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {"environment": environment(*packages), **figures}
    half = path.with_suffix(".tmp")
    half.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    half.replace(path)
    return path


def load(name: str) -> dict[str, Any]:
    """What `save` wrote."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return found


def data_root() -> Path:
    """The folder with the datasets."""
    root = os.environ.get("ASKLINE_DATA")
    if not root:
        raise SystemExit("Set ASKLINE_DATA to the folder with the datasets.")
    return Path(root)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def _cpu() -> str:
    return next(iter(_cpuinfo("model name")), platform.processor())


def _instructions() -> list[str]:
    """Those that products of int8 depend on, of the first processor."""
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
