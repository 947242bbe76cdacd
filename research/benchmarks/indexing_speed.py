"""
Indexing speed of two versions of askline on an ordinary folder, side by side.

    python -m research.benchmarks.indexing_speed OTHER [--files 400] [--rounds 9]

OTHER is a checkout of the version to compare with. Both index the same generated folders, in turns,
each time in a new process into a new index: one of txt, md, html and pdf files of ordinary length,
and one of notes of two sentences, where most of the time is spent per file and on the start of the
program. Writes research/results/indexing_speed.json with the ratios of the medians, in elapsed time
and in computing time. Computing time counts all processes; it is the one to look at on a machine
that is not idle.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

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


def make_notes(folder: Path, files: int, seed: int = 0) -> None:
    """Files of two sentences, a third of each text format."""
    rng = random.Random(seed)
    for number in range(files):
        suffix = ("txt", "md", "html")[number % 3]
        text = FORMATS[suffix](number, [f"{sentence(rng)} {sentence(rng)}"])
        (folder / f"{number:04}.{suffix}").write_text(text, encoding="utf-8")


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


class Seconds(NamedTuple):
    """What one indexing took, process start included."""

    elapsed: float
    computing: float
    """User and system time of all processes."""


def index(checkout: Path, folder: Path) -> Seconds:
    """Index the folder with one version of askline."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-c", PROGRAM, str(folder), f"{out}/index"]
        before = os.times()
        subprocess.run(
            command,
            check=True,
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            stdout=subprocess.DEVNULL,
        )
        after = os.times()
    computing = sum(after[2:4]) - sum(before[2:4])
    return Seconds(round(after.elapsed - before.elapsed, 3), round(computing, 3))


def compare(checkouts: dict[str, Path], folder: Path, rounds: int) -> dict[str, object]:
    """Index the folder with both versions in turns."""
    found: dict[str, list[Seconds]] = {version: [] for version in checkouts}
    for checkout in checkouts.values():
        index(checkout, folder)  # compiles the modules and fills the file cache
    for number in range(rounds):
        for version in sorted(checkouts, reverse=bool(number % 2)):
            found[version].append(index(checkouts[version], folder))
            print(folder.name, version, *found[version][-1], flush=True)
    paths = [path for path in folder.rglob("*.*") if path.is_file()]
    figures: dict[str, object] = {
        "files": len(paths),
        "bytes": sum(path.stat().st_size for path in paths),
        "seconds": found,
    }
    for field in Seconds._fields:
        median = {
            version: statistics.median(getattr(each, field) for each in seconds)
            for version, seconds in found.items()
        }
        ratio = round(median["other"] / median["this"], 3)
        figures |= {f"median_{field}_seconds": median, f"{field}_speed_ratio": ratio}
        print(f"{folder.name}: by {field} time, {ratio:.1%} of the speed of the other version")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    checkouts = {"other": arguments.other.resolve(), "this": ROOT}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=checkouts["other"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    figures: dict[str, object] = {"other_commit": commit}
    with tempfile.TemporaryDirectory() as name:
        for kind, make in (("ordinary", make_folder), ("notes", make_notes)):
            folder = Path(name) / kind
            folder.mkdir()
            make(folder, arguments.files)
            figures[kind] = compare(checkouts, folder, arguments.rounds)
    print(f"Saved to {save('indexing_speed', figures, 'pypdfium2')}")


if __name__ == "__main__":
    main()
