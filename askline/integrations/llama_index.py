"""
LlamaIndex: `AsklineRerank` postprocesses nodes, `AsklineRetriever` answers from an index.

The nodes of the caller are not changed: the result has new `NodeWithScore`s around the same nodes.
"""

from __future__ import annotations

import asyncio
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
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import (
        MetadataMode,
        NodeRelationship,
        NodeWithScore,
        QueryBundle,
        RelatedNodeInfo,
        TextNode,
    )
    from llama_index_instrumentation import get_dispatcher
except ImportError as error:
    raise MissingExtraError("The LlamaIndex integration", "llama-index") from error

__all__ = ["AsklineRerank", "AsklineRetriever"]

_dispatcher = get_dispatcher(__name__)


class AsklineRerank(BaseNodePostprocessor):
    """Orders nodes by how well they answer the query; the score is a probability from 0 to 1."""

    ranker: str = Field(default=DEFAULT_SPEC, description="The spec text of the ranker.")
    top_n: int = Field(default=5, ge=1, description="The number of nodes to return.")
    deadline_ms: float | None = Field(default=None, gt=0, description="Most milliseconds.")

    @classmethod
    def class_name(cls) -> str:
        """The name in `to_dict`."""
        return "AsklineRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError(
                "AsklineRerank needs a query, got None. Give query_bundle or query_str."
            )
        _dispatcher.event(
            ReRankStartEvent(
                query=query_bundle, nodes=nodes, top_n=self.top_n, model_name=self.ranker
            )
        )
        if not nodes:
            return []
        texts = [each.node.get_content(metadata_mode=MetadataMode.EMBED) for each in nodes]
        ranked = rank_texts(
            self.ranker,
            query_bundle.query_str,
            texts,
            top_k=self.top_n,
            deadline_ms=self.deadline_ms,
        )
        found = [
            NodeWithScore(node=nodes[each.index].node, score=each.relevance_score)
            for each in ranked
        ]
        _dispatcher.event(ReRankEndEvent(nodes=found))
        return found

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._postprocess_nodes, nodes, query_bundle)


class AsklineRetriever(BaseRetriever):
    """
    Returns the sentences of an index that answer the query, best first.

    Each is a TextNode with `start_char_idx` and `end_char_idx` in its document.
    """

    def __init__(
        self,
        index: str,
        *,
        ranker: str | None = DEFAULT_SPEC,
        similarity_top_k: int = 5,
        answers_only: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """
        `index` is the folder of an index, `ranker` a spec text.

        With `answers_only`, sentences below the threshold of the ranker are left out.
        """
        super().__init__(callback_manager=callback_manager)
        self.index = index
        self.ranker = ranker
        self.similarity_top_k = similarity_top_k
        self.answers_only = answers_only

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        corpus = loaded_corpus(self.index, self.ranker)
        answers = corpus.ask(query_bundle.query_str, top_k=self.similarity_top_k)
        chosen = answers.above_threshold if self.answers_only else answers.answers
        return [
            NodeWithScore(node=_node(answer, answers, corpus), score=answer_relevance(answer))
            for answer in chosen
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(answer: Answer, answers: Answers, corpus: Corpus) -> TextNode:
    metadata: dict[str, Any] = {
        "file_path": corpus.source_path(answer.document) or answer.document,
        "title": answer.title,
        "heading": answer.heading,
        "place": answer.place,
        "phrase": None if answer.phrase is None else answer.phrase.text,
        "is_answer": answer in answers.above_threshold,
        "before": answer.before,
        "after": answer.after,
    }
    return TextNode(
        id_=f"{answer.document}:{answer.start}-{answer.end}",
        text=answer.text,
        start_char_idx=answer.start,
        end_char_idx=answer.end,
        metadata=metadata,
        # A model reads the sentence, not how it was found.
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=[key for key in metadata if key not in ("title", "heading")],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=answer.document)},
    )
