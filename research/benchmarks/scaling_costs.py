"""
What a thousand questions and a gigabyte of text cost on one core, and what follows for large uses.

    python -m research.benchmarks.scaling_costs [--megabytes 20,100] [--questions 200]

Texts are articles made of sentences of SQuAD dev v1.1, and the questions are those of SQuAD dev.
All figures are CPU seconds of one process with one thread. The plan multiplies them: its
assumptions are in the results. Writes research/results/scaling_costs.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from askline import load
from askline.corpus import Corpus
from askline.corpus.question_terms import RetrievalOptions, TermIndex, question_terms
from askline.corpus.similar_words import load_similar_words
from askline.text.sentences import split_sentences

from .common import data_root, save

_ARTICLE_SENTENCES = 60
_QUESTIONS_PER_DAY = 10_000_000
_PEAK = 3.0
_UTILIZATION = 0.5
_TEXT_GB = 100
_SENTENCES = 1_000_000_000
_SHARD_GB = 2.0
_BUILD_CORES = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--megabytes", default="20,100")
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    sizes = [float(size) for size in options.megabytes.split(",")]
    content = json.loads((data_root() / "squad/dev-v1.1.json").read_text("utf-8"))["data"]
    paragraphs = [each for article in content for each in article["paragraphs"]]
    lists = [_sentences(each["context"]) for each in paragraphs]
    asked = [(one["question"], at) for at, each in enumerate(paragraphs) for one in each["qas"]]
    asked = asked[:: max(1, len(asked) // options.questions)][: options.questions]
    questions = [question for question, _ in asked]
    rows = [
        _corpus_costs(size, [each for own in lists for each in own], questions) for size in sizes
    ]
    figures = {
        "unit": "CPU seconds of one core",
        "questions": len(questions),
        "corpora": rows,
        "ranking": _ranking_costs(asked, lists),
    }
    figures["plan"] = _plan(figures)
    print(json.dumps(figures, indent=1))
    print(save("scaling_costs", figures, "onnxruntime", "tantivy"))


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


def _articles(sentences: Sequence[str], size: int) -> Iterator[tuple[str, str]]:
    rng, written, number = random.Random(0), 0, 0
    while written < size:
        chosen = rng.choices(sentences, k=_ARTICLE_SENTENCES)
        groups = [chosen[at : at + 6] for at in range(0, len(chosen), 6)]
        text = "\n\n".join(" ".join(group) for group in groups)
        yield f"article {number}", text
        written, number = written + len(text.encode()), number + 1


def _corpus_costs(
    megabytes: float, sentences: Sequence[str], questions: Sequence[str]
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        with Corpus.open(Path(place) / "index", ranker=None) as corpus:
            started = time.process_time()
            corpus.add(_articles(sentences, int(megabytes * 1e6)))
            build = time.process_time() - started
            status = corpus.status()
            retrieval, search = _per_thousand(corpus, questions), _search_cost(corpus, questions)
        with Corpus.open(Path(place) / "index") as corpus:
            default = _per_thousand(corpus, questions)
    gigabytes = megabytes / 1000
    return {
        "text MB": megabytes,
        "sentences": status.sentences,
        "sentences per GB": round(status.sentences / gigabytes),
        "build, CPU s per GB": round(build / gigabytes, 1),
        "index GB per GB of text": round(
            (status.store_bytes + status.search_bytes) / 1e9 / gigabytes, 2
        ),
        "search, CPU s per 1,000 questions": search,
        "retrieval, CPU s per 1,000 questions": retrieval,
        "default ranker, CPU s per 1,000 questions": default,
    }


def _per_thousand(corpus: Corpus, questions: Sequence[str]) -> float:
    for question in questions[:10]:
        corpus.ask(question)  # loads what is loaded once
    started = time.process_time()
    for question in questions:
        corpus.ask(question)
    return round(1000 * (time.process_time() - started) / len(questions), 2)


def _search_cost(corpus: Corpus, questions: Sequence[str]) -> float:
    """The part of retrieval that every shard does: the weights of terms, and the best passages."""
    index, options = corpus._storage.search_index(), RetrievalOptions()
    similar = load_similar_words()
    vocabulary = TermIndex(index.stem, index.term_weights)
    terms = [question_terms(each, vocabulary, similar, options).factors for each in questions]
    started = time.process_time()
    for factors in terms:
        index.term_weights(factors)
        index.search(factors, 50, titles=options.titles)
    return round(1000 * (time.process_time() - started) / len(questions), 3)


def _ranking_costs(
    asked: Sequence[tuple[str, int]], lists: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    """Candidate lists of a hundred sentences: those of the paragraph and of those after it."""
    requests = [(question, _hundred(lists, at)) for question, at in asked]
    rows = []
    for spec in ("cosinet", "cosinet % 20 >> cascade"):
        ranker = load(spec)
        ranker.rank_many(requests[:10])
        started = time.process_time()
        ranker.rank_many(requests)
        seconds = time.process_time() - started
        per_thousand = round(1000 * seconds / len(requests), 2)
        rows.append({"ranker": spec, "candidates": 100, "CPU s per 1,000 questions": per_thousand})
    return rows


def _hundred(lists: Sequence[Sequence[str]], first: int) -> list[str]:
    chosen: list[str] = []
    while len(chosen) < 100:
        chosen += lists[first % len(lists)]
        first += 1
    return chosen[:100]


def _plan(figures: dict[str, Any]) -> dict[str, Any]:
    """Multiplied from the largest corpus that was measured."""
    corpus = figures["corpora"][-1]
    per_second = _QUESTIONS_PER_DAY / 86_400

    def cores(seconds_per_thousand: float) -> float:
        return round(per_second * _PEAK * seconds_per_thousand / 1000 / _UTILIZATION, 1)

    shards = -(-_TEXT_GB // _SHARD_GB)
    sentences_gb = _SENTENCES / corpus["sentences per GB"]
    build = corpus["build, CPU s per GB"] / 3600
    light = next(row for row in figures["ranking"] if row["ranker"] == "cosinet")
    search = corpus["search, CPU s per 1,000 questions"]
    rest = corpus["default ranker, CPU s per 1,000 questions"] - search
    return {
        "assumptions": {
            "questions per day": _QUESTIONS_PER_DAY,
            "peak / mean": _PEAK,
            "utilization at the peak": _UTILIZATION,
            "text GB per shard": _SHARD_GB,
            "cores for building": _BUILD_CORES,
            "search": "per shard as much as in the measured corpus; all else once per question",
            "build and index size": "proportional to the text",
        },
        "10 M questions a day": {
            "questions per second, mean": round(per_second, 1),
            "cores, cosinet over given lists of 100": cores(light["CPU s per 1,000 questions"]),
            "cores, retrieval and default ranker, one shard": cores(search + rest),
        },
        "100 GB": _sizes(_TEXT_GB, shards, build, corpus, search, rest),
        "a billion sentences": _sizes(
            sentences_gb, -(-sentences_gb // _SHARD_GB), build, corpus, search, rest
        ),
    }


def _sizes(
    gigabytes: float,
    shards: float,
    build_hours: float,
    corpus: dict[str, Any],
    search: float,
    rest: float,
) -> dict[str, Any]:
    hours = gigabytes * build_hours
    return {
        "text GB": round(gigabytes),
        "shards": round(shards),
        "index GB": round(gigabytes * corpus["index GB per GB of text"]),
        "core hours to build": round(hours, 1),
        "hours to build on 32 cores": round(hours / _BUILD_CORES, 2),
        "CPU s per 1,000 questions": round(search * shards + rest, 1),
        "questions per second on 32 cores": round(
            _BUILD_CORES * _UTILIZATION * 1000 / (search * shards + rest), 1
        ),
    }


if __name__ == "__main__":
    main()
