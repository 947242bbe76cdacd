"""
PDF libraries side by side, and the speed of reading each format.

    python -m research.benchmarks.reading_files [FILE.pdf …]

Reads a generated pdf of 200 pages and the given files. Libraries that are not installed are
skipped. Every measurement runs in its own process. Writes research/results/reading_files.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from askline.evaluation import markdown_table
from tests.text.readers.samples import lines, make_docx, make_pdf

from .common import save

SENTENCE = "The line was opened in 1916 and crosses eight time zones on its way to the sea. "
PAGE = [SENTENCE[:70]] * 45
PACKAGES = {"pypdfium2": "pypdfium2", "pypdf": "pypdf", "pdfminer": "pdfminer.six"}
FORMATS: dict[str, Callable[[int], str | bytes]] = {
    "txt": lambda size: (SENTENCE * 8 + "\n\n") * (size // 650),
    "md": lambda size: ("- " + SENTENCE * 4 + "*and* [so](http://x.org) on.\n") * (size // 350),
    "html": lambda size: (
        ("<p>" + SENTENCE * 8 + "<b>and</b> so on &amp; on.</p>\n") * (size // 690)
    ),
    "jsonl": lambda size: (json.dumps({"text": SENTENCE * 8 + "\n"}) + "\n") * (size // 660),
    "csv": lambda size: "id,text\n" + f'1,"{SENTENCE * 8}"\n' * (size // 650),
    "docx": lambda size: make_docx(
        f"<w:p><w:r><w:t>{SENTENCE * 8}</w:t></w:r></w:p>" * (size // 680)
    ),
}


def characters(library: str, path: str) -> int:
    """The text that a library extracts."""
    if library == "askline":
        return len(import_module("askline.text.readers").read_document(path).text)
    if library == "pypdfium2":
        pages: Any = import_module("pypdfium2").PdfDocument(path)
        return sum(len(page.get_textpage().get_text_range()) for page in pages)
    if library == "pypdf":
        return sum(
            len(page.extract_text()) for page in import_module("pypdf").PdfReader(path).pages
        )
    return len(import_module("pdfminer.high_level").extract_text(path))


def measure(library: str, path: str) -> dict[str, Any]:
    """Processor seconds without the import, and megabytes at the peak."""
    import resource

    import_module(
        "askline.text.readers" if library == "askline" else PACKAGES[library].split(".")[0]
    )
    start = time.process_time()
    count = characters(library, path)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"characters": count, "seconds": round(seconds, 2), "peak_mb": round(peak)}


def apart(library: str, path: Path) -> dict[str, Any] | None:
    """Measure in another process; None if the library is missing or fails."""
    call = [
        sys.executable,
        "-m",
        "research.benchmarks.reading_files",
        "--measure",
        library,
        str(path),
    ]
    done = subprocess.run(call, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:4])))
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "200-pages.pdf"
        made.write_bytes(make_pdf([lines(*PAGE)] * 200))
        for path in (made, *map(Path, sys.argv[1:])):
            for library in ("askline", *PACKAGES):
                if found := apart(library, path):
                    rows.append({"file": path.name, "library": library, **found})
        for suffix, make in FORMATS.items():
            path = Path(name) / f"10-mb.{suffix}"
            content = make(10_000_000)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            if found := apart("askline", path):
                rows.append({"file": path.name, "library": "askline", **found})
    print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]))
    packages = ("pypdfium2", "pypdf", "pdfminer.six", "charset-normalizer")
    print(f"\nSaved to {save('reading_files', {'rows': rows}, *packages)}")


if __name__ == "__main__":
    main()
