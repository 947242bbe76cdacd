"""
LangChain: `AsklineRerank` compresses retrieved documents, `AsklineRetriever` answers from an index.

Both hold a spec text and a folder, so that they dump, copy and pickle; the ranker is loaded at the
first call, once per process. The documents of the caller are not changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ..corpus.corpus import Corpus
from ..corpus.results import Answer, Answers
from ..errors import MissingExtraError
from .common import (
    DEFAULT_SPEC,
    answer_relevance,
    loaded_corpus,
    rank_texts,
)

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise MissingExtraError("The LangChain integration", "langchain") from error

__all__ = ["AsklineRerank", "AsklineRetriever"]


class AsklineRerank(BaseDocumentCompressor):
    """
    Orders documents by how well they answer the query, best first.

    Each returned document is a copy with `metadata["relevance_score"]`, a probability from 0 to 1.
    """

    model_config = ConfigDict(extra="forbid")

    ranker: str = DEFAULT_SPEC
    """The spec text of the ranker."""
    top_n: int | None = Field(default=None, ge=1)
    """Return the best N documents; None for all."""
    score_threshold: float | None = Field(default=None, ge=0, le=1)
    """Leave out documents with a lower relevance score."""
    deadline_ms: float | None = Field(default=None, gt=0)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,  # noqa: ARG002
    ) -> list[Document]:
        """Return copies of the documents, best first."""
        texts = [document.page_content for document in documents]
        if not texts:
            return []
        ranked = rank_texts(
            self.ranker, query, texts, top_k=self.top_n, deadline_ms=self.deadline_ms
        )
        return [
            documents[each.index].model_copy(
                update={
                    "metadata": {
                        **documents[each.index].metadata,
                        "relevance_score": each.relevance_score,
                    }
                }
            )
            for each in ranked
            if self.score_threshold is None or each.relevance_score >= self.score_threshold
        ]

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks | None = None,
    ) -> list[Document]:
        """`compress_documents` in a thread."""
        return await asyncio.to_thread(self.compress_documents, documents, query, callbacks)


class AsklineRetriever(BaseRetriever):
    """
    Returns the sentences of an index that answer the query, best first.

    The metadata has the relevance score, the exact place and the neighboring sentences.
    """

    index: str
    """The folder of the index, as written by `askline index`."""
    ranker: str | None = DEFAULT_SPEC
    """The spec text of the ranker; None for the order of the retrieval."""
    k: int = Field(default=5, ge=1)
    answers_only: bool = False
    """Leave out sentences below the threshold of the ranker: no answer, no documents."""

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        corpus = loaded_corpus(self.index, self.ranker)
        answers = corpus.ask(query, top_k=self.k if k is None else k)
        chosen = answers.above_threshold if self.answers_only else answers.answers
        return [_document(answer, answers, corpus) for answer in chosen]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
    ) -> list[Document]:
        return await asyncio.to_thread(
            self._get_relevant_documents, query, run_manager=run_manager.get_sync(), k=k
        )


def _document(answer: Answer, answers: Answers, corpus: Corpus) -> Document:
    metadata: dict[str, Any] = {
        "source": corpus.source_path(answer.document) or answer.document,
        "relevance_score": answer_relevance(answer),
        "is_answer": answer in answers.above_threshold,
        "phrase": None if answer.phrase is None else answer.phrase.text,
        "document": answer.document,
        "title": answer.title,
        "heading": answer.heading,
        "place": answer.place,
        "start": answer.start,
        "end": answer.end,
        "before": answer.before,
        "after": answer.after,
    }
    return Document(page_content=answer.text, metadata=metadata)
