"""Where the transformer selectors' figures stand: the general model's, and when it is adapted."""

from __future__ import annotations

from ..places import Place, place

__all__ = ["adapted", "general"]

_GENERAL = {"share": 0.7}  # an earlier recipe went 0.8 of the way from the untouched weights
_ADAPTED = {
    "wikiqa": ("cross_adapt", {}),  # the loss that cross-validation chose
    "trecqa": ("adapt_trecqa", {"start": "general", "loss": "point"}),  # the best on dev
}


def general(question_set: str, measure: str) -> Place:
    """The general model on a test set, not adapted to anything."""
    return place("transformers", "rows", "blend_on_test", _GENERAL, "test", question_set, measure)


def adapted(task: str, measure: str) -> Place:
    """The same adapted to WikiQA or TrecQA, three seeds."""
    rows, which = _ADAPTED[task]
    return place("transformers", "rows", rows, which, "test", measure)
