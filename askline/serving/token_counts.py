"""
Count the tokens of a request, which is what a ranker's time depends on.

A cascade is counted by its own tokenizer. Other rankers do not read punctuation, but take time for
it; for them, words and punctuation characters are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..engine.encoder import OnnxEncoder
from ..engine.tokenizer import WordPiece
from ..rankers.base import Cut, Pipeline, Ranker, WithDeadline
from ..rankers.cascade import Cascade
from ..text.words import split_words

__all__ = ["count_tokens"]

_PUNCTUATION = re.compile(r"[^\w\s]")


def count_tokens(ranker: Ranker, texts: Iterable[str], *, limit: int) -> int:
    """Return the number of tokens of all texts; counting ends once there are more than `limit`."""
    tokenizer = _find_tokenizer(ranker)
    if tokenizer is not None:
        return tokenizer.count_tokens(texts, limit=limit)
    count = 0
    for text in texts:
        count += len(split_words(text)) + len(_PUNCTUATION.findall(text))
        if count > limit:
            break
    return count


def _find_tokenizer(ranker: Ranker) -> WordPiece | None:
    """Return the tokenizer of the last cascade in a ranker; None if it contains no cascade."""
    if isinstance(ranker, Cascade):
        return ranker.encoder.tokenizer if isinstance(ranker.encoder, OnnxEncoder) else None
    if isinstance(ranker, (Cut, WithDeadline)):
        return _find_tokenizer(ranker.ranker)
    if isinstance(ranker, Pipeline):
        return next(filter(None, map(_find_tokenizer, reversed(ranker.stages))), None)
    return None
