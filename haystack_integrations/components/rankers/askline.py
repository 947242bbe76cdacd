"""
Haystack: a ranker that orders documents by how well they answer the query.

Haystack loads pipelines only from modules under `haystack_integrations`, a namespace that the
integrations of many packages share; so this module is not in `askline.integrations`.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from typing import Any, TypeVar

from askline.errors import InputError, MissingExtraError
from askline.integrations.common import DEFAULT_SPEC, loaded_ranker, rank_texts

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise MissingExtraError("The Haystack integration", "haystack") from error

__all__ = ["AsklineComponent", "AsklineRanker"]

_Component = TypeVar("_Component", bound="AsklineComponent")


class AsklineComponent:
    """What the components share: loading a ranker, and the way to plain data and back."""

    ranker: str
    """The spec text of a ranker."""

    def warm_up(self) -> None:
        """Load the ranker."""
        loaded_ranker(self.ranker).warm_up()

    def to_dict(self) -> dict[str, Any]:
        """The component as plain data: its type and the arguments that it was made with."""
        _, *names = inspect.signature(type(self).__init__).parameters
        given = {name: getattr(self, name) for name in names}
        data: dict[str, Any] = default_to_dict(self, **given)
        return data

    @classmethod
    def from_dict(cls: type[_Component], data: dict[str, Any]) -> _Component:
        """The component that `to_dict` described."""
        made: _Component = default_from_dict(cls, data)
        return made


@component
class AsklineRanker(AsklineComponent):
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
        kept = [
            replace(documents[each.index], score=each.relevance_score)
            for each in ranked
            if self.score_threshold is None or each.relevance_score >= self.score_threshold
        ]
        return {"documents": kept}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """`run` in a thread."""
        return await asyncio.to_thread(self.run, query, documents, top_k)
