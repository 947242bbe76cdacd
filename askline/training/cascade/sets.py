"""The labelled sets of a training as phases: lists with texts from elsewhere, and paragraphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import data
from ...errors import InputError
from ...types import Question
from ..general.sets import PLANS, TALK, is_talk
from ..transformer.negatives import Negatives, mine
from ..transformer.sampling import Part, SampledLists
from .examples import answer_spans, reading_set
from .lists import SampledSource
from .reading import ReadingSet

__all__ = ["transfer_sets"]


def transfer_sets(
    names: Sequence[str], tokeniser: Any, negatives: Path, *, root: Path | None = None
) -> tuple[SampledSource, ReadingSet | None]:
    """
    What the transfer step learns from: questions with an answer, and paragraphs, if any.

    The file `negatives` is made where it is not there yet, which takes a minute on one core.
    """
    found = [question for name in names for question in _answerable(name, root)]
    if not found:
        raise InputError(f"No question of {', '.join(names)} has an answer to learn from.")
    parts = [
        Part(tuple(each for each in found if is_talk(each) == talk), plan)
        for talk, plan in ((False, PLANS["chosen"]), (True, TALK))
    ]
    questions = [question for part in parts for question in part.questions]
    if not negatives.exists():
        negatives.parent.mkdir(parents=True, exist_ok=True)
        mine(questions).save(negatives)
    lists = SampledLists(
        " + ".join(names),
        [part for part in parts if part.questions],
        Negatives.load(negatives, questions),
        tokeniser,
    )
    paragraphs = [each for name in names for each in data.load_paragraphs(name, root=root)]
    golds = {asked.id: asked.answers for each in paragraphs for asked in each.questions}
    source = SampledSource(lists, answer_spans(questions, golds, tokeniser))
    return source, reading_set(paragraphs, tokeniser) if paragraphs else None


def _answerable(name: str, root: Path | None) -> tuple[Question, ...]:
    return data.select(data.load(name, root=root), "answerable").questions
