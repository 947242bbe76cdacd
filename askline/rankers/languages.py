"""
Requests in other languages than English.

A ranker with a model per language gives every request to the model of its language. For a language
without a model, words still say which candidates are about the question: `bm25` ranks them, and a
LanguageWarning says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ..errors import LanguageWarning
from ..text.language import LANGUAGE_NAMES, detect_language
from ..types import Ranking
from .base import Ranker
from .deadline import Stop
from .lexical import BM25
from .requests import Request

__all__ = [
    "rankers_by_language",
    "run_each",
    "warn_of_language",
]


def rankers_by_language(ranker: Ranker, requests: Sequence[Request]) -> list[Ranker]:
    """For each request, the ranker for its language; `bm25` and a warning if there is none."""
    rankers = []
    for request in requests:
        language = detect_language([request.question, *request.texts])
        own = ranker.for_language(language)
        if own is None:
            warn_of_language(language)
        rankers.append(own or BM25())
    return rankers


def run_each(
    rankers: Sequence[Ranker], requests: Sequence[Request], stop: Stop | None
) -> list[Ranking]:
    """Run each request by its own ranker, all requests of one ranker together."""
    rankings: dict[int, Ranking] = {}
    for ranker in dict.fromkeys(rankers):
        places = [place for place, own in enumerate(rankers) if own == ranker]
        found = ranker.run_batch([requests[place] for place in places], stop)
        rankings |= zip(places, found, strict=True)
    return [rankings[place] for place in range(len(requests))]


def warn_of_language(language: str) -> None:
    """Warn that there is no model for a language."""
    warnings.warn(
        f"The text seems to be {LANGUAGE_NAMES.get(language, language)}, and there is no model for "
        "it: sentences are ranked by their words, without probabilities.",
        LanguageWarning,
        stacklevel=2,
    )
