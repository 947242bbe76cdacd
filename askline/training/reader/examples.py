"""What a reader learns from, in the tokens of the folder that it is fitted to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...data.squad import Paragraph
from ...engine.tokenizer import WordPiece
from ..cascade.examples import reading_set
from ..cascade.reading import ReadingSet
from ..packed.templates import PairTemplate

__all__ = ["Pieces", "every_answer", "template_of"]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The runtime's tokeniser, called as training calls one."""

    tokeniser: WordPiece

    def __call__(self, texts: Sequence[str], **_: object) -> dict[str, list[list[object]]]:
        """Of each text the numbers and the places of its pieces, without marks."""
        found = [self.tokeniser.pieces(text) for text in texts]
        return {
            "input_ids": [[number for number, _, _ in pieces] for pieces in found],
            "offset_mapping": [[(start, end) for _, start, end in pieces] for pieces in found],
        }


def template_of(tokeniser: WordPiece) -> PairTemplate:
    """How the runtime joins question and text."""
    first, between = (np.array([mark]) for mark in (tokeniser.first, tokeniser.separator))
    return PairTemplate(first, between, between, (0, 0, 0, 1, 1), has_segments=True, padding=0)


def every_answer(
    paragraphs: Sequence[Paragraph], tokeniser: WordPiece, *, positions: int
) -> ReadingSet:
    """An example for each answer that an annotator gave, so that all of them count the same."""
    found = reading_set(list(_one_answer_each(paragraphs)), Pieces(tokeniser))
    return replace(found, limit=min(found.limit, positions))


def _one_answer_each(paragraphs: Sequence[Paragraph]) -> Iterator[Paragraph]:
    for paragraph in paragraphs:
        questions = [
            replace(question, answers=(answer,))
            for question in paragraph.questions
            for answer in question.answers
        ]
        yield replace(paragraph, questions=tuple(questions))
