"""Passages written to a server that answers what the engines document, by both clients."""

from __future__ import annotations

from contextlib import closing

import pytest

from askline.corpus import Corpus, answer, connect
from askline.corpus.passages import split_passages
from askline.errors import CorpusError, InputError

from .engine import Engine

PAGES = {
    "rock": "The rock is far out. Its lighthouse was lit in 1698.\n\n" + "A storm took it. " * 80,
    "bread": "Yeast makes dough rise.",
}


@pytest.fixture(params=["opensearch", "elasticsearch"])
def url(request: pytest.FixtureRequest, engine: Engine) -> str:
    pytest.importorskip({"opensearch": "opensearchpy"}.get(request.param, request.param))
    engine.types = {"text": "text", "title": "text"}
    return f"{request.param}://127.0.0.1:{engine.port}/passages"


def test_an_engine_gets_the_passages_of_the_index(url: str, engine: Engine) -> None:
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(PAGES)
        written = corpus.export_passages(url)
        expected = {
            f"{name}#{first}": (first, last)
            for name in PAGES
            for first, last, _ in split_passages(
                corpus._store.sentences(corpus._store.document_id(name) or 0, 0, 1000)
            )
        }
    stored = engine.indexes["passages"]
    assert {name: (each["first"], each["last"]) for name, each in stored.items()} == expected
    assert written == len(expected) >= 3
    assert stored["bread#0"]["text"] == PAGES["bread"]
    assert {each["document"] for each in stored.values()} == set(PAGES)
    create = next(each for each in engine.asked if each.path == "/passages" and each.body)
    assert create.body["mappings"]["properties"]["document"] == {"type": "keyword"}
    with closing(connect(url)) as retriever:
        best = answer("When was the lighthouse lit?", retriever).answers[0]
    assert (best.document, best.text) == ("rock#0", "Its lighthouse was lit in 1698.")


def test_a_second_load_deletes_what_is_gone(url: str, engine: Engine) -> None:
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(PAGES)
        corpus.export_passages(url)
        corpus.remove(["rock"])
        assert corpus.export_passages(url) == 1
    assert list(engine.indexes["passages"]) == ["bread#0"]


def test_a_refused_passage_is_an_error_that_names_it(url: str, engine: Engine) -> None:
    engine.refused = "bread#0"
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(PAGES)
        with pytest.raises(CorpusError, match="refused 1 passages, the first of them 'bread#0'"):
            corpus.export_passages(url)
    assert not any(each.path.endswith("_delete_by_query") for each in engine.asked)


def test_other_places_are_refused() -> None:
    with Corpus.in_memory(ranker=None) as corpus, pytest.raises(InputError, match="opensearch://"):
        corpus.export_passages("postgresql://localhost/library")
