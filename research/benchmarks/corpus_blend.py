"""
How much retrieval counts beside a ranker whose scores are chances.

    ASKLINE_DATA=/path/to/data python -m research.benchmarks.corpus_blend --write

Every question is asked once; its answers are put in another order for each weight. WikiQA dev is
asked of all WikiQA documents, SQuADShifts wiki with the questions of articles that nothing was
trained on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

from askline import load
from askline.corpus import Answer, Corpus, answer
from askline.corpus.ask import DEFAULT_BLEND, LOG_ODDS_BLEND
from askline.evaluation import markdown_table
from askline.rankers.probability import log_odds
from askline.rankers.registry import DEFAULT_SPEC

from .corpus_answers import ACCURATE_AT, first_right
from .corpus_library import Library, library
from .phrase_fusion import unseen
from .report import save

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5, 2.0)
SHOWN = 100


class Judged(NamedTuple):
    """An answer, in what its order depends on, and whether it is right."""

    chance: float
    odds: float
    retrieval: float
    """Its standard score."""
    is_last: bool
    """Whether the ranker's last stage decided it; the others stay behind these."""
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
            said = answer(question.text, corpus.retriever(), ranker, top_k=SHOWN)
            last = max(each.stage for each in said.answers)
            lists.append(
                [
                    _judged(each, each.stage == last, first_right([each], question.places) == 1)
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


def _judged(each: Answer, is_last: bool, is_right: bool) -> Judged:
    chance = each.probability or 0.0
    odds = log_odds(chance)
    return Judged(
        chance, odds, (each.score - odds) / (DEFAULT_BLEND * LOG_ODDS_BLEND), is_last, is_right
    )


def row(lists: Sequence[Sequence[Judged]], weight: float, threshold: float) -> dict[str, float]:
    """Accuracy, and the share of questions that are answered rightly and wrongly."""

    def place(each: Judged) -> tuple[bool, float]:
        """Sorting is stable: what earlier stages dropped stays as it was."""
        return not each.is_last, -(each.odds + weight * each.retrieval) if each.is_last else 0.0

    ordered = [sorted(own, key=place) for own in lists]
    firsts = [own[0] for own in ordered if own]
    counts = {
        f"accuracy@{k}": sum(any(each.is_right for each in own[:k]) for own in ordered)
        for k in ACCURATE_AT
    }
    answered = [first.is_right for first in firsts if first.chance >= threshold]
    counts |= {"answered rightly": sum(answered), "wrongly": len(answered) - sum(answered)}
    return {name: round(100 * count / len(lists), 1) for name, count in counts.items()}


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


if __name__ == "__main__":
    main()
