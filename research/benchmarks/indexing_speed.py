"""
Indexing speed of two versions of askline on an ordinary folder, side by side.

    python -m research.benchmarks.indexing_speed OTHER [--files 400] [--rounds 5]

OTHER is a checkout of the version to compare with. Both index the same generated folder of txt, md,
html and pdf files, in turns, each time in a new process into a new index. Writes
research/results/indexing_speed.json with the ratio of the medians.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.text.readers.samples import lines, make_pdf

from .common import ROOT, save

WORDS = """the river line station opened in and crosses eight time zones on its way to sea bridge
was built of stone by a company that failed after ten years it still carries trains every morning
from northern town over hill where snow lies until may people walk""".split()


PROGRAM = """
import sys
from askline import Corpus
with Corpus.open(sys.argv[2]) as corpus:
    report = corpus.add(sys.argv[1])
    assert report.added and not report.problems, report
"""


def sentence(rng: random.Random) -> str:
    """A sentence of ordinary length, with a year so that sentences differ."""
    chosen = rng.choices(WORDS, k=rng.randint(8, 22))
    return f"{' '.join(chosen).capitalize()} in {rng.randint(1800, 2020)}."


def paragraph(rng: random.Random) -> str:
    """A few sentences."""
    return " ".join(sentence(rng) for _ in range(rng.randint(3, 7)))


def make_folder(folder: Path, files: int, seed: int = 0) -> None:
    """Files of 2 to 40 paragraphs, a quarter of each format."""
    rng = random.Random(seed)
    for number in range(files):
        paragraphs = [paragraph(rng) for _ in range(rng.randint(2, 40))]
        suffix = ("txt", "md", "html", "pdf")[number % 4]
        path = folder / f"{number // 50:02}" / f"{number:04}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        if suffix == "pdf":
            count = 1 + len(paragraphs) // 8
            pages = [lines(*[sentence(rng)[:90] for _ in range(40)]) for _ in range(count)]
            path.write_bytes(make_pdf(pages))
        else:
            path.write_text(FORMATS[suffix](number, paragraphs), encoding="utf-8")


def make_markdown(number: int, paragraphs: Sequence[str]) -> str:
    """A heading above every paragraph, and some emphasis."""
    parts = [f"## Part {at}\n\n{text} *So* it is." for at, text in enumerate(paragraphs)]
    return "\n\n".join([f"# Title {number}", *parts])


def make_html(number: int, paragraphs: Sequence[str]) -> str:
    """The same as a web page."""
    parts = [
        f"<h2>Part {at}</h2><p class='x'>{text} <b>So</b> it is.</p>"
        for at, text in enumerate(paragraphs)
    ]
    body = "\n".join(parts)
    return f"<html><title>Title {number}</title><body>{body}</body></html>"


FORMATS: dict[str, Callable[[int, Sequence[str]], str]] = {
    "txt": lambda _, paragraphs: "\n\n".join(paragraphs),
    "md": make_markdown,
    "html": make_html,
}


def index(checkout: Path, folder: Path) -> float:
    """Wall-clock seconds to index the folder, process start included."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-c", PROGRAM, str(folder), f"{out}/index"]
        start = time.perf_counter()
        subprocess.run(
            command,
            check=True,
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            stdout=subprocess.DEVNULL,
        )
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {"other": [], "this": []}
    checkouts = {"other": arguments.other.resolve(), "this": ROOT}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_folder(folder, arguments.files)
        size = sum(path.stat().st_size for path in folder.rglob("*.*"))
        for checkout in checkouts.values():
            index(checkout, folder)  # compiles the modules and fills the file cache
        for number in range(arguments.rounds):
            for version in sorted(checkouts, reverse=bool(number % 2)):
                seconds[version].append(round(index(checkouts[version], folder), 3))
                print(version, seconds[version][-1], flush=True)
    median = {version: statistics.median(found) for version, found in seconds.items()}
    figures = {
        "files": arguments.files,
        "bytes": size,
        "other_commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=checkouts["other"],
            capture_output=True,
            text=True,
        ).stdout.strip(),
        "seconds": seconds,
        "median_seconds": median,
        "speed_ratio": round(median["other"] / median["this"], 3),
    }
    print(f"speed of this version: {figures['speed_ratio']:.1%} of the other")
    print(f"Saved to {save('indexing_speed', figures, 'pypdfium2')}")


if __name__ == "__main__":
    main()
