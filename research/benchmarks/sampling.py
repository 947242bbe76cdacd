"""A part of a set that stands for all of it."""

from __future__ import annotations

from dataclasses import replace

from askline.types import QuestionSet


def evenly(questions: QuestionSet, most: int | None) -> QuestionSet:
    """At most so many questions, at even steps through the set; all of them without a number."""
    wanted = most or len(questions)
    step = max(1, len(questions) // max(1, wanted))
    return replace(questions, questions=questions.questions[::step][:wanted])
