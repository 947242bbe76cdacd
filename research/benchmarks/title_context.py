"""
Whether the best ranker does better when a sentence comes with the title of its document.

    ASKLINE_DATA=/path/to/data python -m research.benchmarks.title_context --write

Titles are what the sets have in place of headings. WikiQA dev is asked of all WikiQA documents,
also with its questions that have no answer, of which each one that gets an answer is a false alarm
at most; SQuADShifts wiki with the questions of articles that nothing was trained on.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from askline import data, load
from askline.corpus import Corpus, RetrievedSentence, Retriever, answer
from askline.corpus import ask as asking
from askline.corpus.ask import SentenceInContext, add_title_context
from askline.corpus.retrieval import MAX_SENTENCE_CHARACTERS
from askline.evaluation import markdown_table
from askline.rankers.registry import DEFAULT_SPEC
from askline.types import Ranker

from .corpus_answers import ACCURATE_AT, first_right
from .corpus_library import Asking, Library, library
from .phrase_fusion import unseen
from .report import data_root, save

Dress = Callable[[str, Sequence[RetrievedSentence]], list[SentenceInContext]]


def bare(_: str, found: Sequence[RetrievedSentence]) -> list[SentenceInContext]:
    return [SentenceInContext(each.text[:MAX_SENTENCE_CHARACTERS], 0) for each in found]


WAYS: dict[str, Dress] = {
    "the sentence": bare,
    "with the title where it has words of the question that the sentence lacks": add_title_context,
}


def sets() -> dict[str, Library]:
    wikiqa = library("wikiqa:dev")
    unanswered = [
        Asking(each.text, [], ())
        for each in data.load_dataset("wikiqa:dev", root=data_root())
        if not each.answerable
    ]
    random.Random(0).shuffle(unanswered)
    return {
        "WikiQA dev": wikiqa,
        "SQuADShifts wiki": unseen("squadshifts/new_wiki_v1.0.json"),
        "WikiQA dev, without an answer": wikiqa._replace(questions=unanswered),
    }


def measured(
    questions: Sequence[Asking], retriever: Retriever, ranker: Ranker, dress: Dress
) -> dict[str, Any]:
    """Accuracy, and how many of the questions got an answer, right or wrong."""
    places: list[int | None] = []
    answered = right = 0
    with patch.object(asking, "add_title_context", dress):
        for question in questions:
            said = answer(question.text, retriever, ranker, top_k=max(ACCURATE_AT))
            places.append(first_right(said.answers, question.places))
            answered += said.answered
            right += said.answered and places[-1] == 1
    count = len(questions)
    shares = {
        f"accuracy@{k}": round(100 * sum(p is not None and p <= k for p in places) / count, 1)
        for k in ACCURATE_AT
    }
    return {
        "questions": count,
        **shares,
        "answered": round(100 * answered / count, 1),
        "answered rightly": round(100 * right / count, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ranker", default=DEFAULT_SPEC)
    parser.add_argument("--questions", type=int, default=150, help="of each set, at most")
    parser.add_argument(
        "--write", action="store_true", help="keep the figures in research/results/"
    )
    given = parser.parse_args()
    ranker = load(given.ranker)
    rows = []
    for name, (documents, questions) in sets().items():
        with Corpus.in_memory(ranker=None) as corpus:
            corpus.add(documents)
            for way, dress in WAYS.items():
                figures = measured(questions[: given.questions], corpus.retriever(), ranker, dress)
                rows.append({"set": name, "what the ranker gets": way} | figures)
                print(rows[-1], flush=True)
    print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]))
    if given.write:
        print(save("title_context", {"ranker": given.ranker, "rows": rows}))


if __name__ == "__main__":
    main()
