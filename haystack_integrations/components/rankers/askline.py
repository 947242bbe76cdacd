"""
Haystack: a ranker that orders documents by how well they answer the query.

Haystack loads pipelines only from modules under `haystack_integrations`, a namespace that the
integrations of many packages share; so this module is not in `askline.integrations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from askline.errors import InputError, MissingExtraError
from askline.integrations.common import (
    DEFAULT_SPEC,
    RankedText,
    arank_texts,
    loaded_ranker,
    rank_texts,
)

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise MissingExtraError("The Haystack integration", "haystack") from error

__all__ = ["AsklineRanker"]


@component
class AsklineRanker:
    """
    Orders documents by how well they answer the query, best first.

    The returned documents are copies whose `score` is a probability from 0 to 1; those of the
    caller are not changed. A document without text counts as an empty text.
    """

    def __init__(
        self,
        ranker: str = DEFAULT_SPEC,
        top_k: int | None = None,
        score_threshold: float | None = None,
        deadline_ms: float | None = None,
    ) -> None:
        """
        `ranker` is the spec text of a ranker, `top_k` the most documents to return.

        Documents that score below `score_threshold` are left out.
        """
        if top_k is not None and top_k < 1:
            raise InputError(f"top_k must be a positive integer, got {top_k}.")
        self.ranker = ranker
        self.top_k = top_k
        self.score_threshold = score_threshold
        self.deadline_ms = deadline_ms

    def warm_up(self) -> None:
        """Load the ranker."""
        loaded_ranker(self.ranker).warm_up()

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Return copies of the documents, best first."""
        if not documents:
            return {"documents": []}
        ranked = rank_texts(
            self.ranker,
            query,
            [document.content or "" for document in documents],
            top_k=self.top_k if top_k is None else top_k,
            deadline_ms=self.deadline_ms,
        )
        return {"documents": self._select(documents, ranked)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """`run` in a thread."""
        if not documents:
            return {"documents": []}
        ranked = await arank_texts(
            self.ranker,
            query,
            [document.content or "" for document in documents],
            top_k=self.top_k if top_k is None else top_k,
            deadline_ms=self.deadline_ms,
        )
        return {"documents": self._select(documents, ranked)}

    def _select(
        self, documents: Sequence[Document], ranked: Sequence[RankedText]
    ) -> list[Document]:
        return [
            replace(documents[each.index], score=each.relevance_score)
            for each in ranked
            if self.score_threshold is None or each.relevance_score >= self.score_threshold
        ]

    def to_dict(self) -> dict[str, Any]:
        """The component as plain data."""
        options: dict[str, Any] = default_to_dict(
            self,
            ranker=self.ranker,
            top_k=self.top_k,
            score_threshold=self.score_threshold,
            deadline_ms=self.deadline_ms,
        )
        return options

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AsklineRanker:
        """The component that `to_dict` described."""
        made: AsklineRanker = default_from_dict(cls, data)
        return made
