"""
How retrieval counts beside the default ranker, and whether the ranker should see titles.

    ASKLINE_DATA=DIR python -m research.benchmarks.corpus_weights retrieval --write
    ASKLINE_DATA=DIR python -m research.benchmarks.corpus_weights titles --write

WikiQA dev searches all WikiQA documents; SQuADShifts wiki uses the questions of articles that
nothing was trained on. `retrieval` asks every question with several weights of the retrieval, with
passages and with sentences alone; it writes research/results/corpus_blend.json. `titles` compares
the plain sentence with the sentence after its title, which the sets have in place of headings, also
on questions without an answer; it writes research/results/title_context.json.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from askline import data, load
from askline.corpus import Corpus, RetrievedSentence, Retriever, answer, sentence_ranking
from askline.corpus.ask import DEFAULT_BLEND
from askline.corpus.passages import MAX_SENTENCE_CHARACTERS
from askline.corpus.sentence_ranking import SentenceInContext, add_title_context
from askline.evaluation import markdown_table
from askline.rankers.base import Ranker
from askline.rankers.registry import DEFAULT_SPEC

from .common import data_root, save
from .corpus_answers import ACCURATE_AT, first_right
from .corpus_library import Asking, Library, library
from .phrase_fusion import unseen

BLENDS = (0.0, 0.5, 1.0, 2.0)


class SentencesOnly:
    """A retriever without passages, so that the ranker reads each sentence alone."""

    def __init__(self, retriever: Retriever) -> None:
        self.retriever = retriever

    def retrieve(self, question: str, k: int) -> list[RetrievedSentence]:
        return self.retriever.retrieve(question, k)

    def __len__(self) -> int:
        return len(self.retriever)


READ: dict[str, Callable[[Retriever], Retriever]] = {
    "passages": lambda retriever: retriever,
    "sentences": SentencesOnly,
}


def sets() -> dict[str, Library]:
    return {
        "WikiQA dev": library("wikiqa:dev"),
        "SQuADShifts wiki": unseen("squadshifts/new_wiki_v1.0.json"),
    }


Dress = Callable[[str, Sequence[RetrievedSentence]], list[SentenceInContext]]


def bare(_: str, found: Sequence[RetrievedSentence]) -> list[SentenceInContext]:
    return [SentenceInContext(each.text[:MAX_SENTENCE_CHARACTERS], 0) for each in found]


WAYS: dict[str, Dress] = {
    "the sentence": bare,
    "with the title where it has words of the question that the sentence lacks": add_title_context,
}


def sets_with_unanswerable() -> dict[str, Library]:
    answerable = sets()
    wikiqa = answerable["WikiQA dev"]
    unanswered = [
        Asking(each.text, [], ())
        for each in data.load_dataset("wikiqa:dev", root=data_root())
        if not each.answerable
    ]
    random.Random(0).shuffle(unanswered)
    return {
        **answerable,
        "WikiQA dev, without an answer": wikiqa._replace(questions=unanswered),
    }


def measured(
    questions: Sequence[Asking],
    retriever: Retriever,
    ranker: Ranker,
    *,
    blend: float = DEFAULT_BLEND,
) -> dict[str, Any]:
    """Accuracy, and the share of questions that got an answer."""
    places: list[int | None] = []
    answered = right = 0
    for question in questions:
        said = answer(question.text, retriever, ranker, top_k=max(ACCURATE_AT), blend=blend)
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


def retrieval(given: argparse.Namespace) -> None:
    """Accuracy by the weight of the retrieval score."""
    ranker = load(given.ranker)
    rows = []
    for name, (documents, questions) in sets().items():
        with Corpus.in_memory(ranker=None) as corpus:
            corpus.add(documents)
            for read, narrowed in READ.items():
                retriever = narrowed(corpus.retriever())
                for blend in BLENDS:
                    asked = questions[: given.questions]
                    figures = measured(asked, retriever, ranker, blend=blend)
                    rows.append({"set": name, "reads": read, "blend": blend} | figures)
                    print(rows[-1], flush=True)
    if given.write:
        print(save("corpus_blend", {"ranker": given.ranker, "rows": rows}))


def titles(given: argparse.Namespace) -> None:
    """Accuracy with and without the title."""
    ranker = load(given.ranker)
    rows = []
    for name, (documents, questions) in sets_with_unanswerable().items():
        with Corpus.in_memory(ranker=None) as corpus:
            corpus.add(documents)
            for way, dress in WAYS.items():
                with patch.object(sentence_ranking, "add_title_context", dress):
                    asked = questions[: given.questions]
                    figures = measured(asked, corpus.retriever(), ranker)
                rows.append({"set": name, "what the ranker gets": way} | figures)
                print(rows[-1], flush=True)
    print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]))
    if given.write:
        print(save("title_context", {"ranker": given.ranker, "rows": rows}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["retrieval", "titles"])
    parser.add_argument("--ranker", default=DEFAULT_SPEC)
    parser.add_argument("--questions", type=int, default=150, help="maximum number per set")
    parser.add_argument("--write", action="store_true", help="save the figures")
    given = parser.parse_args()
    {"retrieval": retrieval, "titles": titles}[given.what](given)


if __name__ == "__main__":
    main()
