"""The defaults of `Corpus.ask`, apart from `ask` because a program that only indexes loads them."""

from __future__ import annotations

from ..rankers.registry import DEFAULT_SPEC

__all__ = ["DEFAULT_BLEND", "DEFAULT_RANKER", "DEFAULT_RETRIEVED"]

DEFAULT_RANKER: str | None = DEFAULT_SPEC
"""Lexical rankers after retrieval do worse than retrieval alone, which has read the passage."""
DEFAULT_BLEND = 1.0
"""Weight of the retrieval score. Retrieval reads the passage and the ranker the sentence."""
DEFAULT_RETRIEVED = 100
"""Sentences to rank: 100 contained the answer nearly as often as 200."""
