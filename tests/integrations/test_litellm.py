"""litellm's rerank providers against `askline serve`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.serving.server_process import Server

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network when it is imported
import litellm

from .conftest import QUESTION, TEXTS

# litellm and what it imports warn at every call.
pytestmark = pytest.mark.filterwarnings("ignore")

DOCUMENTS = [text for text in TEXTS if text]
PROVIDERS = {
    "cohere/rerank-v3.5": "/v2/rerank",
    "jina_ai/jina-reranker-v2": "/v1/rerank",
    "hosted_vllm/any": "",
    "huggingface/any": "",
    "infinity/any": "/infinity",
}


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with Server("--workers", "1") as server:
        yield server.base


def check(found: Any, count: int) -> None:
    scores = [item["relevance_score"] for item in found.results]
    assert [item["index"] for item in found.results][:1] == [2]
    assert len(scores) == count
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    for item in found.results:
        if item.get("document"):
            assert item["document"]["text"] == DOCUMENTS[item["index"]]


@pytest.mark.parametrize(("model", "path"), PROVIDERS.items(), ids=list(PROVIDERS))
def test_providers_rerank(base: str, model: str, path: str) -> None:
    request: dict[str, Any] = {
        "model": model,
        "query": QUESTION,
        "documents": DOCUMENTS,
        "top_n": 3,
        "api_base": f"{base}{path}",
        "api_key": "none",
    }
    count = 4 if "huggingface" in model else 3  # TEI's protocol has no top_n
    check(litellm.rerank(**request), count)
    check(asyncio.run(litellm.arerank(**request)), count)


def test_infinity_returns_the_documents(base: str) -> None:
    found = litellm.rerank(
        model="infinity/any",
        query=QUESTION,
        documents=DOCUMENTS,
        return_documents=True,
        api_base=f"{base}/infinity",
        api_key="none",
    )
    assert found.results[0]["document"]["text"] == DOCUMENTS[2]
    assert len(found.results) == len(DOCUMENTS)


def test_the_docs_run(run_docs: Callable[[str], None]) -> None:
    run_docs("litellm")
    run_docs("DSPy")
