"""Documents of a corpus listed, looked into and taken out one by one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from askline.corpus import Corpus

TEXTS = {
    "a/lamp": "The lamp burns. It is red.",
    "a/lamp/old": "The old lamp is out.",
    "b": "# Bread\n\nDough rises.",
}


@pytest.fixture
def corpus() -> Iterator[Corpus]:
    with Corpus.in_memory(ranker=None) as made:
        made.add_texts(TEXTS)
        yield made


def test_documents_come_by_name_a_page_at_a_time(corpus: Corpus) -> None:
    first = corpus.documents(limit=2)
    assert [each.name for each in first] == ["a/lamp", "a/lamp/old"]
    assert (first[0].sentences, first[0].characters, first[0].problem) == (2, 26, None)
    rest = corpus.documents(after="a/lamp/old")
    assert [each.name for each in rest] == ["b"]
    assert corpus.documents(after="b") == []


def test_sentences_of_a_document_slice_its_text(corpus: Corpus) -> None:
    found = corpus.sentences("a/lamp")
    assert found is not None
    assert [TEXTS["a/lamp"][each.start : each.end] for each in found] == [
        "The lamp burns.",
        "It is red.",
    ]
    assert [each.text for each in corpus.sentences("a/lamp", 1, 1) or ()] == ["It is red."]


def test_no_such_document_has_no_sentences(corpus: Corpus) -> None:
    assert corpus.sentences("a") is None


def test_only_the_document_of_that_very_name_is_taken_out(corpus: Corpus) -> None:
    assert corpus.remove_document("a") is False
    assert corpus.remove_document("a/lamp") is True
    assert corpus.remove_document("a/lamp") is False
    assert [each.name for each in corpus.documents()] == ["a/lamp/old", "b"]
