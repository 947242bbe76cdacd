"""
What each integration costs: megabytes of its packages, and seconds to import its module.

    python -m research.benchmarks.integrations

Installs the packages of the base, and then those of the base and of each extra, into folders of
their own, with the versions of requirements/integrations.txt. The size of an integration is the
difference. An import is timed in new processes, alternating with the import of what all
integrations share; the fastest of both count, because other work on the machine only adds time.
Processor seconds are those of all threads of the process. About five minutes, most of them for
downloads and unpacking.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from .common import ROOT, save

MODULES = {
    "arrow": "askline.integrations.arrow",
    "haystack": "haystack_integrations.components.rankers.askline",
    "langchain": "askline.integrations.langchain",
    "llama-index": "askline.integrations.llama_index",
    "mcp": "askline.integrations.mcp",
    "pyterrier": "askline.integrations.pyterrier",
    "rerankers": "askline.integrations.rerankers",
}
"""Each extra with the module that needs it. CrossEncoder needs none, litellm only the service."""
REPEATS = 9
BASE = "import askline.integrations.common"


def requirements() -> dict[str, list[str]]:
    """The packages of the base, under an empty name, and of each extra."""
    tomllib = import_module("tomllib")  # new in Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: project["optional-dependencies"][name] for name in MODULES}
    return {"": project["dependencies"], **extras}


def install(packages: list[str], folder: Path) -> float:
    """Install packages into a folder; returns its size in megabytes, without compiled files."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["--constraint", str(ROOT / "requirements" / "integrations.txt")]
    target = ["--target", str(folder), "--no-compile"]
    subprocess.run([*pip, *constraints, *target, *packages], check=True)
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


class Cost(NamedTuple):
    """Of a new process, in seconds."""

    elapsed: float
    processor: float


def run(program: str, folder: Path) -> Cost:
    """Run a program in a new process, with these packages alone."""
    paths = os.pathsep.join([str(ROOT), str(folder)])
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # -S: not the packages of this environment.
    subprocess.run(
        [sys.executable, "-S", "-c", program], check=True, env=os.environ | {"PYTHONPATH": paths}
    )
    elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(elapsed, processor)


def measure(name: str, folder: Path) -> dict[str, float]:
    """Seconds of the base, and of the integration on top of it."""
    program = f"{BASE}; import {MODULES[name]}"
    for each in (BASE, program):  # compiles the modules, and fills the cache of the disk
        run(each, folder)
    pairs = [(run(BASE, folder), run(program, folder)) for _ in range(REPEATS)]
    base, own = (
        Cost(min(cost.elapsed for cost in costs), min(cost.processor for cost in costs))
        for costs in zip(*pairs, strict=True)
    )
    return {
        "base_import_seconds": round(base.elapsed, 2),
        "base_import_processor_seconds": round(base.processor, 2),
        "import_seconds": round(own.elapsed - base.elapsed, 2),
        "import_processor_seconds": round(own.processor - base.processor, 2),
    }


def main() -> None:
    """Measure all integrations and write the result file."""
    packages = requirements()
    rows = {}
    with tempfile.TemporaryDirectory() as temporary:
        base = install(packages[""], Path(temporary) / "base")
        for name in MODULES:
            folder = Path(temporary) / name
            size = install([*packages[""], *packages[name]], folder)
            rows[name] = {
                "packages": packages[name],
                "megabytes": round(size - base, 1),
                **measure(name, folder),
            }
            print(name, rows[name], flush=True)
    print(save("integrations", {"base_megabytes": round(base, 1), "integrations": rows}))


if __name__ == "__main__":
    main()
