from __future__ import annotations

import re

from askline.demo import documents
from askline.text.sentences import split_sentences


def test_documents_are_sorted_by_name() -> None:
    names = [name for name, _ in documents()]
    assert names == sorted(set(names))
    assert "tides.txt" in names
    assert all(re.fullmatch(r"[a-z-]+\.(txt|md)", name) for name in names)


def test_documents_are_a_few_pages_of_prose() -> None:
    pages = documents()
    assert 5 <= len(pages) <= 8
    for name, text in pages:
        assert 250 <= len(text.split()) <= 500, name


def test_documents_split_into_a_title_and_complete_sentences() -> None:
    for name, text in documents():
        title, *sentences = [text[start:end] for start, end in split_sentences(text)]
        assert title == text.splitlines()[0], name
        for sentence in sentences:
            assert re.match(r"[A-Z]", sentence), sentence
            assert re.search(r"[.?]\Z", sentence), sentence
            assert "\n" not in sentence, sentence
