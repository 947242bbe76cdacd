"""
Asking a whole corpus: recall of retrieval, accuracy of the answer sentence, milliseconds, bytes.

    ASKLINE_DATA=/path/to/data python -m benchmarks.corpus answers --rankers bm25 cosinet
    ASKLINE_DATA=/path/to/data python -m benchmarks.corpus indexing --megabytes 100
    ASKLINE_DATA=/path/to/data python -m benchmarks.corpus scale --sentences 10000 1000000

`answers` takes every paragraph of a set as a document and asks each question of all of them; with
--on wikiqa:SPLIT, every WikiQA document of all three splits. SQuAD dev and WikiQA test are test
sets: choose on others, with --on squadshifts/new_wiki_v1.0.json and the like.
`indexing` and `scale` make their text out of the set's sentences, each with a number of its own.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from askline import data, load
from askline.corpus import Corpus, answer
from askline.corpus.answers import Answer, Found
from askline.corpus.asking import BLEND
from askline.data import read_paragraphs, to_sentences
from askline.evaluation import markdown_table
from askline.text.sentences import split_sentences
from askline.types import Source

from .report import data_root, save

SQUAD_DEV = "squad/dev-v1.1.json"
RECALL_AT = (20, 100)
ACCURATE_AT = (1, 5)
FILE_CHARACTERS = 1_000_000


class Asked(NamedTuple):
    """What came back for one question: right places by list, and how long it took."""

    gold: list[Source]
    found: Sequence[Found | Answer]
    seconds: float

    def right_within(self, k: int) -> bool:
        return any(
            each.document == gold.document and each.start < gold.end and gold.start < each.end
            for each in self.found[:k]
            for gold in self.gold
        )


class Library(NamedTuple):
    """Documents by their ids, and the answerable questions about them with the right places."""

    documents: dict[str, str]
    questions: list[tuple[str, list[Source]]]


def library(on: str, limit: int | None = None) -> Library:
    """A set as a corpus, with all of its questions or as many drawn with a fixed seed."""
    found = _wikiqa(on) if on.startswith("wikiqa:") else _squad(data_root() / on)
    if limit is None or limit >= len(found.questions):
        return found
    return found._replace(questions=random.Random(0).sample(found.questions, limit))


def _squad(path: Path) -> Library:
    paragraphs = read_paragraphs(path)
    questions = [
        (each.text, [one.source for one in each.candidates if one.is_answer and one.source])
        for each in to_sentences(paragraphs)
        if each.answerable
    ]
    return Library({each.id: each.text for each in paragraphs.paragraphs}, questions)


def _wikiqa(on: str) -> Library:
    """Sentences of one document are set apart by blank lines, for some have no full stop."""
    documents: dict[str, str] = {}
    questions = []
    for split in ("wikiqa:train", "wikiqa:dev", "wikiqa:test"):
        for question in data.load(split, root=data_root()):
            name = question.candidates[0].id.rpartition("-")[0]
            documents[name] = text = "\n\n".join(question.texts)
            if split == on and question.answerable:
                answers = [each.text for each in question.candidates if each.is_answer]
                starts = [text.index(answer) for answer in answers]
                gold = [
                    Source(name, start, start + len(answer))
                    for start, answer in zip(starts, answers, strict=True)
                ]
                questions.append((question.text, gold))
    return Library(documents, questions)


def summary(name: str, asked: Sequence[Asked], at: Sequence[int], what: str) -> dict[str, Any]:
    milliseconds = 1000 * np.array([each.seconds for each in asked])
    shares = {
        f"{what}@{k}": round(100 * sum(each.right_within(k) for each in asked) / len(asked), 2)
        for k in at
    }
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return {"ranker": name, **shares, "ms p50": round(p50, 2), "p95": round(p95, 2)}


def answers(on: str, specs: Sequence[str], limit: int | None) -> dict[str, Any]:
    """Retrieval alone, then with each ranker behind it."""
    documents, questions = library(on, limit)
    rows = []
    with Corpus.in_memory() as corpus:
        corpus.add_texts(documents)
        retriever = corpus.retriever()
        alone = []
        for question, gold in questions:
            start = time.perf_counter()
            found = retriever.retrieve(question, max(RECALL_AT))
            alone.append(Asked(gold, found, time.perf_counter() - start))
        recall = summary("retrieval", alone, RECALL_AT, "recall")
        rows.append(summary("retrieval alone", alone, ACCURATE_AT, "accuracy"))
        for spec in specs:
            ranker = load(spec)
            for name, blend in ((spec, 0.0), (f"{spec} + retrieval", BLEND)):
                asked = []
                for question, gold in questions:
                    said = answer(question, retriever, ranker, top=max(ACCURATE_AT), blend=blend)
                    asked.append(Asked(gold, said.answers, said.seconds))
                rows.append(summary(name, asked, ACCURATE_AT, "accuracy"))
        status = corpus.status()
    return {
        "set": on,
        "documents": status.documents,
        "sentences": status.sentences,
        "questions": len(questions),
        "retrieval": [recall],
        "accuracy": rows,
    }


def made_files(sentences: Sequence[str], folder: Path, characters: int) -> Iterator[Path]:
    """Files of about a million characters, until there are so many characters."""
    chance = random.Random(0)
    count = written = 0
    while written < characters:
        lines: list[str] = []
        size = 0
        while size < min(FILE_CHARACTERS, characters - written):
            paragraph = " ".join(f"{count + k}: {chance.choice(sentences)}" for k in range(5))
            count += 5
            lines.append(paragraph)
            size += len(paragraph) + 2
        path = folder / f"{written:012}.txt"
        path.write_text("\n\n".join(lines), encoding="utf-8")
        written += size
        yield path


def sentences_of(documents: dict[str, str]) -> list[str]:
    found = {text[a:b] for text in documents.values() for a, b in split_sentences(text)}
    return sorted(" ".join(text.split()) for text in found)


def indexing(on: str, megabytes: float) -> dict[str, Any]:
    """Speed, size and memory, and how long it takes to see that nothing has changed."""
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        pages.mkdir()
        files = list(made_files(sentences_of(library(on).documents), pages, int(megabytes * 1e6)))
        size = sum(file.stat().st_size for file in files)
        before = peak_megabytes()
        with Corpus.open(Path(folder) / "index") as corpus:
            start, processor = time.perf_counter(), time.process_time()
            report = corpus.add(pages)
            seconds = time.perf_counter() - start
            processor = time.process_time() - processor
            start = time.perf_counter()
            corpus.add(pages)
            again = time.perf_counter() - start
        with Corpus.open(Path(folder) / "index") as corpus:  # closed before: its log is gone
            status = corpus.status()
    row = {
        "MB": round(size / 1e6, 1),
        "files": len(files),
        "sentences": report.sentences,
        "seconds": round(seconds, 2),
        "processor s": round(processor, 2),
        "MB/s": round(size / 1e6 / seconds, 2),
        "sentences/s": round(report.sentences / seconds),
        "store bytes/byte": round(status.store_bytes / size, 2),
        "search bytes/byte": round(status.search_bytes / size, 2),
        "peak MB": round(peak_megabytes()),
        "of which before": round(before),
        "unchanged s": round(again, 2),
    }
    return {"indexing": [row]}


def scale(on: str, sizes: Sequence[int], spec: str | None, limit: int | None) -> dict[str, Any]:
    """Milliseconds to answer in corpora of different sizes."""
    documents, questions = library(on, limit or 200)
    sentences = sentences_of(documents)
    average = sum(map(len, sentences)) / len(sentences) + 12
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            pages = Path(folder) / "pages"
            pages.mkdir()
            for _ in made_files(sentences, pages, int(size * average)):
                pass
            with Corpus.open(Path(folder) / "index", ranker=spec) as corpus:
                corpus.add(pages)
                corpus.ask(questions[0][0])
                said = [corpus.ask(question) for question, _ in questions]
                count = corpus.status().sentences
        whole = 1000 * np.array([each.seconds for each in said])
        first = 1000 * np.array([each.stages[0].seconds for each in said])
        p50, p95 = np.percentile(whole, [50, 95])
        rows.append(
            {
                "sentences": count,
                "ms p50": round(p50, 2),
                "p95": round(p95, 2),
                "retrieval p50": round(float(np.median(first)), 2),
            }
        )
    return {"ranker": spec, "scale": rows}


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
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
    parser.add_argument("--write", action="store_true", help="keep the figures in results/")
    given = parser.parse_args()
    if given.what == "answers":
        figures = answers(given.on, given.rankers, given.questions)
    elif given.what == "indexing":
        figures = indexing(given.on, given.megabytes)
    else:
        figures = scale(given.on, given.sentences, next(iter(given.rankers), None), given.questions)
    for title, rows in figures.items():
        if isinstance(rows, list):
            print(
                f"\n{title}\n{markdown_table(list(rows[0]), [list(row.values()) for row in rows])}"
            )
        else:
            print(f"{title}: {rows}")
    if given.write:
        print(f"\nKept in {save(f'corpus_{given.what}', figures, 'tantivy')}")


if __name__ == "__main__":
    main()
