"""LangChain: its own kit for retrievers, and a compressor in a real retriever."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

import askline
from askline.integrations.langchain import AsklineRerank, AsklineRetriever

from .conftest import DOCUMENTS, QUESTION, TEXTS


class TestRetrieverKit(RetrieversIntegrationTests):
    """LangChain's standard tests."""

    @pytest.fixture(autouse=True)
    def _use_index(self, index: str) -> None:
        self.index = index

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return AsklineRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"index": self.index}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def documents() -> list[Document]:
    return [
        Document(text, metadata={"page": page, "tags": ["a"]}, id=f"d{page}")
        for page, text in enumerate(TEXTS)
    ]


def test_documents_are_ordered_as_by_rank() -> None:
    found = AsklineRerank().compress_documents(documents(), QUESTION)
    expected = [hit.index for hit in askline.load().rank(QUESTION, TEXTS)]
    assert [each.metadata["page"] for each in found] == expected
    assert [each.id for each in found] == [f"d{page}" for page in expected]
    scores = [each.metadata["relevance_score"] for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_scores_of_bm25_are_between_0_and_1() -> None:
    found = AsklineRerank(ranker="bm25").compress_documents(documents(), QUESTION)
    assert all(0 <= each.metadata["relevance_score"] <= 1 for each in found)


def test_the_documents_of_the_caller_are_not_changed() -> None:
    given = documents()
    before = deepcopy(given)
    found = AsklineRerank(top_n=2).compress_documents(given, QUESTION)
    assert given == before
    assert len(found) == 2
    assert found[0] is not given[2]


def test_async_gives_the_same() -> None:
    rerank = AsklineRerank(top_n=3)
    there = asyncio.run(rerank.acompress_documents(documents(), QUESTION))
    assert there == rerank.compress_documents(documents(), QUESTION)


def test_a_threshold_leaves_out_what_does_not_answer() -> None:
    found = AsklineRerank(score_threshold=0.5).compress_documents(documents(), QUESTION)
    assert [each.metadata["page"] for each in found] == [2]


def test_no_documents_give_no_documents() -> None:
    assert AsklineRerank().compress_documents([], QUESTION) == []


@pytest.mark.parametrize("options", [{"top_n": 0}, {"score_threshold": 2}, {"topn": 3}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        AsklineRerank(**options)


def test_it_dumps_and_pickles_after_use() -> None:
    rerank = AsklineRerank(ranker="jaccard", top_n=2)
    rerank.compress_documents(documents(), QUESTION)
    assert AsklineRerank(**rerank.model_dump()) == rerank
    assert AsklineRerank.model_validate_json(rerank.model_dump_json()) == rerank
    assert pickle.loads(pickle.dumps(rerank)) == rerank


def test_compression_of_our_retriever(index: str) -> None:
    """A chain of LangChain, sync and async, with both classes."""
    chain = ContextualCompressionRetriever(
        base_retriever=AsklineRetriever(index=index, ranker=None, k=5),
        base_compressor=AsklineRerank(top_n=1),
    )
    [best] = chain.invoke(QUESTION)
    assert best.page_content == "Jane Austen wrote Emma in 1815."
    assert asyncio.run(chain.ainvoke(QUESTION)) == [best]
    assert chain.batch([QUESTION, QUESTION]) == [[best], [best]]


def test_answers_have_their_place(index: str) -> None:
    best = AsklineRetriever(index=index).invoke(QUESTION)[0]
    place = best.metadata
    assert DOCUMENTS[place["document"]][place["start"] : place["end"]] == best.page_content
    assert (place["phrase"], place["is_answer"]) == ("Jane Austen", True)
    assert place["source"] == "emma"


def test_answers_only_gives_nothing_if_nothing_answers(index: str) -> None:
    question = "What does Emma cost in Zanzibar?"
    assert AsklineRetriever(index=index).invoke(question)
    assert AsklineRetriever(index=index, answers_only=True).invoke(question) == []
    assert AsklineRetriever(index=index, answers_only=True).invoke(QUESTION)


def test_async_takes_k(index: str) -> None:
    assert len(asyncio.run(AsklineRetriever(index=index).ainvoke(QUESTION, k=2))) == 2


def test_the_retriever_pickles_and_dumps(index: str) -> None:
    retriever = AsklineRetriever(index=index, k=2)
    retriever.invoke(QUESTION)
    assert pickle.loads(pickle.dumps(retriever)).invoke(QUESTION) == retriever.invoke(QUESTION)
    assert dumpd(retriever)["id"][-1] == "AsklineRetriever"


def test_a_missing_index_names_the_command_that_makes_one(tmp_path: Any) -> None:
    with pytest.raises(askline.CorpusError, match="askline index PATH"):
        AsklineRetriever(index=str(tmp_path / "none")).invoke(QUESTION)


def test_a_missing_package_names_the_install_command(
    error_without: Callable[[str, str], str],
) -> None:
    message = error_without("langchain_core", "askline.integrations.langchain")
    assert "LangChain integration needs more packages. Run: " in message
    assert "[langchain]" in message


def test_the_docs_run(run_docs: Callable[[str], None]) -> None:
    run_docs("LangChain")
