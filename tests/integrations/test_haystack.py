"""Haystack: the ranker and the reader in a real pipeline, dumped and loaded."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

import askline
from haystack_integrations.components.rankers.askline import AsklineRanker
from haystack_integrations.components.readers.askline import AsklineReader

from .conftest import DOCUMENTS, QUESTION, ROOT, TEXTS


def documents() -> list[Document]:
    return [
        Document(id=f"d{at}", content=text or None, meta={"page": at})
        for at, text in enumerate(TEXTS)
    ]


def test_documents_are_ordered_as_by_rank() -> None:
    ranker = AsklineRanker()
    ranker.warm_up()
    found = ranker.run(query=QUESTION, documents=documents())["documents"]
    hits = askline.load().rank(QUESTION, TEXTS)
    assert [each.meta["page"] for each in found] == [hit.index for hit in hits]
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_the_documents_of_the_caller_are_not_changed() -> None:
    given = documents()
    before = deepcopy(given)
    AsklineRanker(ranker="jaccard", top_k=2).run(query=QUESTION, documents=given)
    AsklineReader(ranker="jaccard").run(query=QUESTION, documents=given)
    assert given == before


def test_async_gives_the_same() -> None:
    ranker, reader = AsklineRanker(), AsklineReader()
    asked = {"query": QUESTION, "documents": documents(), "top_k": 2}
    assert asyncio.run(ranker.run_async(**asked)) == ranker.run(**asked)
    assert asyncio.run(reader.run_async(**asked)) == reader.run(**asked)


def test_top_k_and_threshold() -> None:
    ranker = AsklineRanker(score_threshold=0.5)
    [best] = ranker.run(query=QUESTION, documents=documents())["documents"]
    assert best.meta["page"] == 2
    assert len(AsklineRanker(top_k=3).run(query=QUESTION, documents=documents())["documents"]) == 3
    with pytest.raises(ValueError, match="top_k"):
        AsklineRanker(top_k=0)


def test_no_documents() -> None:
    assert AsklineRanker().run(query=QUESTION, documents=[]) == {"documents": []}
    [only] = AsklineReader().run(query=QUESTION, documents=[])["answers"]
    assert (only.data, only.score) == (None, 1.0)


def test_answers_point_into_their_documents() -> None:
    given = [Document(content=text, meta={"title": name}) for name, text in DOCUMENTS.items()]
    answers = AsklineReader(top_k=4).run(query=QUESTION, documents=given)["answers"]
    assert answers[0].data == "Jane Austen"
    for answer in answers:
        assert 0 <= answer.score <= 1
        if answer.data is None:
            continue
        assert answer.document in given
        span, inside = answer.document_offset, answer.context_offset
        assert answer.document.content[span.start : span.end] == answer.data
        assert answer.context[inside.start : inside.end] == answer.data
    assert len(answers) == 5
    assert [answer.score for answer in answers] == sorted(
        (answer.score for answer in answers), reverse=True
    )


def test_no_answer_comes_first_if_nothing_answers() -> None:
    given = [Document(content=text) for text in DOCUMENTS.values()]
    question = "What does zinc cost in Zanzibar?"
    first = AsklineReader().run(query=question, documents=given)["answers"][0]
    assert first.data is None
    assert first.score > 0.5
    without = AsklineReader(no_answer=False).run(query=question, documents=given)["answers"]
    assert all(answer.data is not None for answer in without)


def pipeline() -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in DOCUMENTS.values()])
    made = Pipeline()
    made.add_component("retriever", InMemoryBM25Retriever(store))
    made.add_component("ranker", AsklineRanker(top_k=2))
    made.add_component("reader", AsklineReader(top_k=1, no_answer=False))
    made.connect("retriever.documents", "ranker.documents")
    made.connect("ranker.documents", "reader.documents")
    return made


def test_a_pipeline_answers() -> None:
    inputs = {name: {"query": QUESTION} for name in ("retriever", "ranker", "reader")}
    [answer] = pipeline().run(inputs)["reader"]["answers"]
    assert answer.data == "Jane Austen"


def test_a_dumped_pipeline_loads_without_an_allow_list() -> None:
    original = pipeline()
    dumped = original.dumps()
    assert "haystack_integrations.components.rankers.askline.AsklineRanker" in dumped
    loaded = Pipeline.loads(dumped)
    assert loaded.to_dict()["components"] == original.to_dict()["components"]
    made = Pipeline()
    made.add_component("reader", AsklineReader(top_k=1, no_answer=False))
    copy = Pipeline.loads(made.dumps())
    asked = {"query": QUESTION, "documents": [Document(content=DOCUMENTS["emma"])]}
    assert copy.run({"reader": asked})["reader"]["answers"][0].data == "Jane Austen"


def test_the_namespace_is_shared_with_other_packages(tmp_path: Path) -> None:
    """Another package brings the same folders; both can be imported, in either order."""
    other = tmp_path / "haystack_integrations" / "components" / "rankers" / "other"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("name = 'other'\n", "utf-8")
    for path in ([tmp_path, ROOT], [ROOT, tmp_path]):
        code = (
            f"import sys; sys.path[:0] = {[str(each) for each in path]!r}\n"
            "from haystack_integrations.components.rankers.other import name\n"
            "from haystack_integrations.components.rankers.askline import AsklineRanker\n"
            "from haystack_integrations.components.readers.askline import AsklineReader\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
    assert not list((ROOT / "haystack_integrations").rglob("__init__.py"))


def test_a_missing_package_names_the_install_command(
    error_without: Callable[[str, str], str],
) -> None:
    message = error_without("haystack", "haystack_integrations.components.rankers.askline")
    assert "Haystack integration needs more packages. Run: " in message
    assert "[haystack]" in message


def test_the_docs_run(run_docs: Callable[[str], None]) -> None:
    run_docs("Haystack")
