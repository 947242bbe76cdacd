"""
How retrieval counts beside the default ranker, and whether the ranker should see titles.

    ASKLINE_DATA=DIR python -m research.benchmarks.corpus_weights retrieval --write
    ASKLINE_DATA=DIR python -m research.benchmarks.corpus_weights titles --write

WikiQA dev searches all WikiQA documents; SQuADShifts wiki uses the questions of articles that
nothing was trained on. `retrieval` asks every question once and reorders its answers for each
weight; it writes research/results/corpus_blend.json. `titles` compares the plain sentence with the
sentence after its title, which the sets have in place of headings, also on questions without an
answer; it writes research/results/title_context.json.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

from askline import data, load
from askline.corpus import Answer, Corpus, RetrievedSentence, Retriever, answer, sentence_ranking
from askline.corpus.ask import DEFAULT_BLEND
from askline.corpus.passages import MAX_SENTENCE_CHARACTERS
from askline.corpus.sentence_ranking import LOG_ODDS_BLEND
from askline.corpus.title_context import SentenceInContext, add_title_context
from askline.evaluation import markdown_table
from askline.rankers.base import Ranker
from askline.rankers.probability import log_odds
from askline.rankers.registry import DEFAULT_SPEC

from .common import data_root, save
from .corpus_answers import ACCURATE_AT, first_right
from .corpus_library import Asking, Library, library
from .phrase_fusion import unseen

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5, 2.0)
SHOWN = 100


class Judged(NamedTuple):
    """An answer with the scores that decide its rank, and whether it is right."""

    probability: float
    odds: float
    retrieval: float
    """Standard score of the retrieval."""
    is_last: bool
    """Whether the ranker's last stage scored it; all others rank below."""
    is_right: bool


def asked(name: str, limit: int, spec: str) -> tuple[list[list[Judged]], float]:
    """The answers to each question, and the threshold."""
    documents, questions = sets()[name]
    ranker = load(spec)
    lists = []
    threshold = 0.0
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(documents)
        for question in questions[:limit]:
            retriever = corpus.retriever()
            said = answer(question.text, retriever, ranker, top_k=SHOWN, blend=0.0)
            mixed = answer(question.text, retriever, ranker, top_k=SHOWN)
            blended = {(each.document, each.start): each.score for each in mixed.answers}
            last = max(each.stage for each in said.answers)
            lists.append(
                [
                    _judged(
                        each,
                        blended[each.document, each.start],
                        each.stage == last,
                        first_right([each], question.places) == 1,
                    )
                    for each in said.answers
                    if each.probability is not None
                ]
            )
            threshold = said.threshold or 0.0
    return lists, threshold


def sets() -> dict[str, Library]:
    return {
        "WikiQA dev": library("wikiqa:dev"),
        "SQuADShifts wiki": unseen("squadshifts/new_wiki_v1.0.json"),
    }


def _judged(each: Answer, blended: float, is_last: bool, is_right: bool) -> Judged:
    probability = each.probability or 0.0
    odds = log_odds(probability)
    retrieval = (blended - odds) / (DEFAULT_BLEND * LOG_ODDS_BLEND)
    return Judged(probability, odds, retrieval, is_last, is_right)


def row(lists: Sequence[Sequence[Judged]], weight: float, threshold: float) -> dict[str, float]:
    """Accuracy, and the share of questions that are answered right and wrong."""

    def place(each: Judged) -> tuple[bool, float]:
        """Sort key; sorting is stable, so what earlier stages dropped keeps its order."""
        return not each.is_last, -(each.odds + weight * each.retrieval) if each.is_last else 0.0

    ordered = [sorted(own, key=place) for own in lists]
    firsts = [own[0] for own in ordered if own]
    counts = {
        f"accuracy@{k}": sum(any(each.is_right for each in own[:k]) for own in ordered)
        for k in ACCURATE_AT
    }
    answered = [first.is_right for first in firsts if first.probability >= threshold]
    counts |= {"answered rightly": sum(answered), "wrongly": len(answered) - sum(answered)}
    return {name: round(100 * count / len(lists), 1) for name, count in counts.items()}


Dress = Callable[[str, Sequence[RetrievedSentence]], list[SentenceInContext]]


def bare(_: str, found: Sequence[RetrievedSentence]) -> list[SentenceInContext]:
    return [SentenceInContext(each.text[:MAX_SENTENCE_CHARACTERS], 0) for each in found]


WAYS: dict[str, Dress] = {
    "the sentence": bare,
    "with the title where it has words of the question that the sentence lacks": add_title_context,
}


def sets_with_unanswerable() -> dict[str, Library]:
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
    """Accuracy, and the share of questions that got an answer."""
    places: list[int | None] = []
    answered = right = 0
    with patch.object(sentence_ranking, "add_title_context", dress):
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


def retrieval(given: argparse.Namespace) -> None:
    """Accuracy by the weight of the retrieval score."""
    rows: list[dict[str, Any]] = []
    for name in sets():
        lists, threshold = asked(name, given.questions, given.ranker)
        rows += [
            {"set": name, "questions": len(lists), "weight": weight} | row(lists, weight, threshold)
            for weight in WEIGHTS
        ]
        print(markdown_table(list(rows[0]), [list(each.values()) for each in rows]), flush=True)
    if given.write:
        print(save("corpus_blend", {"ranker": given.ranker, "blend": rows}))


def titles(given: argparse.Namespace) -> None:
    """Accuracy with and without the title."""
    ranker = load(given.ranker)
    rows = []
    for name, (documents, questions) in sets_with_unanswerable().items():
        with Corpus.in_memory(ranker=None) as corpus:
            corpus.add(documents)
            for way, dress in WAYS.items():
                figures = measured(questions[: given.questions], corpus.retriever(), ranker, dress)
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
