"""The `rerankers` library with askline as a ranker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy

import pytest
from rerankers import Document, Reranker

import askline
from askline.integrations.rerankers import AsklineRanker

from .conftest import QUESTION, TEXTS


def test_the_library_makes_our_ranker() -> None:
    ranker = Reranker("jaccard", model_type="askline", verbose=0)
    assert isinstance(ranker, AsklineRanker)
    assert ranker.rank(QUESTION, TEXTS).top_k(1)[0].doc_id == 2


def test_results_are_ordered_as_by_rank() -> None:
    results = AsklineRanker().rank(QUESTION, TEXTS)
    hits = askline.load().rank(QUESTION, TEXTS)
    assert [result.doc_id for result in results] == [hit.index for hit in hits]
    assert [result.rank for result in results] == list(range(1, len(TEXTS) + 1))
    assert all(0 <= result.score <= 1 for result in results)
    assert results.has_scores


def test_documents_keep_their_metadata_and_are_not_changed() -> None:
    given = [Document(text, metadata={"page": at}) for at, text in enumerate(TEXTS)]
    before = deepcopy([vars(each) for each in given])
    best = AsklineRanker("jaccard").rank(QUESTION, given, doc_ids=list("abcde")).top_k(1)[0]
    assert (best.doc_id, best.metadata["page"]) == ("c", 2)
    assert [vars(each) for each in given] == before


def test_async_gives_the_same() -> None:
    ranker = AsklineRanker()
    there = asyncio.run(ranker.rank_async(QUESTION, TEXTS))
    here = ranker.rank(QUESTION, TEXTS)
    assert [each.doc_id for each in there] == [each.doc_id for each in here]


@pytest.mark.parametrize("spec", ["cosinet % 100 >> cascade", "jaccard", "wo", "bm25"])
def test_one_score_is_a_probability(spec: str) -> None:
    ranker = AsklineRanker(spec)
    right, wrong = ranker.score(QUESTION, TEXTS[2]), ranker.score(QUESTION, "It sold well.")
    assert 0 <= wrong < right <= 1


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="doc_ids must have one entry per document, got 1 for 5"):
        AsklineRanker().rank(QUESTION, TEXTS, doc_ids=[1])


def test_a_missing_package_names_the_install_command(
    error_without: Callable[[str, str], str],
) -> None:
    message = error_without("rerankers", "askline.integrations.rerankers")
    assert "rerankers integration needs more packages. Run: " in message
    assert "[rerankers]" in message


def test_the_docs_run(run_docs: Callable[[str], None]) -> None:
    run_docs("rerankers")
    run_docs("CrossEncoder")
