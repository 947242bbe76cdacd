"""
A phrase model within the paragraph: its candidates, and the nearest one.

    ASKLINE_DATA=DIR python -m research.benchmarks.phrases [--model DIR] [--on FILE] [--language en]
        [--paragraphs 300] [--index FOLDER] [--name phrases]

The 100 most likely candidates of each paragraph, and the one nearest to each question, as in
EfficientQA's Tables 1 to 3. With `--index`, the phrases of all paragraphs are written to an index
for `research.benchmarks.phrases_open`. Writes research/results/phrases.json; for French, name it
phrases_fr: `--on fquad/valid.json --language fr --name phrases_fr`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from askline.data.squad import Paragraph, SpanQuestion, read_paragraphs
from askline.evaluation.measures import Language, exact_match, f1
from askline.phrases.phrase_index import PhraseIndex
from askline.phrases.phrase_model import EncodedPhrases, PhraseModel

from .common import data_root, save

LIMIT = 100


def main() -> None:
    """Measure, print, save."""
    given = _arguments()
    model = PhraseModel.load(given.model, language=given.language)
    paragraphs = drawn(read_paragraphs(data_root() / given.on).paragraphs, given.paragraphs)
    coded = [best_of(model.encode(paragraph.text, limit=LIMIT)) for paragraph in paragraphs]
    rows = {
        "candidates hold it": _candidates(paragraphs, coded, given.language),
        **_within(model, paragraphs, coded, given.language),
    }
    for name, row in rows.items():
        print(f"{name:24}", "  ".join(f"{key} {value:.2f}" for key, value in row.items()))
    if given.index:
        _index(given.index, paragraphs, coded)
    asked = sum(len(paragraph.questions) for paragraph in paragraphs)
    record = {"on": given.on, "paragraphs": len(paragraphs), "questions": asked}
    print(save(given.name, {**record, "model": model.config.identity, "rows": rows}))


def golds(question: SpanQuestion) -> list[str]:
    """The texts of a question's answers."""
    return [answer.text for answer in question.answers]


def means(**columns: Sequence[float]) -> dict[str, float]:
    """Means in percent."""
    return {name: 100 * float(np.mean(values)) for name, values in columns.items()}


def drawn(paragraphs: Sequence[Paragraph], count: int | None) -> list[Paragraph]:
    """A sample of `count` paragraphs with questions, in their order; all if None."""
    useful = [paragraph for paragraph in paragraphs if paragraph.questions]
    if count is None or count >= len(useful):
        return useful
    places = np.random.default_rng(0).permutation(len(useful))[:count]
    return [useful[place] for place in sorted(places)]


def _index(folder: Path, paragraphs: Sequence[Paragraph], coded: Sequence[EncodedPhrases]) -> None:
    index = PhraseIndex.open(folder, create=True)
    index.add(
        (paragraph.id, paragraph.text, phrases)
        for paragraph, phrases in zip(paragraphs, coded, strict=True)
    )
    index.optimize()


def best_of(coded: EncodedPhrases) -> EncodedPhrases:
    """The 100 most likely candidates of a paragraph with several windows."""
    order = np.argsort([-phrase.log_probability for phrase in coded.phrases], kind="stable")[:LIMIT]
    return EncodedPhrases(
        tuple(coded.phrases[at] for at in order),
        coded.dense[order],
        coded.words[order],
        coded.weights[order],
    )


def _candidates(
    paragraphs: Sequence[Paragraph], coded: Sequence[EncodedPhrases], language: Language
) -> dict[str, float]:
    exact, soft = [], []
    for paragraph, phrases in zip(paragraphs, coded, strict=True):
        texts = {phrase.text for phrase in phrases.phrases} or {""}
        for question in paragraph.questions:
            right = golds(question)
            exact.append(max(exact_match(text, right, language=language) for text in texts))
            soft.append(exact[-1] or max(f1(text, right, language=language) for text in texts))
    return means(EM=exact, F1=soft)


def _within(
    model: PhraseModel,
    paragraphs: Sequence[Paragraph],
    coded: Sequence[EncodedPhrases],
    language: Language,
) -> dict[str, dict[str, float]]:
    names = ("nearest, vectors alone", "nearest")
    exact: dict[str, list[float]] = {name: [] for name in names}
    soft: dict[str, list[float]] = {name: [] for name in names}
    for paragraph, phrases in zip(paragraphs, coded, strict=True):
        for question in paragraph.questions:
            for name, said in zip(names, _said(model, question.text, phrases), strict=True):
                exact[name].append(exact_match(said, golds(question), language=language))
                soft[name].append(f1(said, golds(question), language=language))
    return {name: means(EM=exact[name], F1=soft[name]) for name in names}


def _said(model: PhraseModel, question: str, phrases: EncodedPhrases) -> tuple[str, str]:
    """The nearest phrase by the vectors alone, and with word weights."""
    if not len(phrases):
        return "", ""
    asked = model.encode_question(question)
    dense = phrases.dense @ asked.dense
    whole = dense + asked.lexical(phrases.words, phrases.weights)
    one, other = (phrases.phrases[int(np.argmax(scores))].text for scores in (dense, whole))
    return one, other


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="model folder  [default: the shipped one]")
    parser.add_argument("--on", default="squad/dev-v1.1.json")
    parser.add_argument("--paragraphs", type=int)
    parser.add_argument("--index", type=Path, help="also write an index to this folder")
    parser.add_argument("--name", default="phrases", help="name of the result file")
    parser.add_argument("--language", choices=["en", "fr"], default="en")
    return parser.parse_args()


if __name__ == "__main__":
    main()
