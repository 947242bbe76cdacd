"""
One paragraph of many megabytes, encoded whole and searched.

    python -m research.benchmarks.phrase_long [--megabytes 1 10] [--limit 100]

Sentences of SQuAD dev, numbered where they come again, joined without a line's end until there is
enough. Of each size in a process of its own: seconds, the highest memory, the phrases that came
back, how many of them do not stand where they say, and what a question finds among them. Writes
research/results/phrase_long.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

from askline import data
from askline.phrases import PhraseIndex, PhraseModel

from .report import ROOT, data_root, save


def main() -> None:
    """Measure each size, print, save."""
    given = _arguments()
    if given.one is not None:
        print(json.dumps(_measured(given.one, given.limit)))
        return
    rows = {}
    for size in given.megabytes:
        command = [sys.executable, "-m", "research.benchmarks.phrase_long", "--one", str(size)]
        command += ["--limit", str(given.limit)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        rows[f"{size:g} MB"] = row = json.loads(done.stdout)
        print(size, row)
    print(save("phrase_long", {"rows": rows}, "onnxruntime"))


def _measured(megabytes: float, limit: int) -> dict[str, Any]:
    text = _paragraph(megabytes)
    model = PhraseModel.load()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    coded = model.encode(text, limit=limit)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    wrong = sum(text[one.start : one.end] != one.text for one in coded.phrases)
    with tempfile.TemporaryDirectory() as folder:
        index = PhraseIndex.open(folder, create=True)
        index.add([("long", text, coded)])
        begun = time.perf_counter()
        hits = index.search(model.question("When did the oil crisis begin?"), 5)
        asked = time.perf_counter() - begun
    return {
        "characters": len(text),
        "seconds": round(wall, 1),
        "processor seconds": round(
            after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, 1
        ),
        "MB at most": round(after.ru_maxrss / 1024),
        "phrases": len(coded),
        "phrases not where they say": wrong,
        "hits not where they say": sum(text[hit.start : hit.end] != hit.text for hit in hits),
        "nearest": [hit.text for hit in hits],
        "search ms": round(1000 * asked, 1),
    }


def _paragraph(megabytes: float) -> str:
    found = data.load("squad1:dev", root=data_root())
    sentences = list(dict.fromkeys(text for one in found.questions for text in one.texts))
    parts: list[str] = []
    length = 0
    while length < megabytes * 1e6:
        text = sentences[len(parts) % len(sentences)]
        parts.append(f"{len(parts)}: {text}" if len(parts) >= len(sentences) else text)
        length += len(parts[-1]) + 1
    return " ".join(parts).replace("\n", " ")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--limit", type=int, default=100, help="phrases a window")
    parser.add_argument("--one", type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
