"""
Asking a whole corpus: recall of retrieval, accuracy of the answer sentence, milliseconds, bytes.

    ASKLINE_DATA=/path/to/data python -m benchmarks.corpus answers --rankers bm25 cosinet
    ASKLINE_DATA=/path/to/data python -m benchmarks.corpus indexing --megabytes 100
    ASKLINE_DATA=/path/to/data python -m benchmarks.corpus scale --sentences 10000 1000000

`answers` takes every paragraph of a set as a document and asks each question of all of them; with
--on wikiqa:SPLIT, every WikiQA document of all three splits. SQuAD dev and WikiQA test are test
sets: choose on others, with --on squadshifts/new_wiki_v1.0.json and the like.
`indexing` and `scale` make their text out of the set's sentences, each with a number of its own.

With --folder DIR any of them may be stopped (Ctrl-C, SIGTERM) and goes on when called again.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from askline import load
from askline.corpus import Corpus, Retriever, answer
from askline.corpus.answers import Answer, Found
from askline.corpus.asking import BLEND
from askline.evaluation import markdown_table
from askline.types import Ranker, Source

from .corpus_library import Library, library
from .corpus_sizes import indexing, scale
from .report import save

SQUAD_DEV = "squad/dev-v1.1.json"
RECALL_AT = (20, 100)
ACCURATE_AT = (1, 5)


class Asked(NamedTuple):
    """What came back for one question: the place of the first right sentence, and the time."""

    place: int | None
    """From 1; None where no right one came."""
    seconds: float


Ask = Callable[[str], tuple[Sequence[Found | Answer], float]]


def first_right(found: Sequence[Found | Answer], gold: Sequence[Source]) -> int | None:
    """A sentence is right where it shares a character with a right one."""
    for place, each in enumerate(found, start=1):
        for right in gold:
            same = each.document == right.document
            if same and each.start < right.end and right.start < each.end:
                return place
    return None


def asked_all(questions: Library, ask: Ask, path: Path) -> list[Asked]:
    """Every question in turn, a line of the file each; those that are there are not asked again."""
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        lines = [line for line in file if line.endswith("\n")]
        asked = [Asked(*json.loads(line)) for line in lines]
        file.truncate(sum(len(line.encode()) for line in lines))  # a line that was cut short
        for question, gold in questions.questions[len(asked) :]:
            found, seconds = ask(question)
            asked.append(Asked(first_right(found, gold), seconds))
            file.write(json.dumps(asked[-1]) + "\n")
    return asked


def summary(name: str, asked: Sequence[Asked], at: Sequence[int], what: str) -> dict[str, Any]:
    milliseconds = 1000 * np.array([each.seconds for each in asked])
    right = {k: sum(each.place is not None and each.place <= k for each in asked) for k in at}
    shares = {f"{what}@{k}": round(100 * right[k] / len(asked), 2) for k in at}
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return {
        "ranker": name,
        **shares,
        "ms p50": round(float(p50), 2),
        "p95": round(float(p95), 2),
    }


def ranked(retriever: Retriever, ranker: Ranker, blend: float) -> Ask:
    def ask(question: str) -> tuple[Sequence[Answer], float]:
        said = answer(question, retriever, ranker, top=max(ACCURATE_AT), blend=blend)
        return said.answers, said.seconds

    return ask


def answers(on: str, specs: Sequence[str], limit: int | None, folder: Path) -> dict[str, Any]:
    """Retrieval alone, then with each ranker behind it."""
    asking = library(on, limit)
    place = folder / f"answers-{_slug(on)}-{len(asking.questions)}"
    place.mkdir(parents=True, exist_ok=True)
    with Corpus.in_memory() as corpus:
        corpus.add_texts(asking.documents)
        status, retriever = corpus.status(), corpus.retriever()

        def retrieved(question: str) -> tuple[Sequence[Found], float]:
            start = time.perf_counter()
            found = retriever.retrieve(question, max(RECALL_AT))
            return found, time.perf_counter() - start

        alone = asked_all(asking, retrieved, place / "retrieval.jsonl")
        recall = summary("retrieval", alone, RECALL_AT, "recall")
        rows = [summary("retrieval alone", alone, ACCURATE_AT, "accuracy")]
        for spec in specs:
            ranker = load(spec)
            for name, blend in ((spec, 0.0), (f"{spec} + retrieval", BLEND)):
                asked = asked_all(
                    asking, ranked(retriever, ranker, blend), place / f"{_slug(name)}.jsonl"
                )
                rows.append(summary(name, asked, ACCURATE_AT, "accuracy"))
    return {
        "set": on,
        "documents": status.documents,
        "sentences": status.sentences,
        "questions": len(asking.questions),
        "retrieval": [recall],
        "accuracy": rows,
    }


def _slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.removesuffix(".json")).strip("-")


def measured(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    if given.what == "answers":
        return answers(given.on, given.rankers, given.questions, folder)
    if given.what == "indexing":
        return indexing(given.on, given.megabytes, folder)
    spec = next(iter(given.rankers), None)
    return scale(given.on, given.sentences, spec, given.questions, folder)


def show(figures: dict[str, Any]) -> None:
    for title, rows in figures.items():
        if isinstance(rows, list):
            table = markdown_table(list(rows[0]), [list(row.values()) for row in rows])
            print(f"\n{title}\n{table}")
        else:
            print(f"{title}: {rows}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["answers", "indexing", "scale"])
    parser.add_argument(
        "--on", default=SQUAD_DEV, help="a file in SQuAD's format below the data, or wikiqa:SPLIT"
    )
    parser.add_argument("--rankers", nargs="*", default=[], help="each after the same retrieval")
    parser.add_argument("--questions", type=int, help="ask only so many")
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--sentences", type=int, nargs="+", default=[10_000])
    parser.add_argument("--folder", type=Path, help="keep what is made, and go on from there")
    parser.add_argument("--write", action="store_true", help="keep the figures in results/")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if given.folder:
            figures = measured(given, given.folder)
        else:
            with tempfile.TemporaryDirectory() as folder:
                figures = measured(given, Path(folder))
    except KeyboardInterrupt:
        kept = "The same command goes on." if given.folder else "Nothing is kept without --folder."
        raise SystemExit(f"Stopped. {kept}") from None
    show(figures)
    if given.write:
        name = f"corpus_{given.what}" + (f"_{_slug(given.on)}" if given.what == "answers" else "")
        print(f"\nKept in {save(name, figures, 'tantivy')}")


if __name__ == "__main__":
    main()
