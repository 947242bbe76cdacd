"""
A class with the methods of sentence-transformers' `CrossEncoder`, without torch.

    >>> from askline.integrations.cross_encoder import CrossEncoder
    >>> model = CrossEncoder()
    >>> model.rank("Who wrote Emma?", ["Emma is a novel.", "Austen wrote it."])[0]["corpus_id"]
    1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .common import DEFAULT_SPEC, rank_texts, score_pairs

__all__ = ["CrossEncoder", "RankedDocument"]


class _Ranked(TypedDict):
    corpus_id: int
    score: float


class RankedDocument(_Ranked, total=False):
    """One result of `rank`; `text` is there with `return_documents`."""

    text: str


class CrossEncoder:
    """
    Scores pairs of a question and a text; the scores are probabilities from 0 to 1.

    `predict` computes every pair by itself, at full depth. `rank` compares the texts of one
    question and may leave unlikely ones early, which is faster; their scores may differ from those
    of `predict`.
    """

    def __init__(self, model_name_or_path: str = DEFAULT_SPEC) -> None:
        """`model_name_or_path` is the spec text of a ranker, as `cascade('DIR')`."""
        self.model_name_or_path = model_name_or_path

    def predict(
        self,
        sentences: tuple[str, str] | Sequence[Sequence[str]],
        batch_size: int = 32,
        show_progress_bar: bool | None = None,  # noqa: ARG002
    ) -> np.float32 | NDArray[np.float32]:
        """
        One score per pair, in the order of the pairs; a single score for a single pair.

        `batch_size` is the number of pairs that are computed together. A progress bar is not shown.
        """
        if batch_size < 1:
            raise InputError(f"batch_size must be a positive integer, got {batch_size}.")
        single = len(sentences) == 2 and all(isinstance(each, str) for each in sentences)
        pairs = cast(
            "list[tuple[str, str]]",
            [tuple(pair) for pair in ([sentences] if single else sentences)],
        )  # checked by the ranker
        scores = [
            score
            for first in range(0, len(pairs), batch_size)
            for score in score_pairs(self.model_name_or_path, pairs[first : first + batch_size])
        ]
        return np.float32(scores[0]) if single else np.asarray(scores, np.float32)

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        batch_size: int = 32,  # noqa: ARG002
        show_progress_bar: bool | None = None,  # noqa: ARG002
    ) -> list[RankedDocument]:
        """Rank documents, best first; `corpus_id` is the position in `documents`."""
        results: list[RankedDocument] = []
        for each in rank_texts(self.model_name_or_path, query, documents, top_k=top_k):
            result = RankedDocument(corpus_id=each.index, score=each.relevance_score)
            if return_documents:
                result["text"] = documents[each.index]
            results.append(result)
        return results

    async def arank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
    ) -> list[RankedDocument]:
        """`rank` in a thread."""
        import asyncio

        return await asyncio.to_thread(self.rank, query, documents, top_k, return_documents)
