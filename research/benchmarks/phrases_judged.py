"""
Within the paragraph: what a ranker adds that judges the sentences of the nearest phrases.

    python -m research.benchmarks.phrases_judged [--model DIR] [--questions 1000] [--ranker cascade]

For each question the nearest of its paragraph's candidates; then the nearest inside the sentence
that the ranker puts first; then what its reading head marks in that sentence. All three over the
same questions. Writes research/results/phrases_judged.json.
"""

from __future__ import annotations

import argparse
from functools import lru_cache

import numpy as np

from askline.data.squad import read_paragraphs
from askline.evaluation.phrase_scores import exact_match, f1
from askline.phrases.model import CodedPhrases, PhraseModel
from askline.rankers.answer_spans import phrases_in
from askline.rankers.spec import load
from askline.text.sentences import split_sentences
from askline.types import Ranker

from .phrases import LIMIT, best_of, drawn, golds, means
from .phrases_open import drawn_questions
from .report import data_root, save

WAYS = ("nearest", "nearest in the best sentence", "read in the best sentence")


def main() -> None:
    """Measure, print, save."""
    given = _arguments()
    model, ranker = PhraseModel.load(given.model), load(given.ranker)
    asked = drawn_questions(
        drawn(read_paragraphs(data_root() / given.on).paragraphs, None), given.questions
    )
    coded = lru_cache(maxsize=64)(lambda text: best_of(model.encode(text, limit=LIMIT)))
    exact: dict[str, list[float]] = {way: [] for way in WAYS}
    soft: dict[str, list[float]] = {way: [] for way in WAYS}
    for paragraph, question in asked:
        said = _said(model, ranker, question.text, paragraph.text, coded(paragraph.text))
        for way, text in zip(WAYS, said, strict=True):
            exact[way].append(exact_match(text, golds(question)))
            soft[way].append(f1(text, golds(question)))
    rows = {way: means(EM=exact[way], F1=soft[way]) for way in WAYS}
    for way, row in rows.items():
        print(f"{way:32}", "  ".join(f"{key} {value:.2f}" for key, value in row.items()))
    record = {"on": given.on, "questions": len(asked), "ranker": given.ranker}
    print(save(given.name, {**record, "model": model.config.identity, "rows": rows}))


def _said(
    model: PhraseModel, ranker: Ranker, question: str, text: str, coded: CodedPhrases
) -> tuple[str, str, str]:
    if not len(coded):
        return "", "", ""
    asked = model.question(question)
    scores = coded.dense @ asked.dense + asked.lexical(coded.words, coded.weights)
    phrases = [coded.phrases[at] for at in np.argsort(-scores, kind="stable")]
    places = split_sentences(text)
    best = places[ranker.rank(question, [text[start:end] for start, end in places])[0].index]
    inside = [phrase for phrase in phrases if best[0] <= phrase.start < best[1]]
    near = (inside or phrases)[0].text
    sentence = text[best[0] : best[1]]
    (span,) = phrases_in(ranker, question, [sentence])
    return phrases[0].text, near, near if span is None else sentence[span.start : span.end]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a folder; without it, the model that comes along")
    parser.add_argument("--on", default="squad/dev-v1.1.json")
    parser.add_argument("--questions", type=int, help="so many, drawn; all without it")
    parser.add_argument("--ranker", default="cascade")
    parser.add_argument("--name", default="phrases_judged", help="of the file in research/results/")
    return parser.parse_args()


if __name__ == "__main__":
    main()
