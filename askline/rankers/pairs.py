"""A question and its candidates as the light networks take them: numbered words and channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..models.channels import FloatArray, IntArray, Lexicon, pair_channels
from ..models.vectors import WordVectors
from ..text.words import words

__all__ = ["Block", "Pairs"]

_WORDS_AT_ONCE = 8_192  # bounds memory: a block has about as many padded words


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some candidates of about one length, padded with the zero word."""

    rows: IntArray  # (block,) which candidates
    words: IntArray  # (block, longest)
    lengths: IntArray  # (block,)
    asked: FloatArray  # (block, question words, channels)
    said: FloatArray  # (block, longest, channels)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """All pairs of one question. Every text has at least one word, the zero word if no other."""

    lexicon: Lexicon
    question: IntArray  # (question words,)
    words: IntArray  # the candidates' words in a row
    starts: IntArray  # (candidates,)
    lengths: IntArray  # (candidates,)
    asked: FloatArray  # (candidates, question words, channels)
    said: FloatArray  # (words in a row, channels)

    @classmethod
    def of(
        cls,
        question: str,
        candidates: Sequence[str],
        vectors: WordVectors,
        *,
        channels: Sequence[str],
    ) -> Pairs:
        """Number the distinct words, look them up once, compute the channels."""
        texts = [words(text) for text in (question, *candidates)]
        number = {
            word: row
            for row, word in enumerate(dict.fromkeys(w for text in texts for w in text), start=1)
        }
        lexicon = Lexicon.of(vectors.of(list(number)), vectors.idf(list(number)))
        ask, *say = [np.array([number[word] for word in text] or [0], np.int64) for text in texts]
        lengths = np.array([len(text) for text in say], np.int64)
        flat, starts = np.concatenate(say), np.cumsum(lengths) - lengths
        asked, said = pair_channels(channels, lexicon, ask, flat, starts)
        return cls(lexicon, ask, flat, starts, lengths, asked, said)

    def blocks(self) -> Iterator[Block]:
        """The candidates, shortest first, in blocks that waste little on padding."""
        order = np.argsort(self.lengths, kind="stable")
        while len(order):
            # As many as fit when each is padded to the longest of them.
            fits = np.arange(1, len(order) + 1) * self.lengths[order] <= _WORDS_AT_ONCE
            count = max(1, int(fits.sum()))
            yield self._block(order[:count])
            order = order[count:]

    def _block(self, rows: IntArray) -> Block:
        lengths = self.lengths[rows]
        place = np.arange(lengths.max())
        inside = place < lengths[:, None]
        at = np.where(inside, self.starts[rows, None] + place, 0)
        said = self.said[at] * inside[..., None]
        return Block(rows, self.words[at] * inside, lengths, self.asked[rows], said)
