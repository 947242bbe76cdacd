"""
Scores of everything that ships, over a fixed mix of questions, for `test_recorded_scores.py`.

`python -m tests.oracles.recorded` writes the record again. Do so only when a change of scores is
meant, and say why in the commit: refactoring must leave every bit as it is.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

import askline
from askline.demo import documents

RECORD = Path(__file__).with_name("recorded_scores.json")

QUESTIONS = (
    "How long is the Trans-Siberian Railway?",
    "Who invented the paper coffee filter?",
    "Why do spring tides happen?",
    "When did the last lighthouse crew in the United Kingdom go ashore?",
    "what is the kilogram tied to since 2019",
    "How do bees tell others where the flowers are?",
    "WHO wrote Emma?!",
    "café naïve 灯台 \U0001f5fc",
    "Which spacecraft was lost, and why did the mixing of units in two pieces of software matter?",
)
SPECS = (
    "rr",
    "wo",
    "wo(ties=reversed)",
    "wo+rr",
    "idf-overlap",
    "jaccard",
    "bm25",
    "bm25(k1=0.9, b=0.4)",
    "random",
    "random(seed=7)",
    "cosinet",
    "cascade",
    "cascade(depth=4)",
    "cascade(depth=10)",
    "cascade(alpha=0.3)",
    "jaccard % 5",
    "jaccard % 20 >> bm25",
    "wo % 4 >> rr % 2 >> bm25",
    "(wo % 9 >> rr) % 3 >> jaccard",
    "cosinet % 10 >> cascade",
    "cosinet % 100 >> cascade",
)

Row = list[str | int]


def candidates() -> list[str]:
    """The sentences of the demonstration pages, and texts that are hard to read."""
    sentences = [
        sentence.strip() + "."
        for _, text in documents()
        for paragraph in text.split("\n\n")[1:]
        for sentence in paragraph.split(".")
        if sentence.strip()
    ]
    return [*sentences[::2], "", "?!… — «»", "word " * 400, "x" * 900, sentences[0], sentences[0]]


def ranked() -> Iterator[tuple[str, list[Row]]]:
    """Index, stage and score of every hit, for each ranker and question."""
    texts = candidates()
    for spec in SPECS:
        ranker = askline.load(spec)
        for number, question in enumerate(QUESTIONS):
            some = texts[number :: 1 + number % 3]
            hits = ranker.rank(question, some)
            yield f"{spec} | {number}", [[hit.index, hit.stage, hit.score.hex()] for hit in hits]


def ranked_in_batches() -> Iterator[tuple[str, list[Row]]]:
    """The same for several questions in one call."""
    texts = candidates()
    requests = [(question, texts[number:40:2]) for number, question in enumerate(QUESTIONS)]
    for spec in ("cascade", "cosinet % 10 >> cascade"):
        for number, hits in enumerate(askline.load(spec).rank_many(requests)):
            rows: list[Row] = [[hit.index, hit.stage, hit.score.hex()] for hit in hits]
            yield f"rank_many: {spec} | {number}", rows


def asked() -> Iterator[tuple[str, list[Row]]]:
    """Answers over the demonstration pages: by words, with phrases, by phrases alone."""
    with askline.Corpus.in_memory() as corpus:
        corpus.add(dict(documents()))
        for number, question in enumerate(QUESTIONS):
            yield f"ask | {number}", _answers(corpus.ask(question))
        for number, question in enumerate(QUESTIONS[:4]):
            yield f"ask with phrases | {number}", _answers(corpus.ask(question, phrases=True))
            yield f"nearest | {number}", _answers(corpus.nearest(question))


def _answers(answers: askline.Answers) -> list[Row]:
    return [
        [
            answer.document,
            answer.start,
            answer.end,
            answer.stage,
            answer.phrase.text if answer.phrase else "",
            answer.score.hex(),
            (answer.probability or 0.0).hex(),
        ]
        for answer in answers
    ]


def everything() -> dict[str, list[Row]]:
    """All rows by name."""
    return {**dict(ranked()), **dict(ranked_in_batches()), **dict(asked())}


def arithmetic() -> dict[str, str]:
    """What the last bits of a float depend on: the processor, and the libraries that compute."""
    flags = set[str]()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        lines = cpu.read_text("utf-8").splitlines()
        flags = set(next((line for line in lines if line.startswith("flags")), "").split())
    kinds = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8")
    return {
        "machine": platform.machine(),
        "instructions": " ".join(kind for kind in kinds if kind in flags),
        "numpy": np.__version__,
        "onnxruntime": version("onnxruntime"),
    }


def main() -> None:
    """Write the record."""
    lines = [f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in everything().items()]
    body = ",\n".join(lines)
    RECORD.write_text(
        f'{{"arithmetic": {json.dumps(arithmetic())},\n"rows": {{\n{body}\n}}}}\n', "utf-8"
    )


if __name__ == "__main__":
    main()
