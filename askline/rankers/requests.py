"""What goes into a ranker and comes out of it: requests, checked input, sorted hits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, RankerError
from ..types import Document, Hit

__all__ = [
    "Request",
    "ScoreArray",
    "attach_documents",
    "check_pair",
    "check_question",
    "check_top_k",
    "read_request",
    "sort_by_score",
]

ScoreArray = NDArray[np.float64]


class Request(NamedTuple):
    """One question with its texts, as the stages of a ranker see it."""

    question: str
    texts: Sequence[str]
    order: Sequence[int] | None = None
    """
    Positions of the texts, most promising first, where an earlier stage has ranked them. A stage
    with a deadline scores them in this order, so that time runs out on the least promising ones.
    """


def sort_by_score(scores: ArrayLike, *, stage: int = 0, calibrated: bool = False) -> list[Hit]:
    """
    Hits by falling score; equal scores keep the original order.

    Infinite scores are allowed, NaN is an error: it has no place in an order.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise RankerError(f"Scores must be one number per document, got shape {values.shape}.")
    undefined = np.isnan(values)
    if undefined.any():
        raise RankerError(f"Document {int(undefined.argmax())} has the score NaN.")
    order = np.argsort(-values, kind="stable")
    return [
        Hit(index, score, stage, score if calibrated else None)
        for index, score in zip(order.tolist(), values[order].tolist(), strict=True)
    ]


def check_question(question: str) -> None:
    """Refuse what is not a string, and an empty or blank one."""
    if not isinstance(question, str):
        raise InputError(f"The question must be a string, got {type(question).__name__}.")
    if not question.strip():
        raise InputError(f"The question must not be empty, got {question!r}.")


def read_request(
    question: str, documents: Iterable[Document], text: str
) -> tuple[Sequence[Document], Request]:
    """The documents as a list, and the request with their texts."""
    check_question(question)
    if isinstance(documents, (str, bytes, Mapping)):
        kind = "one string" if isinstance(documents, (str, bytes)) else "one mapping"
        raise InputError(f"Documents must be a list, got {kind}. Put it in a list.")
    if not isinstance(documents, Iterable):
        raise InputError(f"Documents must be a list, got {type(documents).__name__}.")
    kept: Sequence[Document] = (
        documents if isinstance(documents, (list, tuple)) else list(documents)
    )
    texts = [
        document if isinstance(document, str) else _read_text(place, document, text)
        for place, document in enumerate(kept)
    ]
    return kept, Request(question, texts)


def _read_text(place: int, document: Document, key: str) -> str:
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        raise InputError(f"Document {place} must be a string or a mapping, got {kind}.")
    if key not in document:
        known = ", ".join(map(repr, document)) or "no key"
        raise InputError(
            f"Document {place} must have its text under {key!r}, got {known}. "
            "Name the key of the text: rank(..., text='body')."
        )
    found = document[key]
    if not isinstance(found, str):
        kind = type(found).__name__
        raise InputError(f"Document {place} must have a string under {key!r}, got {kind}.")
    return found


def attach_documents(
    hits: Sequence[Hit], documents: Sequence[Document], texts: Sequence[str]
) -> list[Hit]:
    """The hits, each with the caller's own document."""
    return [
        Hit(
            hit.index,
            hit.score,
            hit.stage,
            hit.probability,
            documents[hit.index],
            texts[hit.index],
        )
        for hit in hits
    ]


def check_pair(place: int, pair: tuple[str, str]) -> tuple[str, str]:
    if isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[1], str):
        raise InputError(f"Pair {place} must be a question and a text, got {pair!r}.")
    check_question(pair[0])
    return pair[0], pair[1]


def check_top_k(top_k: int | None) -> int | None:
    if top_k is None:
        return None
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 1:
        raise InputError(f"top_k must be a positive integer, got {top_k!r}.")
    return top_k
