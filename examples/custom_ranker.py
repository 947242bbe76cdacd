"""
A ranker of your own: a scoring function, a subclass with options, and the checks for both.

    python examples/custom_ranker.py

Both work wherever a ranker is expected: in pipelines, in a corpus, in evaluations. `check_ranker`
raises an error that says which rule a ranker breaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import askline
from askline.testing import check_ranker
from askline.text.words import split_words

QUESTION = "When was the lighthouse on the rock built?"
TEXTS = [
    "The lighthouse is painted white.",
    "Visitors reach the rock by boat from May to September.",
    "It was built on the rock in 1698, and a storm took it five years later.",
    "A lighthouse keeper lives on the rock, in the tower that was built for him.",
]


def shared_words(question: str, texts: Sequence[str]) -> list[int]:
    """The simplest ranker is a function: one score per text."""
    asked = set(split_words(question.lower()))
    return [len(asked & set(split_words(text.lower()))) for text in texts]


@dataclass(frozen=True)
class ExpectedAnswer(askline.Ranker):
    """Adds a bonus if a text has digits and the question asks for a number or a date."""

    name: ClassVar[str] = "expected-answer"
    bonus: float = 0.5

    def score_texts(self, question: str, texts: Sequence[str]) -> list[float]:
        wants_number = question.lower().startswith(("when", "how many", "how much", "how long"))
        return [
            shared / (1 + len(split_words(text)))
            + self.bonus * (wants_number and any(map(str.isdigit, text)))
            for shared, text in zip(shared_words(question, texts), texts, strict=True)
        ]


def main() -> None:
    by_words = askline.Ranker.from_function(shared_words)
    by_kind = ExpectedAnswer(bonus=0.8)
    pipeline = by_words.top(3).then(by_kind)
    for ranker in (by_words, by_kind, pipeline):
        check_ranker(ranker)
        print(f"{ranker} keeps the rules.\n  {ranker.rank(QUESTION, TEXTS)[0].text}")


if __name__ == "__main__":
    main()
