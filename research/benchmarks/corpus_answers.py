"""The part `answers` of `research.benchmarks.corpus`: quality and time per question."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from askline import load
from askline.corpus import Corpus, Retriever, answer
from askline.corpus.ask import DEFAULT_BLEND
from askline.corpus.results import Answer, RetrievedSentence
from askline.evaluation.measures import exact_match, f1
from askline.rankers.base import Ranker
from askline.types import Source

from .corpus_library import Asking, library

RECALL_AT = (20, 100)
ACCURATE_AT = (1, 5)


class Reply(NamedTuple):
    """The reply to a question."""

    sentences: Sequence[RetrievedSentence | Answer]
    phrase: str | None
    """None if the ranker has no reader: then the reader marks the first sentence, untimed."""
    seconds: float


Ask = Callable[[str], Reply]


class Asked(NamedTuple):
    """The quality of a reply."""

    place: int | None
    """Rank of the first right sentence, from 1; None if there is none."""
    seconds: float
    exact: float | None = None
    f1: float | None = None
    """None if the set has no phrases, or there is no reader."""


def answers(
    on: str,
    specs: Sequence[str],
    folder: Path,
    *,
    limit: int | None = None,
    timed: int = 0,
    apart: bool = False,
    reader: str | None = "cascade",
    phrases: bool = False,
) -> dict[str, Any]:
    """
    Retrieval alone, then with each ranker; with `apart` also without the retrieval scores.

    With `phrases`, the nearest phrase alone, and everything again with phrase search in addition
    to word search.
    """
    asking = library(on, limit)
    place = folder / f"answers-{slug(on)}"
    place.mkdir(parents=True, exist_ok=True)
    with Corpus.open(place / "index") if phrases else Corpus.in_memory() as corpus:
        corpus.add(asking.documents)
        ways = ways_to_ask(corpus.retriever(), specs, apart=apart)
        if phrases:
            corpus.encode_phrases()
            ways |= ways_with_phrases(corpus, specs)
        status = corpus.status()
        reading = load(reader) if reader else None
        asked = {
            name: asked_all(asking.questions, ask, place / f"{slug(name)}.jsonl", reading)
            for name, ask in ways.items()
        }
        times = in_turn([each.text for each in asking.questions[:timed]], ways)
    recall = {
        name: shares(asked[name], RECALL_AT, "recall")
        for name in ("retrieval alone", "retrieval + phrases")
        if name in asked
    }
    return {
        "set": on,
        "documents": status.documents,
        "sentences": status.sentences,
        "questions": len(asking.questions),
        "with phrases": sum(bool(each.phrases) for each in asking.questions),
        "timed": timed,
        "reader": reader,
        "phrases": status.phrases,
        "phrase bytes": status.phrase_bytes,
        "recall": [{"what": what, **row} for what, row in recall.items()],
        "answers": [
            {"what": name, **shares(own, ACCURATE_AT, "accuracy"), **phrase_means(own)}
            | milliseconds(times.get(name, []))
            for name, own in asked.items()
        ],
    }


def ways_to_ask(retriever: Retriever, specs: Sequence[str], *, apart: bool) -> dict[str, Ask]:
    ways = {"retrieval alone": retrieved(retriever)}
    for spec in specs:
        ranker = load(spec)
        if apart:
            ways[spec] = ranked(retriever, ranker, 0.0)
        ways[f"{spec} + retrieval"] = ranked(retriever, ranker, DEFAULT_BLEND)
    return ways


def ways_with_phrases(corpus: Corpus, specs: Sequence[str]) -> dict[str, Ask]:
    def nearest(question: str) -> Reply:
        said = corpus.nearest(question, top_k=max(ACCURATE_AT))
        phrase = said.best.phrase if said.best else None
        return Reply(said.answers, phrase.text if phrase else None, said.seconds)

    retriever = corpus.retriever(phrases=True)
    ways = {"nearest phrase": nearest, "retrieval + phrases": retrieved(retriever)}
    for spec in specs:
        ways[f"{spec} + retrieval + phrases"] = ranked(retriever, load(spec), DEFAULT_BLEND)
    return ways


def retrieved(retriever: Retriever) -> Ask:
    def ask(question: str) -> Reply:
        start = time.perf_counter()
        found = retriever.retrieve(question, max(RECALL_AT))
        return Reply(found, None, time.perf_counter() - start)

    return ask


def ranked(retriever: Retriever, ranker: Ranker, blend: float) -> Ask:
    def ask(question: str) -> Reply:
        said = answer(question, retriever, ranker, top_k=max(ACCURATE_AT), blend=blend)
        phrase = said.best.phrase if said.best else None
        return Reply(said.answers, phrase.text if phrase else None, said.seconds)

    return ask


def first_right(found: Sequence[RetrievedSentence | Answer], gold: Sequence[Source]) -> int | None:
    """Rank of the first right sentence; one that shares a character with a right one is right."""
    for place, each in enumerate(found, start=1):
        for right in gold:
            same = each.document == right.document
            if same and each.start < right.end and right.start < each.end:
                return place
    return None


def asked_all(
    questions: Sequence[Asking], ask: Ask, path: Path, reader: Ranker | None
) -> list[Asked]:
    """Ask every question and append a line to the file; questions already in it are skipped."""
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        lines = [line for line in file if line.endswith("\n")]
        asked = [Asked(*json.loads(line)) for line in lines]
        file.truncate(sum(len(line.encode()) for line in lines))  # an incomplete last line
        for question in questions[len(asked) :]:
            asked.append(judged(question, ask(question.text), reader))
            file.write(json.dumps(asked[-1]) + "\n")
    return asked[: len(questions)]


def judged(question: Asking, reply: Reply, reader: Ranker | None) -> Asked:
    place = first_right(reply.sentences, question.places)
    if not question.phrases or reader is None:
        return Asked(place, reply.seconds)
    said = reply.phrase
    if said is None and reply.sentences:
        text = reply.sentences[0].text
        (span,) = reader.read(question.text, [text])
        said = text[span.start : span.end] if span else None
    said = said or ""
    return Asked(
        place, reply.seconds, exact_match(said, question.phrases), f1(said, question.phrases)
    )


def in_turn(questions: Sequence[str], ways: Mapping[str, Ask]) -> dict[str, list[float]]:
    """Seconds per system; all systems answer each question in turn, so that load affects all."""
    for ask in ways.values():
        for question in questions[:3]:
            ask(question)
    replies = [{name: ask(question) for name, ask in ways.items()} for question in questions]
    return {name: [reply[name].seconds for reply in replies] for name in ways}


def shares(asked: Sequence[Asked], at: Sequence[int], what: str) -> dict[str, float]:
    """Share of questions with a right sentence among the first k, in percent."""
    right = {k: sum(each.place is not None and each.place <= k for each in asked) for k in at}
    return {f"{what}@{k}": round(100 * right[k] / len(asked), 2) for k in at}


def phrase_means(asked: Sequence[Asked]) -> dict[str, float]:
    exact = [each.exact for each in asked if each.exact is not None]
    soft = [each.f1 for each in asked if each.f1 is not None]
    if not exact:
        return {}
    return {
        "EM": round(100 * float(np.mean(exact)), 2),
        "F1": round(100 * float(np.mean(soft)), 2),
    }


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    p50, p95 = np.percentile(1000 * np.array(seconds), [50, 95])
    return {"ms p50": round(float(p50), 2), "p95": round(float(p95), 2)}


def slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.removesuffix(".json")).strip("-")
