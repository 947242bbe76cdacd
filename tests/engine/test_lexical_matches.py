from __future__ import annotations

import numpy as np
import pytest

from askline.engine.lexical_matches import LexicalMatches, Lexicon, TokenizedList, pair_channels
from askline.errors import UnknownNameError
from askline.models.light_config import CHANNELS, check_channels
from askline.models.word_vectors import WordVectors

WORDS = ("the", "of", "sea", "ocean", "tower")
ROWS = np.array([[1, 0, 0], [0, 1, 0], [0, 0.6, 0.8], [0, 0, 1], [0.6, 0.8, 0]], np.float32)
VECTORS = WordVectors.from_rows(WORDS, ROWS, unknown="zero")


def _look(question: str, *candidates: str) -> tuple[TokenizedList, LexicalMatches]:
    listing = TokenizedList.of(question, candidates, VECTORS)
    return listing, LexicalMatches.of(listing)


def test_the_questions_words_come_first() -> None:
    listing, _ = _look("The sea, the sea", "A tower", "sea")
    assert listing.distinct == ["the", "sea", "a", "tower"]
    assert listing.question_size == 2
    assert listing.question.tolist() == [0, 1, 0, 1]
    assert listing.words.tolist() == [2, 3, 1]
    assert listing.owner.tolist() == [0, 0, 1]
    assert listing.starts.tolist() == [0, 2]


def test_best_is_the_most_related_word() -> None:
    _, matches = _look("sea", "the ocean", "the sea", "the")
    assert matches.best[:, 0] == pytest.approx([0.8, 1.0, 0.0], abs=1e-6)
    assert matches.counts[:, 0].tolist() == [0, 1, 0]


def test_only_the_same_word_has_relatedness_1() -> None:
    twins = WordVectors.from_rows(("sea", "ocean"), np.array([[1, 0], [1, 0]], np.float32))
    matches = LexicalMatches.of(TokenizedList.of("sea", ["ocean", "sea"], twins))
    assert matches.best[:, 0] == pytest.approx([0.99, 1.0])


@pytest.mark.parametrize(
    ("question_word", "candidate_word", "related"),
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
def test_words_with_a_common_prefix_are_related(
    question_word: str, candidate_word: str, related: float
) -> None:
    _, matches = _look(question_word, candidate_word)
    assert matches.best[0, 0] == pytest.approx(related, abs=1e-6)


def test_scarcity_grows_with_the_candidates_that_lack_the_word() -> None:
    _, matches = _look("the sea tower", "the sea", "the", "the ocean")
    everywhere, once, nowhere = matches.scarcity
    assert everywhere < once < nowhere


@pytest.mark.parametrize("question", ["", "?!"], ids=["empty", "symbols"])
def test_texts_without_words_match_nothing(question: str) -> None:
    listing, matches = _look(question, "", "sea", "…")
    assert listing.question_size == 1
    assert not matches.best.any()
    assert not matches.counts.any()
    assert np.isfinite(matches.scarcity).all()


# Words 1 and 2 are at right angles, word 3 lies between them, word 4 has no vector.
LEXICON = Lexicon.of(
    np.array([[2, 0], [0, 5], [3, 3], [0, 0]], np.float32),
    np.array([0.1, 0.2, 0.3, 1.0], np.float32),
)
QUESTION = np.array([1, 4])
LEXICON_WORDS, STARTS = np.array([1, 3, 2, 4, 0]), np.array([0, 2, 4])  # "1 3", "2 4", ""


def _channel(name: str) -> tuple[list[list[float]], list[float]]:
    of_question, of_candidates = pair_channels([name], LEXICON, QUESTION, LEXICON_WORDS, STARTS)
    return np.round(of_question[..., 0], 3).tolist(), np.round(of_candidates[:, 0], 3).tolist()


def test_related_is_the_highest_cosine_to_the_other_text() -> None:
    of_question, of_candidates = _channel("related")
    np.testing.assert_allclose(of_question, [[1, 0], [0, 0], [0, 0]], atol=1e-3)
    np.testing.assert_allclose(of_candidates, [1, 0.707, 0, 0, 0], atol=1e-3)


def test_exact_marks_the_same_word_known_or_unknown() -> None:
    assert _channel("exact") == ([[1, 0], [0, 1], [0, 0]], [1, 0, 0, 1, 0])


def test_idf_does_not_depend_on_the_other_text() -> None:
    of_question, of_candidates = _channel("idf")
    np.testing.assert_allclose(of_question, [[0.1, 1.0]] * 3, atol=1e-3)
    np.testing.assert_allclose(of_candidates, [0.1, 0.3, 0.2, 1.0, 0.0], atol=1e-3)


def test_exact_idf_is_the_product() -> None:
    exact, idf, both = (_channel(name) for name in ("exact", "idf", "exact_idf"))
    np.testing.assert_allclose(both[0], np.multiply(exact[0], idf[0]))
    np.testing.assert_allclose(both[1], np.multiply(exact[1], idf[1]))


def test_the_zero_word_matches_no_word_not_even_itself() -> None:
    of_question, of_candidates = pair_channels(
        ["exact"], LEXICON, np.array([0]), np.array([0]), np.array([0])
    )
    assert (of_question.item(), of_candidates.item()) == (0.0, 0.0)


def test_channels_have_the_requested_order() -> None:
    of_question, of_candidates = pair_channels(CHANNELS, LEXICON, QUESTION, LEXICON_WORDS, STARTS)
    assert (of_question.shape, of_candidates.shape) == ((3, 2, 4), (5, 4))
    for column, name in enumerate(CHANNELS):
        alone = pair_channels([name], LEXICON, QUESTION, LEXICON_WORDS, STARTS)
        np.testing.assert_array_equal(of_question[..., column], alone[0][..., 0])
        np.testing.assert_array_equal(of_candidates[:, column], alone[1][:, 0])


def test_no_channels_give_empty_columns() -> None:
    of_question, of_candidates = pair_channels([], LEXICON, QUESTION, LEXICON_WORDS, STARTS)
    assert (of_question.shape, of_candidates.shape) == ((3, 2, 0), (5, 0))


def test_unknown_channel_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="No channel 'relate'.*Did you mean 'related'"):
        check_channels(["exact", "relate"])
