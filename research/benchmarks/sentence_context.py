"""
Whether a ranker does better when a sentence comes to it with its title or its neighbours.

    ASKLINE_DATA=/path/to/data python -m research.benchmarks.sentence_context

Retrieval, which reads the passage, is the same for all; its scores are added as `ask` does it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from askline import Ranker, load
from askline.corpus import Corpus, Found, Neighbours
from askline.corpus.ask import in_document_order
from askline.corpus.bm25 import standard
from askline.evaluation import markdown_table

from .corpus_answers import first_right
from .corpus_library import library
from .report import save

SETS = [
    "wikiqa:dev",
    "squadshifts/new_wiki_v1.0.json",
    "squadshifts/reddit_v1.0.json",
    "squad/train-800-contexts.json",
]
AT = (1, 5)
RETRIEVED = 100


def dressed(found: Sequence[Found], around: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The same sentences, with more and more of what stands around them."""
    both = list(zip(found, around, strict=True))
    return {
        "sentence": [each.text for each in found],
        "title, sentence": [f"{each.title} {each.text}" for each in found],
        "before, sentence": [f"{before} {each.text}" for each, (before, _) in both],
        "before, sentence, after": [
            f"{before} {each.text} {after}" for each, (before, after) in both
        ],
    }


def scored(ranker: Ranker, question: str, texts: Sequence[str]) -> list[float]:
    scores = [0.0] * len(texts)
    for hit in ranker.rank(question, texts):
        scores[hit.index] = hit.score
    return standard(scores) or scores


def measured(on: str, ranker: Ranker, limit: int) -> dict[str, list[int | None]]:
    """The place of the first right sentence, question by question, for each way."""
    documents, questions = library(on, limit)
    places: dict[str, list[int | None]] = {}
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(documents)
        retriever = corpus.retriever()
        assert isinstance(retriever, Neighbours)
        for question, gold, _ in questions:
            found = in_document_order(retriever.retrieve(question, RETRIEVED))
            own = standard([each.score for each in found]) or []
            ways = dressed(found, [retriever.neighbours(each) for each in found])
            scores = {way: scored(ranker, question, texts) for way, texts in ways.items()}
            for way in list(ways)[1:]:
                pair = zip(scores["sentence"], scores[way], strict=True)
                scores[f"sentence + 0.5 × ({way})"] = [a + 0.5 * b for a, b in pair]
            for way, rank in scores.items():
                total = [a + b for a, b in zip(standard(rank) or rank, own, strict=True)]
                best = sorted(range(len(found)), key=lambda at: -total[at])[: max(AT)]
                place = first_right([found[at] for at in best], gold)
                places.setdefault(way, []).append(place)
    return places


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--ranker", default="cosinet")
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument(
        "--write", action="store_true", help="keep the figures in research/results/"
    )
    given = parser.parse_args()
    ranker = load(given.ranker)
    rows: dict[str, dict[str, Any]] = {}
    for on in given.sets:
        for way, places in measured(on, ranker, given.questions).items():
            right = [sum(place is not None and place <= k for place in places) for k in AT]
            shares = " / ".join(f"{100 * count / len(places):.1f}" for count in right)
            rows.setdefault(way, {"what the ranker gets": way})[on] = shares
    table = [list(row.values()) for row in rows.values()]
    print(markdown_table(list(next(iter(rows.values()))), table))
    if given.write:
        figures = {"ranker": given.ranker, "accuracy@1 / @5": list(rows.values())}
        print(f"\nKept in {save('sentence_context', figures)}")


if __name__ == "__main__":
    main()
