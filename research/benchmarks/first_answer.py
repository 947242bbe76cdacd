"""
From a fresh clone to the first answer, with the commands of the site's first page as they stand.

    python -m research.benchmarks.first_answer

Clones the repository into an empty folder and copies every command of docs/index.md into one shell,
in the order of the page, with an empty home folder and an empty pip cache. A command that fails, or
a first answer other than the page's, is an error. Measures the seconds of each command and the size
of the environment, and the seconds of `import askline`. Writes `first_answer.json`; takes about a
minute, most of which is the download of the dependencies.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from research.benchmarks.common import ROOT, save

PAGE = ROOT / "docs" / "index.md"
FIRST_ANSWER = "It measures 9,289 kilometres."
_BLOCK = re.compile(r"^```(sh|console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "== end of command"
IMPORT_RUNS = 7


class Step(NamedTuple):
    """One command of the page."""

    command: str
    seconds: float
    output: str


def commands(text: str) -> list[str]:
    """What a reader copies from a page: shell commands, and Python sessions as one command each."""
    found = []
    for language, block in _BLOCK.findall(text):
        if language == "sh":
            found += block.splitlines()
        elif language == "console":
            found += re.findall(r"^\$ (.*)$", block, re.MULTILINE)
        else:
            code = "\n".join(re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", block, re.MULTILINE))
            found.append(f"python <<'SESSION'\n{code}\nSESSION")
    return found


def follow(page: str, clone: Path, home: Path) -> list[Step]:
    """Run the commands of a page in one shell, as somebody who has nothing but the clone."""
    keep = ("LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in keep or name.lower().endswith("_proxy") or name.startswith("PIP_")
    }
    base = Path(sys.base_prefix) / "bin"
    environment |= {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(base), "/usr/local/bin", "/usr/bin", "/bin"]),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--norc"],
        cwd=clone,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    steps = []
    for command in commands(page):
        started = time.perf_counter()
        shell.stdin.write(f"{command}\necho; echo '{_END}' $?\n")
        shell.stdin.flush()
        lines: list[str] = []
        while not (line := shell.stdout.readline()).startswith(_END):
            if not line:
                raise SystemExit(f"The shell ended in: {command}\n{''.join(lines)}")
            lines.append(line)
        steps.append(Step(command, time.perf_counter() - started, "".join(lines).strip()))
        if line.split()[-1] != "0":
            raise SystemExit(f"Exit code {line.split()[-1]} of: {command}\n{steps[-1].output}")
    shell.stdin.close()
    shell.wait()
    return steps


def import_seconds(python: Path, folder: Path) -> float:
    """The median time of a process that imports askline, less that of one that imports nothing."""

    def timed(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([python, "-c", code], cwd=folder, env={}, check=True)
        return time.perf_counter() - started

    rounds = [timed("import askline") - timed("pass") for _ in range(IMPORT_RUNS)]
    return max(0.0, median(rounds))


def main() -> None:
    """Measure, and write the result file."""
    with tempfile.TemporaryDirectory(prefix="askline-first-") as folder:
        home, clone = Path(folder, "home"), Path(folder, "askline")
        home.mkdir()
        started = time.perf_counter()
        quiet = ["git", "clone", "--quiet", "--no-local", "--depth", "1"]
        subprocess.run([*quiet, ROOT.as_uri(), str(clone)], check=True)
        cloned = time.perf_counter() - started
        steps = follow(PAGE.read_text("utf-8"), clone, home)
        answered = next((n for n, step in enumerate(steps) if FIRST_ANSWER in step.output), None)
        if answered is None:
            raise SystemExit(f"No command of {PAGE} printed: {FIRST_ANSWER}")
        packages = clone / ".venv"
        size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
        figures = {
            "seconds to clone": round(cloned, 1),
            "seconds to the first answer": round(sum(s.seconds for s in steps[: answered + 1]), 1),
            "commands to the first answer": answered + 1,
            "steps": [{"command": s.command, "seconds": round(s.seconds, 2)} for s in steps],
            "environment MB": round(size / 1e6),
            "import askline ms": round(1000 * import_seconds(packages / "bin" / "python", home), 1),
        }
    for name, value in figures.items():
        print(f"{name}: {value}")
    print(save("first_answer", figures))


if __name__ == "__main__":
    main()
