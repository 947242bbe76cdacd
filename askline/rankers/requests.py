"""What goes into a ranker and comes out of it: requests, checked input, sorted hits."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, RankerError
from ..types import Document, Hit, Passage

__all__ = [
    "PassageTexts",
    "Request",
    "ScoreArray",
    "attach_documents",
    "check_count",
    "check_pair",
    "check_question",
    "check_request",
    "check_top_k",
    "read_request",
    "sort_by_score",
]

ScoreArray = NDArray[np.float64]


class PassageTexts(NamedTuple):
    """The passages that a request's texts are sentences of."""

    passages: Sequence[Passage]
    places: Sequence[tuple[int, int]]
    """Per text, the number of its passage and of its sentence in it."""


class Request(NamedTuple):
    """One question with its texts, as the stages of a ranker see it."""

    question: str
    texts: Sequence[str]
    order: Sequence[int] | None = None
    """
    Positions of the texts, most promising first, where an earlier stage has ranked them. A stage
    with a deadline scores them in this order, so that time runs out on the least promising ones.
    """
    context: PassageTexts | None = None
    """
    The passages of the texts; None for independent texts. A passage stays whole on its way through
    the stages: a sentence that was dropped is no longer a text, and is still read as context.
    """

    def select(self, positions: Sequence[int], order: Sequence[int] | None) -> Request:
        """The texts at these positions, with an order of their own."""
        context = self.context and self.context._replace(
            places=[self.context.places[position] for position in positions]
        )
        texts = [self.texts[position] for position in positions]
        return Request(self.question, texts, order, context)


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
    """The document of each text, and the request with the texts."""
    check_question(question)
    if isinstance(documents, (str, bytes, Mapping, Passage)):
        kinds = {str: "one string", bytes: "one string", Passage: "one Passage"}
        kind = kinds.get(type(documents), "one mapping")
        raise InputError(f"Documents must be a list, got {kind}. Put it in a list.")
    if not isinstance(documents, Iterable):
        raise InputError(f"Documents must be a list, got {type(documents).__name__}.")
    kept: Sequence[Document] = (
        documents if isinstance(documents, (list, tuple)) else list(documents)
    )
    if any(isinstance(document, Passage) for document in kept):
        return _read_passages(question, kept)
    texts = [
        document if isinstance(document, str) else _read_text(place, document, text)
        for place, document in enumerate(kept)
    ]
    return kept, Request(question, texts)


def _read_passages(
    question: str, documents: Sequence[Document]
) -> tuple[Sequence[Document], Request]:
    """Per sentence its passage, and the request with all sentences."""
    passages, places, texts = list[Passage](), list[tuple[int, int]](), list[str]()
    for number, passage in enumerate(documents):
        if not isinstance(passage, Passage):
            kind = type(passage).__name__
            raise InputError(
                f"Document {number} must be a Passage like the others, got {kind}. "
                "Rank passages and independent texts in two calls."
            )
        sentences = passage.sentences
        if isinstance(sentences, str) or not all(isinstance(one, str) for one in sentences):
            raise InputError(
                f"The sentences of passage {number} must be a list of strings, got {sentences!r}."
            )
        if not isinstance(passage.title, str):
            kind = type(passage.title).__name__
            raise InputError(f"The title of passage {number} must be a string, got {kind}.")
        passages.append(passage)
        places += [(number, at) for at in range(len(sentences))]
        texts += sentences
    owners = [passages[number] for number, _ in places]
    return owners, Request(question, texts, context=PassageTexts(passages, places))


def _read_text(place: int, document: Document, key: str) -> str:
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        raise InputError(f"Document {place} must be a string, a mapping or a Passage, got {kind}.")
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
            hit.span,
        )
        for hit in hits
    ]


def check_pair(place: int, pair: tuple[str, str]) -> tuple[str, str]:
    is_pair = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
    if not is_pair or not isinstance(pair[1], str):
        raise InputError(f"Pair {place} must be a question and a text, got {pair!r:.80}.")
    check_question(pair[0])
    return pair[0], pair[1]


def check_request(
    place: int, request: tuple[str, Iterable[Document]]
) -> tuple[str, Iterable[Document]]:
    """The question and the documents of one of many requests."""
    if not isinstance(request, (str, bytes, Mapping)):
        try:
            question, documents = request
        except (TypeError, ValueError):
            pass
        else:
            return question, documents
    raise InputError(f"Request {place} must be a question and its documents, got {request!r:.80}.")


def check_top_k(top_k: int | None) -> int | None:
    return None if top_k is None else check_count("top_k", top_k)


def check_count(name: str, value: int, *, least: int = 1) -> int:
    """An integer argument of any integer type, numpy's included, that is at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        kind = "a positive integer" if least else "an integer of at least 0"
        raise InputError(f"{name} must be {kind}, got {value!r}.")
    return number
