from __future__ import annotations

import pytest

from askline import load
from askline.serving.token_counts import count_tokens


@pytest.mark.parametrize("spec", ["cascade", "cosinet % 10 >> cascade", "cascade % 3"])
def test_a_cascade_is_counted_by_its_tokenizer(spec: str) -> None:
    texts = ["Who wrote Emma?", "..."]
    assert count_tokens(load(spec), texts, limit=100) == 4 + 3


@pytest.mark.parametrize("spec", ["bm25", "cosinet", "jaccard % 20 >> bm25"])
def test_other_rankers_are_counted_by_words_and_punctuation(spec: str) -> None:
    texts = ["Don't ask: who wrote Emma?", "...", "日本"]
    assert count_tokens(load(spec), texts, limit=100) == 6 + 3 + 3 + 2


@pytest.mark.parametrize("spec", ["bm25", "cascade"])
def test_counting_ends_soon_after_the_limit(spec: str) -> None:
    assert 10 < count_tokens(load(spec), ["a b " * 8] * 1_000, limit=10) < 100
