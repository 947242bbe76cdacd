"""
What all adapters share: rankers and corpora loaded once per process, and relevance scores.

Adapters hold a spec text or a folder and load at the first call. Frameworks copy and pickle their
components, so that the loaded object belongs to the process and not to the component.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from ..corpus.corpus import Corpus
from ..corpus.results import Answer
from ..errors import InputError
from ..rankers.base import Ranker
from ..rankers.probability import ranking_relevance, sigmoid
from ..rankers.registry import DEFAULT_SPEC
from ..rankers.requests import check_top_k
from ..rankers.spec import load

__all__ = [
    "DEFAULT_SPEC",
    "RankedText",
    "answer_relevance",
    "loaded_corpus",
    "loaded_ranker",
    "rank_texts",
    "score_pairs",
]

_Key = TypeVar("_Key")
_Loaded = TypeVar("_Loaded")

# A cache and no setting: what it holds follows from the keys. The process id is part of the key,
# because locks, the threads of an onnxruntime session and the connections of a store do not survive
# a fork.
_rankers: dict[tuple[int, str], Ranker] = {}
_corpora: dict[tuple[int, str, str | None], Corpus] = {}
_locks: dict[int, Lock] = {}


@dataclass(frozen=True, slots=True)
class RankedText:
    """One text of a ranking."""

    index: int
    """Position in the caller's list."""
    relevance_score: float
    """From 0 to 1, in descending order; the probability if the ranker is calibrated."""


def loaded_ranker(ranker: str | Ranker) -> Ranker:
    """The ranker of a spec text, loaded once per process; a Ranker as it is."""
    if isinstance(ranker, Ranker):
        return ranker
    if not isinstance(ranker, str):
        raise InputError(
            f"ranker must be a spec text or a Ranker, got {type(ranker).__name__}. "
            f"A spec text is, for example, {DEFAULT_SPEC!r}."
        )
    return _once(_rankers, (os.getpid(), ranker), lambda: load(ranker))


def loaded_corpus(corpus: str | os.PathLike[str] | Corpus, ranker: str | Ranker | None) -> Corpus:
    """The corpus in a folder, opened once per process; a Corpus as it is."""
    if isinstance(corpus, Corpus):
        return corpus
    folder = os.path.abspath(os.path.expanduser(corpus))
    if isinstance(ranker, Ranker):
        return Corpus.open(folder, ranker=ranker, must_exist=True)
    shared = None if ranker is None else loaded_ranker(ranker)
    key = (os.getpid(), folder, ranker)
    return _once(_corpora, key, lambda: Corpus.open(folder, ranker=shared, must_exist=True))


def _once(cache: dict[_Key, _Loaded], key: _Key, make: Callable[[], _Loaded]) -> _Loaded:
    if key not in cache:
        with _locks.setdefault(os.getpid(), Lock()):
            if key not in cache:
                cache[key] = make()
    return cache[key]


def rank_texts(
    ranker: str | Ranker,
    question: str,
    texts: Sequence[str],
    *,
    top_k: int | None = None,
    deadline_ms: float | None = None,
) -> list[RankedText]:
    """Rank texts: the best `top_k`, best first, each with its relevance score."""
    ranking = loaded_ranker(ranker).trace(question, texts, deadline_ms=deadline_ms)
    scores = ranking_relevance(ranking)
    ranked = [RankedText(hit.index, score) for hit, score in zip(ranking.hits, scores, strict=True)]
    return ranked[: check_top_k(top_k)]


def score_pairs(ranker: str | Ranker, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """
    A relevance score per (question, text), independent of all other pairs.

    A cascade computes each at full depth. InputError from a ranker that compares texts.
    """
    loaded = loaded_ranker(ranker)
    scores = loaded.predict(pairs).tolist()
    return scores if loaded.threshold is not None else [sigmoid(score) for score in scores]


def answer_relevance(answer: Answer) -> float:
    """From 0 to 1: the probability of an answer, or the logistic function of its score."""
    return sigmoid(answer.score) if answer.probability is None else answer.probability
