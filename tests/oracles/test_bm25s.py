"""BM25 equals the bm25s library in its Lucene variant."""

from __future__ import annotations

import bm25s
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from askline.rankers import BM25

words = st.sampled_from("ant bee cat dog elk fox gnu hen".split())


@settings(max_examples=30, deadline=None)
@given(
    st.lists(words, min_size=1, max_size=5, unique=True),
    st.lists(st.lists(words, min_size=1, max_size=9), min_size=2, max_size=8),
)
def test_bm25_equals_bm25s(question: list[str], candidates: list[list[str]]) -> None:
    retriever = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    retriever.index(candidates, show_progress=False)
    known = [word for word in question if any(word in candidate for candidate in candidates)]
    theirs = retriever.get_scores(known) if known else np.zeros(len(candidates))
    ours = BM25(k1=1.5, b=0.75).score(
        " ".join(question), [" ".join(candidate) for candidate in candidates]
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
