from __future__ import annotations

import numpy as np
import pytest

from askline.engine.word_matches import Lexicon, pair_channels
from askline.errors import UnknownNameError
from askline.models.light_config import CHANNELS, check_channels

# Words 1 and 2 are at right angles, word 3 lies between them, word 4 has no vector.
LEXICON = Lexicon.of(
    np.array([[2, 0], [0, 5], [3, 3], [0, 0]], np.float32),
    np.array([0.1, 0.2, 0.3, 1.0], np.float32),
)
QUESTION = np.array([1, 4])
WORDS, STARTS = np.array([1, 3, 2, 4, 0]), np.array([0, 2, 4])  # "1 3", "2 4", ""


def _channel(name: str) -> tuple[list[list[float]], list[float]]:
    asked, said = pair_channels([name], LEXICON, QUESTION, WORDS, STARTS)
    return np.round(asked[..., 0], 3).tolist(), np.round(said[:, 0], 3).tolist()


def test_related_is_the_highest_cosine_to_the_other_text() -> None:
    asked, said = _channel("related")
    np.testing.assert_allclose(asked, [[1, 0], [0, 0], [0, 0]], atol=1e-3)
    np.testing.assert_allclose(said, [1, 0.707, 0, 0, 0], atol=1e-3)


def test_exact_marks_the_very_word_known_or_not() -> None:
    assert _channel("exact") == ([[1, 0], [0, 1], [0, 0]], [1, 0, 0, 1, 0])


def test_idf_is_that_of_the_word_whatever_the_other_text() -> None:
    asked, said = _channel("idf")
    np.testing.assert_allclose(asked, [[0.1, 1.0]] * 3, atol=1e-3)
    np.testing.assert_allclose(said, [0.1, 0.3, 0.2, 1.0, 0.0], atol=1e-3)


def test_exact_idf_is_the_product() -> None:
    exact, idf, both = (_channel(name) for name in ("exact", "idf", "exact_idf"))
    np.testing.assert_allclose(both[0], np.multiply(exact[0], idf[0]))
    np.testing.assert_allclose(both[1], np.multiply(exact[1], idf[1]))


def test_the_zero_word_equals_nothing_not_even_itself() -> None:
    asked, said = pair_channels(["exact"], LEXICON, np.array([0]), np.array([0]), np.array([0]))
    assert (asked.item(), said.item()) == (0.0, 0.0)


def test_all_channels_stand_in_the_order_asked_for() -> None:
    asked, said = pair_channels(CHANNELS, LEXICON, QUESTION, WORDS, STARTS)
    assert (asked.shape, said.shape) == ((3, 2, 4), (5, 4))
    for column, name in enumerate(CHANNELS):
        alone = pair_channels([name], LEXICON, QUESTION, WORDS, STARTS)
        np.testing.assert_array_equal(asked[..., column], alone[0][..., 0])
        np.testing.assert_array_equal(said[:, column], alone[1][:, 0])


def test_no_channels_give_empty_columns() -> None:
    asked, said = pair_channels([], LEXICON, QUESTION, WORDS, STARTS)
    assert (asked.shape, said.shape) == ((3, 2, 0), (5, 0))


def test_unknown_channel_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="No channel 'relate'.*Did you mean 'related'"):
        check_channels(["exact", "relate"])
