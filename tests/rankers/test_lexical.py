from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError, UnknownNameError
from askline.rankers import (
    BM25,
    IdfOverlap,
    Jaccard,
    OriginalOrder,
    RandomOrder,
    WordOverlap,
    WordOverlapThenOrder,
)

QUESTION = "Who painted the old bridge?"
CANDIDATES = [
    "The bridge is old.",  # the, bridge, old
    "Nobody knows.",
    "The old bridge was painted by Monet.",  # the, old, bridge, painted
    "Old is the bridge.",  # the, bridge, old
]


def test_original_order_scores_reciprocal_ranks() -> None:
    assert OriginalOrder().score("?", ["a", "b", "c"]).tolist() == [1, 1 / 2, 1 / 3]


@pytest.mark.parametrize(
    ("ties", "order"), [("original", [2, 0, 3, 1]), ("reversed", [2, 3, 0, 1])]
)
def test_word_overlap_counts_distinct_shared_words(ties: str, order: list[int]) -> None:
    ranker = WordOverlap(ties=ties)  # type: ignore[arg-type]
    assert [hit.index for hit in ranker.rank(QUESTION, CANDIDATES)] == order
    assert np.floor(ranker.score(QUESTION, CANDIDATES)).tolist() == [3, 0, 4, 3]


def test_word_overlap_breaks_ties_either_way_over_seeds() -> None:
    winners = {WordOverlap(seed=seed).rank("a", ["a b", "a c"])[0].index for seed in range(20)}
    assert winners == {0, 1}


def test_word_overlap_refuses_an_unknown_tie_rule() -> None:
    with pytest.raises(UnknownNameError, match="No tie rule 'orignal'.*Did you mean 'original'"):
        WordOverlap(ties="orignal")  # type: ignore[arg-type]


def test_overlap_then_order_keeps_ties_in_order() -> None:
    assert [hit.index for hit in WordOverlapThenOrder().rank(QUESTION, CANDIDATES)] == [2, 0, 3, 1]


def test_idf_overlap_prefers_the_rare_word() -> None:
    candidates = ["the old", "the bridge", "the old", "the old"]
    assert IdfOverlap().rank("the old bridge", candidates)[0].index == 1


def test_jaccard_is_shared_over_either() -> None:
    assert Jaccard().score("a b c", ["a b", "a b c", "x", ""]).tolist() == [2 / 3, 1, 0, 0]


def test_jaccard_of_texts_without_words_is_zero() -> None:
    assert Jaccard().score("?", ["!", ""]).tolist() == [0, 0]


def test_random_order_depends_on_seed_and_question_alone() -> None:
    texts = [str(number) for number in range(50)]
    one = [hit.index for hit in RandomOrder(seed=1).rank("q", texts)]
    assert one == [hit.index for hit in RandomOrder(seed=1).rank("q", texts)]
    assert one != [hit.index for hit in RandomOrder(seed=2).rank("q", texts)]
    assert one != [hit.index for hit in RandomOrder(seed=1).rank("r", texts)]


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_scores_are_the_same_in_every_process(hash_seed: str) -> None:
    program = (
        "import askline; print([h.score for s in ('random', 'wo', 'idf-overlap', 'bm25')"
        f" for h in askline.load(s).rank({QUESTION!r}, {CANDIDATES!r})])"
    )
    other = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    rankers = [RandomOrder(), WordOverlap(), IdfOverlap(), BM25()]
    here = [hit.score for ranker in rankers for hit in ranker.rank(QUESTION, CANDIDATES)]
    assert other.stdout.strip() == str(here)


words = st.sampled_from("ant bee cat dog elk fox".split())
texts = st.lists(words, max_size=8).map(" ".join)


@given(
    st.lists(words, min_size=1, max_size=5).map(" ".join),
    st.lists(texts, min_size=1, max_size=8),
    st.sampled_from([(1.5, 0.75), (0.9, 0.4), (2.0, 0.0), (1.2, 1.0)]),
)
def test_bm25_equals_the_formula_written_out(
    question: str, candidates: list[str], parameters: tuple[float, float]
) -> None:
    k1, b = parameters
    said = [text.split() for text in candidates]
    average = max(sum(map(len, said)) / len(said), 1)
    expected = []
    for own in said:
        total = 0.0
        for word in question.split():
            df = sum(word in other for other in said)
            idf = np.log(1 + (len(said) - df + 0.5) / (df + 0.5))
            tf = own.count(word)
            total += idf * tf / (tf + k1 * (1 - b + b * len(own) / average)) if tf else 0
        expected.append(total)
    np.testing.assert_allclose(BM25(k1=k1, b=b).score(question, candidates), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"k1": -1}, "k1 must be at least 0, got -1"), ({"b": 1.5}, "b must be between 0 and 1")],
)
def test_bm25_refuses_parameters_out_of_range(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BM25(**options)
