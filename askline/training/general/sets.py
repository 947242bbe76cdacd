"""What the general model learns from: openly licensed sets, and none of them a test set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ... import data
from ...types import Question, QuestionSet
from ..transformer.negatives import Negatives
from ..transformer.sampling import Part, Plan, SampledLists

__all__ = ["PLANS", "SETS", "TALK", "general_lists", "general_parts", "is_talk"]

SETS = ("squadshifts:train", "squad1:train", "squad-pairs:train")

PLANS = {
    "chosen": Plan(hard=3, hard_drawn=8, near=2, near_drawn=8, elsewhere=3, drawn=24),
    "first": Plan(),
}
"""Of lists about encyclopaedic text. With `first`, which the first general model was made by, the
network chose the random ones alone of the sentences from elsewhere."""
TALK = Plan(hard=1, near=0, elsewhere=1, drawn=1)
"""Reviews and forum posts: many of their questions ("What is the product?") any post answers."""

_TALK = ("Filtered_Reddit_Comments", "Amazon_Reviews")


def general_parts(root: Path | None = None, *, plan: str = "chosen") -> tuple[Part, Part]:
    """The questions with an answer, those of encyclopaedias first, then those about talk."""
    questions = [question for name in SETS for question in _answerable(name, root)]
    talk = [question for question in questions if is_talk(question)]
    rest = [question for question in questions if not is_talk(question)]
    return Part(tuple(rest), PLANS[plan]), Part(tuple(talk), TALK)


def general_lists(
    tokeniser: Any, negatives: Path, *, root: Path | None = None, plan: str = "chosen"
) -> SampledLists:
    """The lists to train on. The file `negatives` is made where it is not there yet."""
    parts = general_parts(root, plan=plan)
    questions = [question for part in parts for question in part.questions]
    return SampledLists(" + ".join(SETS), parts, Negatives.at(negatives, questions), tokeniser)


def _answerable(name: str, root: Path | None) -> QuestionSet:
    return data.select(data.load(name, root=root), "answerable")


def is_talk(question: Question) -> bool:
    source = question.candidates[0].source
    return source is not None and source.document.startswith(_TALK)
