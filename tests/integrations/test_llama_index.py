"""LlamaIndex: a postprocessor and a retriever in a real query pipeline."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

import pytest
from llama_index.core import Settings
from llama_index.core.base.response.schema import Response
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import (
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    TextNode,
)

import askline
from askline.integrations.llama_index import AsklineRerank, AsklineRetriever

from .conftest import DOCUMENTS, QUESTION, TEXTS


def nodes() -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(text=text, id_=f"n{at}", metadata={}), score=0.1 * at)
        for at, text in enumerate(TEXTS)
    ]


def test_nodes_are_ordered_as_by_rank() -> None:
    found = AsklineRerank(top_n=9).postprocess_nodes(nodes(), query_str=QUESTION)
    hits = askline.load().rank(QUESTION, TEXTS)
    assert [each.node.node_id for each in found] == [f"n{hit.index}" for hit in hits]
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_the_nodes_of_the_caller_are_not_changed() -> None:
    given = nodes()
    before = deepcopy(given)
    AsklineRerank(top_n=2).postprocess_nodes(given, query_str=QUESTION)
    assert given == before


def test_the_embedding_text_is_ranked() -> None:
    """Metadata belongs to the text of a node, unless it is excluded."""
    named = TextNode(text="She wrote it.", metadata={"title": "Jane Austen wrote Emma."})
    other = TextNode(text="It is a novel.")
    found = AsklineRerank(ranker="jaccard").postprocess_nodes(
        [NodeWithScore(node=other), NodeWithScore(node=named)], query_str=QUESTION
    )
    assert found[0].node is named


def test_async_gives_the_same() -> None:
    rerank = AsklineRerank(top_n=2)
    query = QueryBundle(QUESTION)
    there = asyncio.run(rerank.apostprocess_nodes(nodes(), query))
    assert there == rerank.postprocess_nodes(nodes(), query)


def test_to_dict_round_trip() -> None:
    rerank = AsklineRerank(ranker="jaccard % 3 >> bm25", top_n=2, deadline_ms=50)
    rerank.postprocess_nodes(nodes(), query_str=QUESTION)
    data = json.loads(json.dumps(rerank.to_dict()))
    assert data["class_name"] == "AsklineRerank"
    copy = AsklineRerank.from_dict(data)
    assert copy.to_dict() == rerank.to_dict()
    assert AsklineRerank.from_json(rerank.to_json()).to_dict() == rerank.to_dict()
    assert pickle.loads(pickle.dumps(rerank)).to_dict() == rerank.to_dict()


def test_events_are_sent() -> None:
    class Handler(BaseEventHandler):
        seen: ClassVar[list[str]] = []

        def handle(self, event: Any, **_: Any) -> None:
            self.seen.append(event.class_name())

    handler = Handler()
    get_dispatcher().add_event_handler(handler)
    AsklineRerank(ranker="jaccard").postprocess_nodes(nodes(), query_str=QUESTION)
    assert [name for name in handler.seen if "ReRank" in name] == [
        "ReRankStartEvent",
        "ReRankEndEvent",
    ]


def test_a_missing_query_is_refused_and_no_nodes_give_none() -> None:
    with pytest.raises(ValueError, match="query_str"):
        AsklineRerank().postprocess_nodes(nodes())
    assert AsklineRerank().postprocess_nodes([], query_str=QUESTION) == []


def test_answers_have_their_place(index: str) -> None:
    retriever = AsklineRetriever(index, similarity_top_k=3)
    found = retriever.retrieve(QUESTION)
    assert asyncio.run(retriever.aretrieve(QUESTION)) == found
    assert len(found) == 3
    node = found[0].node
    assert isinstance(node, TextNode)
    source = node.relationships[NodeRelationship.SOURCE].node_id
    assert DOCUMENTS[source][node.start_char_idx : node.end_char_idx] == node.text
    assert node.metadata["phrase"] == "Jane Austen"
    assert node.get_content(MetadataMode.EMBED) == node.text
    assert all(0 <= (each.score or 0) <= 1 for each in found)


def test_a_query_engine_with_both(index: str) -> None:
    """LlamaIndex's own engine, without a language model."""
    Settings.llm = MockLLM()  # else it looks for an account
    engine = RetrieverQueryEngine(
        retriever=AsklineRetriever(index, ranker=None),
        node_postprocessors=[AsklineRerank(top_n=1)],
        response_synthesizer=get_response_synthesizer(response_mode=ResponseMode.NO_TEXT),
    )
    response = engine.query(QUESTION)
    assert isinstance(response, Response)
    [best] = response.source_nodes
    assert best.node.get_content(MetadataMode.NONE) == "Jane Austen wrote Emma in 1815."


def test_answers_only(index: str) -> None:
    retriever = AsklineRetriever(index, answers_only=True)
    assert retriever.retrieve("What does Emma cost in Zanzibar?") == []
    assert retriever.retrieve(QUESTION)


def test_a_missing_package_names_the_install_command(
    error_without: Callable[[str, str], str],
) -> None:
    message = error_without("llama_index.core", "askline.integrations.llama_index")
    assert "LlamaIndex integration needs more packages. Run: " in message
    assert "[llama-index]" in message


def test_the_docs_run(run_docs: Callable[[str], None]) -> None:
    run_docs("LlamaIndex")
