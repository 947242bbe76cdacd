from __future__ import annotations

import numpy as np
import pytest

from askline.engine.word_matches import Listing, Matches
from askline.models.word_vectors import WordVectors

WORDS = ("the", "of", "sea", "ocean", "tower")
ROWS = np.array([[1, 0, 0], [0, 1, 0], [0, 0.6, 0.8], [0, 0, 1], [0.6, 0.8, 0]], np.float32)
VECTORS = WordVectors.from_rows(WORDS, ROWS, unknown="zero")


def _look(question: str, *candidates: str) -> tuple[Listing, Matches]:
    listing = Listing.of(question, candidates, VECTORS)
    return listing, Matches.of(listing)


def test_the_questions_words_come_first() -> None:
    listing, _ = _look("The sea, the sea", "A tower", "sea")
    assert listing.distinct == ["the", "sea", "a", "tower"]
    assert listing.asked == 2
    assert listing.question.tolist() == [0, 1, 0, 1]
    assert listing.row.tolist() == [2, 3, 1]
    assert listing.owner.tolist() == [0, 0, 1]
    assert listing.starts.tolist() == [0, 2]


def test_best_is_the_most_related_word() -> None:
    _, matches = _look("sea", "the ocean", "the sea", "the")
    assert matches.best[:, 0] == pytest.approx([0.8, 1.0, 0.0], abs=1e-6)
    assert matches.counts[:, 0].tolist() == [0, 1, 0]


def test_only_the_very_word_is_related_by_one() -> None:
    twins = WordVectors.from_rows(("sea", "ocean"), np.array([[1, 0], [1, 0]], np.float32))
    matches = Matches.of(Listing.of("sea", ["ocean", "sea"], twins))
    assert matches.best[:, 0] == pytest.approx([0.99, 1.0])


@pytest.mark.parametrize(
    ("asked", "said", "related"),
    [
        ("olmecs", "olmec", 0.9 * 5 / 6),
        ("garnishments", "garnishment", 0.9 * 11 / 12),
        ("guis", "gui", 0.9 * 3 / 4),
        ("station", "stationary", 0.9 * 7 / 10),
        ("start", "stop", 0.0),
        ("1989", "1988", 0.0),
        ("be", "bee", 0.0),
    ],
)
def test_words_that_begin_alike_are_related(asked: str, said: str, related: float) -> None:
    _, matches = _look(asked, said)
    assert matches.best[0, 0] == pytest.approx(related, abs=1e-6)


def test_a_word_is_scarce_by_how_many_candidates_lack_it() -> None:
    _, matches = _look("the sea tower", "the sea", "the", "the ocean")
    everywhere, once, nowhere = matches.scarcity
    assert everywhere < once < nowhere


@pytest.mark.parametrize("question", ["", "?!"], ids=["empty", "symbols"])
def test_texts_without_words_meet_nothing(question: str) -> None:
    listing, matches = _look(question, "", "sea", "…")
    assert listing.asked == 1
    assert not matches.best.any()
    assert not matches.counts.any()
    assert np.isfinite(matches.scarcity).all()
