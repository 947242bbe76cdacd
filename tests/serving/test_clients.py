"""Unmodified clients of other rerankers against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cohere
import httpx
import pytest

from .conftest import TEXTS
from .server_process import Server

QUERY = "Who wrote Emma?"


@pytest.fixture
def http_client() -> Iterator[httpx.Client]:
    """A connection pool that is closed, which Cohere's clients do not do."""
    with httpx.Client(timeout=30) as client:
        yield client


@pytest.mark.slow
def test_cohere_v2(server: Server, http_client: httpx.Client) -> None:
    client = cohere.ClientV2(api_key="none", base_url=server.base, httpx_client=http_client)
    found = client.rerank(model="rerank-v3.5", query=QUERY, documents=TEXTS, top_n=2)
    assert [result.index for result in found.results] == [2, 0]
    scores = [result.relevance_score for result in found.results]
    assert 1 >= scores[0] > scores[1] >= 0
    assert found.id
    assert found.meta is not None
    assert found.meta.billed_units is not None


@pytest.mark.parametrize("wanted", [None, True], ids=["without documents", "with documents"])
def test_cohere_v1(server: Server, http_client: httpx.Client, wanted: bool | None) -> None:
    client = cohere.Client(api_key="none", base_url=server.base, httpx_client=http_client)
    documents = [{"text": text} for text in TEXTS]
    found = client.rerank(query=QUERY, documents=documents, return_documents=wanted)
    assert [result.index for result in found.results] == [2, 0, 1]
    first = found.results[0].document
    assert (first.text if first else None) == (TEXTS[2] if wanted else None)


def test_cohere_reads_errors(server: Server, http_client: httpx.Client) -> None:
    client = cohere.ClientV2(api_key="none", base_url=server.base, httpx_client=http_client)
    with pytest.raises(cohere.errors.BadRequestError) as caught:
        client.rerank(model="any", query=QUERY, documents=[])
    assert caught.value.body == {
        "message": "documents must have at least one entry, got none.",
        "detail": "documents must have at least one entry, got none.",
    }


def _tei(server: Server, **body: Any) -> httpx.Response:
    """As huggingface_hub and the TEI examples post it."""
    return httpx.post(f"{server.base}/rerank", json={"query": QUERY, **body}, timeout=30)


def test_tei_returns_a_list_best_first(server: Server) -> None:
    found = _tei(server, texts=TEXTS, truncate=True).json()
    assert [item["index"] for item in found] == [2, 0, 1]
    assert all(set(item) == {"index", "score"} for item in found)
    assert all(0 <= item["score"] <= 1 for item in found)


def test_tei_returns_texts_and_raw_scores_on_request(server: Server) -> None:
    probabilities = _tei(server, texts=TEXTS).json()
    found = _tei(server, texts=TEXTS, return_text=True, raw_scores=True).json()
    assert [item["text"] for item in found] == [TEXTS[2], TEXTS[0], TEXTS[1]]
    assert found[0]["score"] > 1 > probabilities[0]["score"]


def test_tei_errors(server: Server) -> None:
    empty = _tei(server, texts=[])
    assert empty.status_code == 400
    assert empty.json() == {
        "error": "texts must have at least one entry, got none.",
        "error_type": "Empty",
    }
    wrong = _tei(server, texts=[1])
    assert wrong.status_code == 422
    assert wrong.json()["error_type"] == "Validation"
    many = _tei(server, texts=["a"] * 1_001)
    assert many.status_code == 413


def test_jina_on_rerank_and_on_v1(server: Server) -> None:
    body = {"model": "jina-reranker-v2", "query": QUERY, "documents": TEXTS, "top_n": 1}
    for path in ("/rerank", "/v1/rerank"):
        found = server.post(path, body).json()
        assert found["results"][0]["document"] == {"text": TEXTS[2]}
        assert found["object"] == "list"
        assert found["model"] == "cosinet"
        assert found["usage"]["total_tokens"] == 20  # 16 words, 4 punctuation characters


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/v2/rerank"])
def test_vllm_clients_get_all_results_for_their_default_top_n(server: Server, path: str) -> None:
    body = {"query": QUERY, "documents": TEXTS, "top_n": 0}
    assert len(server.post(path, body).json()["results"]) == len(TEXTS)
    assert server.post(path, {**body, "top_n": -1}).status_code == 422


def test_jina_reads_detail_if_there_are_no_results(server: Server) -> None:
    found = server.post("/v1/rerank", {"query": QUERY, "documents": [1]}).json()
    assert "results" not in found
    assert "documents.0" in found["detail"]


def test_documents_are_ranked_by_named_fields(server: Server) -> None:
    documents = [{"title": "Emma", "body": "A novel."}, {"title": "Emma", "body": "By Austen."}]
    body = {"query": "By Austen?", "documents": documents, "rank_fields": ["title", "body"]}
    found = server.post("/v1/rerank", body).json()
    assert found["results"][0]["document"] == {"text": "Emma\nBy Austen."}


@pytest.mark.parametrize(
    "names", [("queries", "documents"), ("text_1", "text_2"), ("data_1", "data_2")], ids="-".join
)
@pytest.mark.parametrize("path", ["/score", "/v1/score"])
def test_vllm_scores_are_in_the_order_of_the_request(
    server: Server, path: str, names: tuple[str, str]
) -> None:
    found = server.post(path, {names[0]: QUERY, names[1]: TEXTS}).json()
    assert [item["index"] for item in found["data"]] == [0, 1, 2]
    scores = [item["score"] for item in found["data"]]
    assert scores[2] > scores[0] > scores[1]
    assert found["object"] == "list"


def test_vllm_scores_lists_of_equal_length(server: Server) -> None:
    questions = [QUERY, "Did it sell?", QUERY]
    found = server.post("/score", {"text_1": questions, "text_2": TEXTS}).json()
    assert len(found["data"]) == 3
    wrong = server.post("/score", {"text_1": questions, "text_2": TEXTS[:2]})
    assert wrong.status_code == 422
    assert "got 3 and 2" in wrong.json()["error"]["message"]
    assert wrong.json()["error"]["code"] == 422
