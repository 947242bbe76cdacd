"""
LangChain's JinaRerank against a running service, unchanged but for its address.

Run by test_langchain.py in a separate environment, because LangChain has many dependencies.
"""

from __future__ import annotations

import sys
from typing import Any

from langchain_community.document_compressors import jina_rerank
from langchain_core.documents import Document

TEXTS = ["Emma is a novel.", "It sold well.", "Jane Austen wrote Emma in 1815."]


def main(base: str) -> None:
    """Rank, compress, and read an error."""
    jina_rerank.JINA_API_URL = f"{base}/v1/rerank"
    client = jina_rerank.JinaRerank(jina_api_key="none", top_n=2)

    found = client.rerank(TEXTS, "Who wrote Emma?")
    assert [item["index"] for item in found] == [2, 0], found
    assert 1 >= found[0]["relevance_score"] > found[1]["relevance_score"] >= 0, found

    documents = [Document(text, metadata={"page": at}) for at, text in enumerate(TEXTS)]
    kept = client.compress_documents(documents, "Who wrote Emma?")
    assert [document.metadata["page"] for document in kept] == [2, 0], kept
    assert kept[0].metadata["relevance_score"] > kept[1].metadata["relevance_score"], kept
    assert "relevance_score" not in documents[2].metadata

    assert "documents.0" in _refusal(client, [{"text": 7}])
    sys.stdout.write("LangChain's JinaRerank works unchanged.\n")


def _refusal(client: Any, documents: list[Any]) -> str:
    try:
        client.rerank(documents, "Who wrote Emma?")
    except RuntimeError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main(sys.argv[1])
