"""
French: sentences of FQuAD's paragraphs, the phrase in them, and PIAF as a corpus.

    ASKLINE_DATA=DIR python -m research.benchmarks.french paragraphs [--on SET] [--most N]
    ASKLINE_DATA=DIR python -m research.benchmarks.french corpus [--most N]
    ASKLINE_DATA=DIR python -m research.benchmarks.french languages

`paragraphs`: FQuAD valid (a test set), right sentence first, one by one and in context at every
depth, and exact match and F1 of the phrase that the same pass reads; the English cascade beside the
French one, one by one. `corpus`: `Corpus.ask` over all paragraphs of PIAF, questions to the
articles that were held out of the training; the default ranker, which recognizes French, and the
English one in turn. `languages`: how often the language of a question and of a paragraph is
recognized. Writes its part of research/results/french.json.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from askline import Corpus, data, load
from askline.corpus import answer
from askline.data import to_question_set
from askline.data.squad import Paragraph, ParagraphSet
from askline.engine.encoder import load_encoder
from askline.evaluation.measures import exact_match, f1
from askline.models.folder import ModelFolder
from askline.rankers.cascade import Cascade, shipped_folder
from askline.text.language import detect_language
from askline.training.cascade.context_examples import paragraph_passages
from research.recipes.french.folder import piaf

from . import common
from .context import Example, asked, ranked, read
from .corpus_answers import ACCURATE_AT, Asked, Reply, judged, milliseconds, phrase_means, shares
from .corpus_library import Asking

QUESTIONS = 400
"""Of the corpus, out of 959 to the articles that were held out."""


def paragraphs(on: str, most: int | None, folder: str) -> dict[str, Any]:
    encoder = load_encoder(ModelFolder.open(folder, kind="cascade"))
    if on == "piaf:held-out":
        passages = paragraph_passages(piaf(held_out=True))
    else:
        passages = paragraph_passages(data.load_paragraphs(on, root=common.data_root()))
    questions = [each for each in asked(passages, most) if each.question.answers]
    rows = {
        "English cascade, one by one": ranked(
            _alone(Cascade.load(language="en", depth=10), questions), questions
        ),
        "one by one": ranked(_alone(Cascade.load(folder, depth=10), questions), questions),
    }
    found = list(read(encoder, questions))
    for row, depth in enumerate(encoder.context_depths):
        rows[f"in context, depth {depth}"] = ranked([own.logits[row] for own in found], questions)
    golds = [
        [each.passage.sentences[at][start:end] for at, start, end in each.question.spans]
        for each in questions
    ]
    read_phrases = list(zip((own.phrase for own in found), golds, strict=True))
    reading = {
        "EM": _percent([exact_match(own, gold, language="fr") for own, gold in read_phrases]),
        "F1": _percent([f1(own, gold, language="fr") for own, gold in read_phrases]),
    }
    return {"set": on, "questions": len(questions), "rows": rows, "reading": reading}


def _alone(cascade: Cascade, questions: Sequence[Example]) -> list[list[float]]:
    return [
        cascade.score(each.question.text, each.passage.sentences).tolist() for each in questions
    ]


def corpus(most: int | None) -> dict[str, Any]:
    """Every question is asked both ways, one after the other."""
    ways = {"French": load(), "English": load(language="en")}
    held_out = piaf(held_out=True)
    documents = {each.id: each.text for each in (*held_out, *piaf(held_out=False))}
    questions = _questions(held_out, most or QUESTIONS)
    judgements = {name: list[Asked]() for name in ways}
    with Corpus.in_memory() as own:
        own.add(documents)
        retriever = own.retriever()
        for question in questions:
            for name, ranker in ways.items():
                found = answer(question.text, retriever, ranker, top_k=max(ACCURATE_AT))
                phrase = found.best.phrase if found.best else None
                reply = Reply(found.answers, phrase.text if phrase else None, found.seconds)
                judgements[name].append(judged(question, reply, ranker))
    figures: dict[str, Any] = {"documents": len(documents), "questions": len(questions)}
    for name, asked_ in judgements.items():
        figures[name] = {
            **shares(asked_, ACCURATE_AT, "accuracy"),
            **phrase_means(asked_),
            **milliseconds([each.seconds for each in asked_]),
        }
    return figures


def _questions(held_out: Sequence[Paragraph], most: int) -> list[Asking]:
    """At even steps through the questions with an answer."""
    found = [
        Asking(
            each.text,
            [one.source for one in each.candidates if one.is_answer and one.source],
            each.answers,
        )
        for each in to_question_set(ParagraphSet("piaf", tuple(held_out)))
        if each.answerable
    ]
    chosen = np.linspace(0, len(found) - 1, min(most, len(found))).astype(int)
    return [found[at] for at in np.unique(chosen).tolist()]


def languages() -> dict[str, Any]:
    """Counts by recognized language, of single questions and of paragraphs."""
    made: dict[str, Any] = {}
    for on in ("piaf/piaf-v1.1.json", "squadshifts/new_wiki_v1.0.json"):
        found = data.read_paragraphs(common.data_root() / on).paragraphs
        questions = [each.text for own in found for each in own.questions]
        made[on] = {
            "questions": dict(Counter(detect_language([text]) for text in questions).most_common()),
            "paragraphs": dict(Counter(detect_language([own.text]) for own in found).most_common()),
        }
    return made


def _percent(values: Sequence[float]) -> float:
    return round(100 * float(np.mean(values)), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("part", choices=["paragraphs", "corpus", "languages"])
    parser.add_argument("--on", default="fquad:valid", help="a set, or piaf:held-out")
    parser.add_argument("--most", type=int, help="this many questions at even steps")
    parser.add_argument("--folder", help="a French cascade; by default the shipped one")
    options = parser.parse_args()
    if options.part == "paragraphs":
        folder = options.folder or str(shipped_folder("fr"))
        result = paragraphs(options.on, options.most, folder)
    else:
        result = corpus(options.most) if options.part == "corpus" else languages()
    print(result)
    record = common.load_or_empty("french")
    name = f"paragraphs {options.on}" if options.part == "paragraphs" else options.part
    rows = {key: value for key, value in record.items() if key != "environment"}
    print(f"Saved to {common.save('french', rows | {name: result}, 'onnxruntime')}")


if __name__ == "__main__":
    main()
