"""
What to retrieve: sentences, sentences with context, paragraphs, or passages first.

    ASKLINE_DATA=DIR python -m research.benchmarks.retrieval_units --questions 300 --write

Every paragraph of a set is a document; figures are the share of questions whose answer sentence is
among the first k. No test set is used. Writes research/results/retrieval_units.json.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tantivy

from askline.corpus import Corpus, Retriever
from askline.data import ParagraphSet, hold_out, read_paragraphs, to_question_set
from askline.evaluation import markdown_table
from askline.text.words import split_words
from askline.types import Question

from .common import data_root, save

SETS = {
    "wiki": "squadshifts/new_wiki_v1.0.json",
    "reddit": "squadshifts/reddit_v1.0.json",
    "amazon": "squadshifts/amazon_reviews_v1.0.json",
    "squad train": "squad/train-800-contexts.json",
    "piaf": "piaf/piaf-v1.1.json",
}
WHOLE = {"squad train"}  # of the others, only questions of held-out articles are used
AT = (1, 5, 20, 100)
FIELDS: dict[str, dict[str, float]] = {
    "sentence": {"own": 1.0},
    "sentence + 0.5 neighbours": {"own": 1.0, "near": 0.5},
    "sentence + paragraph": {"own": 1.0, "all": 1.0},
}
Place = tuple[str, int]
"""A document and the index of a sentence."""
Texts = dict[str, list[str]]


class Engine:
    """Units of text with several fields, scored by a weighted sum of BM25."""

    def __init__(self, units: Sequence[dict[str, str]], language: str | None) -> None:
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        builder = builder.filter(tantivy.Filter.ascii_fold())
        if language:
            builder = builder.filter(tantivy.Filter.stemmer(language))
        self.analyser = builder.build()
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("unit", fast=True)
        for name in units[0]:
            schema.add_text_field(name, tokenizer_name="stems", index_option="freq")
        self.index = tantivy.Index(schema.build())
        self.index.register_tokenizer("stems", self.analyser)
        writer = self.index.writer(50_000_000, 1)
        for number, unit in enumerate(units):
            fields = {name: " ".join(split_words(text)) for name, text in unit.items()}
            writer.add_document(tantivy.Document(unit=number, **fields))
        writer.commit()
        self.index.reload()

    def find(self, question: str, weights: dict[str, float], limit: int) -> list[int]:
        terms = dict.fromkeys(self.analyser.analyze(" ".join(split_words(question))))
        parts = [
            (tantivy.Occur.Should, tantivy.Query.boost_query(query, weight))
            for term in terms
            for name, weight in weights.items()
            for query in [tantivy.Query.term_query(self.index.schema, name, term, "freq")]
        ]
        searcher = self.index.searcher()
        hits = searcher.search(tantivy.Query.boolean_query(parts), limit=limit, count=False).hits
        return [int(n or 0) for n in searcher.fast_field_values("unit", [at for _, at in hits])]


def asked(paragraphs: ParagraphSet, whole: bool, limit: int) -> list[Question]:
    part = paragraphs if whole else hold_out(paragraphs)[1]
    questions = [question for question in to_question_set(part) if question.answerable]
    random.Random(0).shuffle(questions)
    return questions[:limit]


def texts_of(paragraphs: ParagraphSet) -> Texts:
    found: Texts = {}
    for question in to_question_set(paragraphs):
        source = question.candidates[0].source
        assert source is not None
        found.setdefault(source.document, question.texts)
    return found


def unit(texts: Sequence[str], at: int) -> dict[str, str]:
    near = [*texts[max(0, at - 1) : at], *texts[at + 1 : at + 2]]
    return {"own": texts[at], "near": " ".join(near), "all": " ".join(texts)}


def recall(questions: Sequence[Question], find: Callable[[str], list[Place]]) -> dict[str, float]:
    right = dict.fromkeys(AT, 0)
    for question in questions:
        gold = {
            (each.source.document, at)
            for at, each in enumerate(question.candidates)
            if each.is_answer and each.source
        }
        found = find(question.text)
        for k in AT:
            right[k] += not gold.isdisjoint(found[:k])
    return {f"@{k}": round(100 * count / len(questions), 1) for k, count in right.items()}


def by_sentence(
    engine: Engine, places: Sequence[Place], weights: dict[str, float], question: str
) -> list[Place]:
    return [places[at] for at in engine.find(question, weights, max(AT))]


def by_paragraph(engine: Engine, texts: Texts, question: str) -> list[Place]:
    names = list(texts)
    found = [names[at] for at in engine.find(question, {"own": 1.0}, max(AT))]
    return [(name, at) for name in found for at in range(len(texts[name]))]


def by_passage(retriever: Retriever, question: str) -> list[Place]:
    return [(each.document, each.ordinal) for each in retriever.retrieve(question, max(AT))]


def measure(path: str, whole: bool, limit: int) -> list[dict[str, Any]]:
    paragraphs = read_paragraphs(data_root() / path)
    questions, texts = asked(paragraphs, whole, limit), texts_of(paragraphs)
    places = [(name, at) for name, own in texts.items() for at in range(len(own))]
    rows: list[dict[str, Any]] = []

    def add(title: str, stems: str | None, find: Callable[[str], list[Place]]) -> None:
        rows.append({"unit": title, "stems": stems, **recall(questions, find)})

    for language in (None, "English", "French") if "piaf" in path else (None, "English"):
        engine = Engine([unit(texts[name], at) for name, at in places], language)
        for title, weights in FIELDS.items():
            add(title, language, partial(by_sentence, engine, places, weights))
        engine = Engine([{"own": " ".join(own)} for own in texts.values()], language)
        add("paragraph", language, partial(by_paragraph, engine, texts))
    with Corpus.in_memory() as corpus:
        corpus.add((each.id, each.text) for each in paragraphs.paragraphs)
        add("askline", "English", partial(by_passage, corpus.retriever()))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--write", action="store_true", help="save the figures to research/results")
    given = parser.parse_args()
    figures = {}
    for name, path in SETS.items():
        figures[name] = rows = measure(path, name in WHOLE, given.questions)
        cells = [[str(cell) if cell is None else cell for cell in row.values()] for row in rows]
        print(f"\n{name}\n{markdown_table(list(rows[0]), cells)}", flush=True)
    if given.write:
        kept = save("retrieval_units", {"questions": given.questions, **figures}, "tantivy")
        print(f"\nSaved to {kept}")


if __name__ == "__main__":
    main()
