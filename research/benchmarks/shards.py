"""
Shards against a single index: do they find the same sentences and give the same first answer?

    python -m research.benchmarks.shards [--shards 3] [--questions 0] [--answers 500]

The paragraphs of SQuAD dev v1.1 are one index, and the same paragraphs are shards: by a hash of
their ids, as `build_shards` and Spark distribute them, and sorted by length, so that the statistics
of the shards differ as much as they can. Compared are the first hundred retrieved sentences of
every question (all with --questions 0), and the first answers of the default ranker for some of
them. For comparison, shards are also merged by the scores that each of them computes alone. Writes
research/results/shards.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

from askline.corpus import Corpus, RetrievedSentence, finish_shards, write_shard

from .common import data_root, save

_SET = "squad/dev-v1.1.json"
_FIRST = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--questions", type=int, default=0, help="0 for all")
    parser.add_argument("--answers", type=int, default=500)
    options = parser.parse_args()
    texts, questions = _read()
    step = max(1, len(questions) // options.questions) if options.questions else 1
    questions = questions[::step]
    ranked = questions[:: max(1, len(questions) // options.answers)]
    rows = []
    with tempfile.TemporaryDirectory() as place:
        single = _built(Path(place) / "single", [list(texts.items())])
        expected = [single.retriever().retrieve(question, _FIRST) for question in questions]
        answers = [_first_answer(single, question) for question in ranked]
        seconds = _seconds(single, questions[:500])
        for name, parts in _partitions(texts, options.shards).items():
            sharded = _built(Path(place) / name, parts)
            found = [sharded.retriever().retrieve(question, _FIRST) for question in questions]
            same = [
                _first_answer(sharded, question) == first
                for question, first in zip(ranked, answers, strict=True)
            ]
            rows.append(
                {
                    "shards": f"{len(parts)} {name}",
                    **_agreement(found, expected),
                    "same first answer": round(sum(same) / len(same), 4),
                    "answers": len(same),
                    "retrieval, ratio of time": round(
                        _seconds(sharded, questions[:500]) / seconds, 2
                    ),
                }
            )
            alone = [_built(Path(place) / f"{name}-{at}", [part]) for at, part in enumerate(parts)]
            merged = [_merged(alone, question) for question in questions]
            rows.append(
                {"shards": f"{len(parts)} {name}, own scores", **_agreement(merged, expected)}
            )
    print(json.dumps(rows, indent=1))
    figures = {"set": _SET, "paragraphs": len(texts), "questions": len(questions), "rows": rows}
    print(save("shards", figures, "tantivy"))


def _read() -> tuple[dict[str, str], list[str]]:
    content = json.loads((data_root() / _SET).read_text("utf-8"))["data"]
    texts, questions = {}, []
    for article in content:
        for number, paragraph in enumerate(article["paragraphs"]):
            texts[f"{article['title']}/{number}"] = paragraph["context"]
            questions += [each["question"] for each in paragraph["qas"]]
    return texts, questions


def _partitions(texts: dict[str, str], shards: int) -> dict[str, list[list[tuple[str, str]]]]:
    by_hash: list[list[tuple[str, str]]] = [[] for _ in range(shards)]
    for name, text in texts.items():
        by_hash[crc32(name.encode()) % shards].append((name, text))
    ordered = sorted(texts.items(), key=lambda item: len(item[1]))
    ends = [len(ordered) * at // shards for at in range(shards + 1)]
    by_length = [ordered[start:end] for start, end in pairwise(ends)]
    return {"by hash": by_hash, "by length": by_length}


def _built(folder: Path, parts: Sequence[Sequence[tuple[str, str]]]) -> Corpus:
    if len(parts) == 1:
        corpus = Corpus.open(folder)
        corpus.add(dict(parts[0]))
        return corpus
    finish_shards(folder, [write_shard(folder, at, part) for at, part in enumerate(parts)])
    return Corpus.open(folder)


def _agreement(
    found: Sequence[Sequence[RetrievedSentence]], expected: Sequence[Sequence[RetrievedSentence]]
) -> dict[str, Any]:
    shares, firsts, full = [], [], 0
    for own, others in zip(found, expected, strict=True):
        if others:
            known = {_key(each) for each in others}
            shares.append(len(known & {_key(each) for each in own}) / len(known))
            firsts.append(bool(own) and _key(own[0]) == _key(others[0]))
            full += len(others) == _FIRST
    return {
        "overlap of the first hundred": round(sum(shares) / len(shares), 4),
        "same first sentence": round(sum(firsts) / len(firsts), 4),
        "questions": len(shares),
        "questions with a hundred sentences": full,
    }


def _key(sentence: RetrievedSentence) -> tuple[str, int]:
    return sentence.document, sentence.ordinal


def _first_answer(corpus: Corpus, question: str) -> tuple[str, int] | None:
    best = corpus.ask(question, top_k=1).best
    return None if best is None else (best.document, best.start)


def _merged(alone: Sequence[Corpus], question: str) -> list[RetrievedSentence]:
    found = [each for corpus in alone for each in corpus.retriever().retrieve(question, _FIRST)]
    return sorted(found, key=lambda each: -each.score)[:_FIRST]


def _seconds(corpus: Corpus, questions: Sequence[str]) -> float:
    started = time.process_time()
    for question in questions:
        corpus.retriever().retrieve(question, _FIRST)
    return time.process_time() - started


if __name__ == "__main__":
    main()
