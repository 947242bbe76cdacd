"""
How fast phrases are encoded, and questions, without torch.

    python -m research.benchmarks.phrase_speed [--model DIR] [--on squadshifts/new_wiki_v1.0.json]
        [--paragraphs 60] [--threads 1 2]

Paragraphs and megabytes of text a second, and milliseconds a question, by the number of threads.
Writes research/results/phrase_speed.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from askline.data.squad import Paragraph, read_paragraphs
from askline.phrases.phrase_model import PhraseModel

from .report import data_root, save


def main() -> None:
    """Measure, print, save."""
    given = _arguments()
    found = [one for one in read_paragraphs(data_root() / given.on).paragraphs if one.questions]
    paragraphs = found[: given.paragraphs]
    rows = {
        f"{threads} threads": measured(PhraseModel.load(given.model, threads=threads), paragraphs)
        for threads in given.threads
    }
    for name, row in rows.items():
        print(f"{name:12}", "  ".join(f"{key} {value:.3f}" for key, value in row.items()))
    record = {"on": given.on, "paragraphs": len(paragraphs), "model": given.model or "shipped"}
    print(save(given.name, {**record, "rows": rows}, "onnxruntime"))


def measured(model: PhraseModel, paragraphs: Sequence[Paragraph]) -> dict[str, float]:
    """The first of each kind warms up, off the clock."""
    texts = [paragraph.text for paragraph in paragraphs]
    questions = [paragraph.questions[0].text for paragraph in paragraphs]
    model.encode(texts[0])
    model.question(questions[0])
    begun = time.perf_counter()
    coded = model.encode_many(texts)
    seconds = time.perf_counter() - begun
    asked = []
    for question in questions:
        begun = time.perf_counter()
        model.question(question)
        asked.append(1000 * (time.perf_counter() - begun))
    return {
        "ms a paragraph": 1000 * seconds / len(texts),
        "paragraphs a second": len(texts) / seconds,
        "MB a second": sum(len(text.encode()) for text in texts) / seconds / 1e6,
        "phrases a second": sum(map(len, coded)) / seconds,
        "ms a question p50": float(np.percentile(asked, 50)),
        "ms a question p95": float(np.percentile(asked, 95)),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a folder; without it, the model that comes along")
    parser.add_argument("--on", default="squadshifts/new_wiki_v1.0.json")
    parser.add_argument("--paragraphs", type=int, default=60)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--name", default="phrase_speed", help="of the file in research/results/")
    return parser.parse_args()


if __name__ == "__main__":
    main()
