from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from askline.errors import InputError, ModelError, UnknownNameError
from askline.models.word_vectors import WordVectors

WORDS = ("the", "sea", "tower")
ROWS = np.array([[0.1, 0.0, 0.2], [1.0, -2.0, 0.5], [0.0, 3.0, 4.0]], np.float32)


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors.from_rows(WORDS, ROWS, name="three")


def test_of_gives_one_row_per_word_in_order(vectors: WordVectors) -> None:
    assert np.array_equal(vectors.of(["tower", "the", "tower"]), ROWS[[2, 0, 2]])
    assert vectors.of([]).shape == (0, 3)


def test_an_unknown_word_is_similar_only_to_itself() -> None:
    rng = np.random.default_rng(0)
    wide = WordVectors.from_rows(("known",), rng.normal(size=(1, 256)).astype(np.float32))
    one, again, other = wide.of(["zzyzx", "zzyzx", "zzyzy"])
    assert np.array_equal(one, again)
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-6)
    assert abs(float(one @ other)) < 0.25


def test_hashed_vectors_never_change(vectors: WordVectors) -> None:
    # Models are trained with them: another hash would break the weights.
    assert vectors.of(["zzyzx"])[0] == pytest.approx([0.0853, -0.9873, 0.1341], abs=1e-4)


def test_unknown_words_can_be_zero() -> None:
    zero = WordVectors.from_rows(WORDS, ROWS, unknown="zero")
    assert not zero.of(["nowhere"]).any()


def test_rarity_grows_with_the_rank_and_is_1_for_unknown_words(vectors: WordVectors) -> None:
    idf = vectors.idf(["the", "sea", "tower", "nowhere"])
    assert idf[0] == 0
    assert 0 < idf[1] < idf[2] == idf[3] == 1


def test_quantized_vectors_are_close(vectors: WordVectors) -> None:
    small = vectors.quantized()
    assert small.rows.dtype == np.int8
    assert small.of(WORDS) == pytest.approx(ROWS, abs=4 / 254)


@pytest.mark.parametrize("small", [False, True], ids=["float32", "int8"])
def test_save_and_load_give_the_same_vectors(
    vectors: WordVectors, tmp_path: Path, small: bool
) -> None:
    saved = vectors.quantized() if small else vectors
    saved.save(tmp_path / "v.safetensors")
    loaded = WordVectors.load(tmp_path / "v.safetensors")
    words = [*WORDS, "nowhere"]
    assert np.array_equal(loaded.of(words), saved.of(words))
    assert np.array_equal(loaded.idf(words), saved.idf(words))
    assert (loaded.words, loaded.unknown, loaded.name) == (WORDS, "hashed", "three")
    assert str(loaded) == str(saved)


def test_load_errors_say_what_is_wrong(vectors: WordVectors, tmp_path: Path) -> None:
    path = tmp_path / "v.safetensors"
    with pytest.raises(ModelError, match="No word vectors at"):
        WordVectors.load(path)
    vectors.save(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ModelError, match="must be a word-vector file"):
        WordVectors.load(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a", "b"), "Expected rows, scales and rarities for 2 words"),
        (("a", "a", "b"), "Words must be distinct"),
    ],
    ids=["count", "repeated"],
)
def test_words_and_rows_must_match(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WordVectors.from_rows(words, ROWS)


def test_the_unknown_rule_is_one_of_two() -> None:
    with pytest.raises(UnknownNameError, match="No rule for unknown words 'drop'"):
        WordVectors.from_rows(WORDS, ROWS, unknown="drop")  # type: ignore[arg-type]
