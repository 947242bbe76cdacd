"""Pairs joined from texts that were tokenised once, whatever lists they are drawn for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import QuestionSet
from ..packed.packing import TokenTable
from ..packed.templates import PairTemplate
from .pairs import PairSet

__all__ = ["TextTable", "encode_pairs"]

Tokens = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class TextTable:
    """Texts by number, and how two of them make a pair."""

    texts: TokenTable
    template: PairTemplate
    max_tokens: int = 256

    @classmethod
    def encode(cls, texts: Sequence[str], tokeniser: Any, *, max_tokens: int = 256) -> TextTable:
        """The caller keeps which number is which text."""
        return cls(TokenTable.of(texts, tokeniser), PairTemplate.of(tokeniser), max_tokens)

    def __len__(self) -> int:
        return len(self.texts.offsets) - 1

    def __getitem__(self, text: int) -> Tokens:
        """Without special tokens."""
        return self.texts.tokens[self.texts.offsets[text] : self.texts.offsets[text + 1]]

    def pairs(
        self,
        lists: Iterable[tuple[int, Sequence[int]]],
        labels: Sequence[float] = (),
        *,
        name: str = "",
    ) -> PairSet:
        """
        Each question, by its number, with its candidates, by theirs.

        `labels` has one for each candidate of all lists; without them all are 0.
        """
        joined: list[tuple[Tokens, NDArray[np.int8]]] = []
        sizes = []
        for question, candidates in lists:
            asked = self[question]
            sizes.append(len(candidates))
            joined.extend(self._join(asked, self[candidate]) for candidate in candidates)
        return PairSet(
            name=name,
            tokens=tuple(tokens for tokens, _ in joined),
            segments=tuple(kinds for _, kinds in joined) if self.template.has_segments else None,
            labels=np.array(labels if len(labels) else [0.0] * len(joined), np.float32),
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            padding=self.template.padding,
        )

    def _join(self, question: Tokens, candidate: Tokens) -> tuple[Tokens, NDArray[np.int8]]:
        """Of a pair that is too long, the longer text is cut, as tokenisers do it."""
        frame = self.template
        room = self.max_tokens - frame.extra
        asked = min(len(question), max(room - len(candidate), room // 2))
        said = min(len(candidate), room - asked)
        parts = (frame.before, question[:asked], frame.between, candidate[:said], frame.after)
        return np.concatenate(parts), np.repeat(
            np.array(frame.segments, np.int8), [len(part) for part in parts]
        )


def encode_pairs(questions: QuestionSet, tokeniser: Any, *, max_tokens: int = 256) -> PairSet:
    """The pairs of a set; of a pair that is too long, the longer text is cut."""
    if not questions.candidate_count:
        raise InputError(f"Question set {questions.name!r} has no candidates to encode.")
    number: dict[str, int] = {}
    lists = [
        [number.setdefault(text, len(number)) for text in (question.text, *question.texts)]
        for question in questions
    ]
    labels = [candidate.is_answer for question in questions for candidate in question.candidates]
    table = TextTable.encode(list(number), tokeniser, max_tokens=max_tokens)
    return table.pairs(((asked, own) for asked, *own in lists), labels, name=questions.name)
