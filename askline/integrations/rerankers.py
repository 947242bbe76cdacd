"""
The `rerankers` library: askline as one of its rankers.

    >>> from rerankers import Reranker  # doctest: +SKIP
    >>> import askline.integrations.rerankers  # doctest: +SKIP
    >>> Reranker("cosinet % 100 >> cascade", model_type="askline")  # doctest: +SKIP

The library has no entry points, so that importing this module registers the ranker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import copy
from typing import TypeAlias

from ..errors import InputError, MissingExtraError
from .common import DEFAULT_SPEC, loaded_ranker, rank_texts, score_pairs

try:
    from rerankers.documents import Document
    from rerankers.models import AVAILABLE_RANKERS
    from rerankers.models.ranker import BaseRanker
    from rerankers.results import RankedResults, Result
except ImportError as error:
    raise MissingExtraError("The rerankers integration", "rerankers") from error

__all__ = ["AsklineRanker"]

_Documents: TypeAlias = str | Document | Sequence[str] | Sequence[Document]


class AsklineRanker(BaseRanker):
    """
    A ranker of askline; the score is a probability from 0 to 1.

    The documents of the results are copies, because the library would write ids into those of the
    caller.
    """

    ranking_type = "pointwise"

    def __init__(self, model_name_or_path: str = DEFAULT_SPEC, verbose: int = 0) -> None:
        """`model_name_or_path` is the spec text of a ranker."""
        self.model_name_or_path = model_name_or_path
        self.verbose = verbose

    def rank(
        self,
        query: str,
        docs: _Documents,
        doc_ids: Sequence[str] | Sequence[int] | None = None,
        metadata: Sequence[dict[str, object]] | None = None,
    ) -> RankedResults:
        """Rank documents, best first; the first rank is 1."""
        documents = _copies(docs, doc_ids, metadata)
        ranked = rank_texts(self.model_name_or_path, query, [each.text for each in documents])
        results = [
            Result(document=documents[each.index], score=each.relevance_score, rank=rank)
            for rank, each in enumerate(ranked, start=1)
        ]
        return RankedResults(results=results, query=query, has_scores=True)

    async def rank_async(
        self,
        query: str,
        docs: _Documents,
        doc_ids: Sequence[str] | Sequence[int] | None = None,
        metadata: Sequence[dict[str, object]] | None = None,
    ) -> RankedResults:
        """`rank` in a thread."""
        return await asyncio.to_thread(self.rank, query, docs, doc_ids, metadata)

    def score(self, query: str, doc: str) -> float:
        """The probability that one text answers, by itself and at full depth."""
        ranker = loaded_ranker(self.model_name_or_path)
        if ranker.listwise:
            return rank_texts(ranker, query, [doc])[0].relevance_score
        return score_pairs(ranker, [(query, doc)])[0]


def _copies(
    docs: _Documents,
    doc_ids: Sequence[str] | Sequence[int] | None,
    metadata: Sequence[dict[str, object]] | None,
) -> list[Document]:
    given = [docs] if isinstance(docs, (str, Document)) else list(docs)
    for name, values in (("doc_ids", doc_ids), ("metadata", metadata)):
        if values is not None and len(values) != len(given):
            raise InputError(
                f"{name} must have one entry per document, got {len(values)} for {len(given)}."
            )
    made = []
    for place, each in enumerate(given):
        document = Document(each) if isinstance(each, str) else copy(each)
        if document.text is None:
            raise InputError(f"Document {place} must have a text, got an image.")
        if doc_ids is not None:
            document.doc_id = doc_ids[place]
        elif document.doc_id is None:
            document.doc_id = place
        if metadata is not None:
            document.metadata = metadata[place]
        made.append(document)
    return made


AVAILABLE_RANKERS["askline"] = AsklineRanker
