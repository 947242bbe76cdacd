"""
Phrase-indexed question answering with a model folder, without torch, in one table.

    python -m benchmarks.phrases --model DIR [--on squad/dev-v1.1.json] [--paragraphs 300]
        [--ranker cosinet] [--language en]

Within the paragraph: the nearest of its own 100 candidates. Open: the phrases of all paragraphs in
one index; the nearest phrase, and the nearest phrase of the sentence that a ranker puts first.
Writes results/phrases.json.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from askline.data.squad import Paragraph, SpanQuestion, read_paragraphs
from askline.evaluation.squad import Language, exact_match, f1
from askline.phrases.answering import PhraseAnswer, judged, nearest
from askline.phrases.index import PhraseIndex
from askline.phrases.model import CodedPhrases, PhraseModel
from askline.pipeline import load

from .report import data_root, save

LIMIT = 100


def main() -> None:
    """Measure, print, save."""
    given = _arguments()
    model = PhraseModel.load(given.model)
    paragraphs = read_paragraphs(data_root() / given.on).paragraphs
    some = _drawn(paragraphs, given.paragraphs)
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        index, coded, figures = _indexed(Path(folder) / "index", model, some)
        rows["candidates hold it"] = _candidates(some, coded, given.language)
        rows["within, nearest"] = _within(model, some, coded, given.language)
        rows["open, nearest"] = _open(
            some, given.language, lambda text: nearest(text, model, index)
        )
        if given.ranker:
            ranker = load(given.ranker)
            rows[f"open, judged by {given.ranker}"] = _open(
                some, given.language, lambda text: judged(text, model, index, ranker)
            )
    for name, row in rows.items():
        print(f"{name:32}", "  ".join(f"{key} {value:.2f}" for key, value in row.items()))
    print("  ".join(f"{key} {value:,.1f}" for key, value in figures.items()))
    asked = sum(len(paragraph.questions) for paragraph in some)
    record = {"on": given.on, "paragraphs": len(some), "questions": asked, "index": figures}
    print(save(given.name, {**record, "rows": rows}, "faiss-cpu", "tokenizers"))


def _indexed(
    folder: Path, model: PhraseModel, paragraphs: Sequence[Paragraph]
) -> tuple[PhraseIndex, list[CodedPhrases], dict[str, float]]:
    begun = time.perf_counter()
    coded = [_best(model.encode(paragraph.text, limit=LIMIT)) for paragraph in paragraphs]
    seconds = time.perf_counter() - begun
    index = PhraseIndex.open(folder, create=True)
    index.add(
        (paragraph.id, paragraph.text, phrases)
        for paragraph, phrases in zip(paragraphs, coded, strict=True)
    )
    index.optimise()
    return (
        index,
        coded,
        {
            "phrases": float(len(index)),
            "bytes a paragraph": index.bytes / len(paragraphs),
            "ms a paragraph": 1000 * seconds / len(paragraphs),
        },
    )


def _best(coded: CodedPhrases) -> CodedPhrases:
    """The 100 likeliest of a paragraph of several windows, as the papers count."""
    order = np.argsort([-phrase.chance for phrase in coded.phrases], kind="stable")[:LIMIT]
    return CodedPhrases(
        tuple(coded.phrases[at] for at in order),
        coded.dense[order],
        coded.words[order],
        coded.weights[order],
    )


def _candidates(
    paragraphs: Sequence[Paragraph], coded: Sequence[CodedPhrases], language: Language
) -> dict[str, float]:
    exact, soft = [], []
    for paragraph, phrases in zip(paragraphs, coded, strict=True):
        texts = {phrase.text for phrase in phrases.phrases} or {""}
        for question in paragraph.questions:
            golds = _golds(question)
            exact.append(max(exact_match(text, golds, language=language) for text in texts))
            soft.append(exact[-1] or max(f1(text, golds, language=language) for text in texts))
    return _means(EM=exact, F1=soft)


def _within(
    model: PhraseModel,
    paragraphs: Sequence[Paragraph],
    coded: Sequence[CodedPhrases],
    language: Language,
) -> dict[str, float]:
    exact, soft = [], []
    for paragraph, phrases in zip(paragraphs, coded, strict=True):
        for question in paragraph.questions:
            said = ""
            if len(phrases):
                asked = model.question(question.text)
                lexical = asked.lexical(phrases.words, phrases.weights)
                said = phrases.phrases[int(np.argmax(phrases.dense @ asked.dense + lexical))].text
            exact.append(exact_match(said, _golds(question), language=language))
            soft.append(f1(said, _golds(question), language=language))
    return _means(EM=exact, F1=soft)


def _open(paragraphs: Sequence[Paragraph], language: Language, answer: Any) -> dict[str, float]:
    """Measures of the first answer, and the time it took; the first question warms up."""
    exact, soft, right, sentence, times = [], [], [], [], []
    answer(paragraphs[0].questions[0].text)
    for paragraph in paragraphs:
        for question in paragraph.questions:
            begun = time.perf_counter()
            found: list[PhraseAnswer] = answer(question.text)
            times.append(1000 * (time.perf_counter() - begun))
            said = found[0].phrase.text if found else ""
            exact.append(exact_match(said, _golds(question), language=language))
            soft.append(f1(said, _golds(question), language=language))
            right.append(bool(found) and found[0].phrase.document == paragraph.id)
            sentence.append(right[-1] and _in_sentence(found[0], question))
    return {
        **_means(EM=exact, F1=soft, paragraph=right, sentence=sentence),
        "p50 ms": float(np.percentile(times, 50)),
        "p95 ms": float(np.percentile(times, 95)),
    }


def _in_sentence(answer: PhraseAnswer, question: SpanQuestion) -> bool:
    end = answer.start + len(answer.sentence)
    return any(answer.start <= one.start < end for one in question.answers)


def _golds(question: SpanQuestion) -> list[str]:
    return [answer.text for answer in question.answers]


def _means(**columns: Sequence[float]) -> dict[str, float]:
    return {name: 100 * float(np.mean(values)) for name, values in columns.items()}


def _drawn(paragraphs: Sequence[Paragraph], count: int | None) -> list[Paragraph]:
    useful = [paragraph for paragraph in paragraphs if paragraph.questions]
    if count is None or count >= len(useful):
        return useful
    places = np.random.default_rng(0).permutation(len(useful))[:count]
    return [useful[place] for place in sorted(places)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--on", default="squad/dev-v1.1.json")
    parser.add_argument("--paragraphs", type=int)
    parser.add_argument("--ranker")
    parser.add_argument("--name", default="phrases", help="of the file in results/")
    parser.add_argument("--language", choices=["en", "fr"], default="en")
    return parser.parse_args()


if __name__ == "__main__":
    main()
