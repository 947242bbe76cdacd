from __future__ import annotations

import json
from importlib.resources import files
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from askline.errors import ModelError
from askline.phrases.phrase_model import PhraseModel

from .models import make_folder

TEXT = "Jane Austen wrote Emma. Dune is a novel of Frank Herbert, born in 1920."


def test_phrases_are_where_they_say(model: PhraseModel) -> None:
    phrases = model.extract(TEXT, limit=20)
    assert len(phrases) == 20
    assert len({(phrase.start, phrase.end) for phrase in phrases}) == 20
    for phrase in phrases:
        assert TEXT[phrase.start : phrase.end] == phrase.text
        assert phrase.log_probability <= 0


@pytest.mark.parametrize(
    "text",
    ["👍🏽 emma cafe\u0301 東京 дюна !", "a", "?", "¿…—"],
    ids=["mixed", "one", "mark", "marks"],
)
def test_odd_texts_give_exact_phrases_or_none(model: PhraseModel, text: str) -> None:
    coded = model.encode(text)
    assert len(coded.dense) == len(coded.words) == len(coded.weights) == len(coded)
    assert all(text[phrase.start : phrase.end] == phrase.text for phrase in coded.phrases)


def test_an_empty_text_has_no_phrases(model: PhraseModel) -> None:
    coded = model.encode("")
    assert len(coded) == 0
    assert coded.dense.shape == (0, 9)
    assert model.extract("  \n") == ()


def test_encoding_finds_what_extracting_finds(model: PhraseModel) -> None:
    assert model.encode(TEXT, limit=7).phrases == model.extract(TEXT, limit=7)


def test_a_phrases_vector_does_not_depend_on_the_other_candidates(model: PhraseModel) -> None:
    few, many = model.encode(TEXT, limit=3), model.encode(TEXT, limit=30)
    assert many.phrases[:3] == few.phrases
    assert many.dense[:3] == pytest.approx(few.dense, abs=1e-5)


def test_a_long_text_is_encoded_window_by_window(model: PhraseModel) -> None:
    text = f"{TEXT} " * 30
    parts = list(model.encode_windows(text, limit=10))
    assert len(parts) > 2
    assert all(len(part) == 10 for part in parts)
    assert max(phrase.end for part in parts for phrase in part.phrases) > len(text) / 2


def test_words_around_a_phrase_count_for_questions_that_have_them(model: PhraseModel) -> None:
    question = model.encode_question("who wrote emma ?")
    words = np.array([[1, 1], [1, 1]], np.int32)
    none = question.lexical(words, np.zeros((2, 2), np.float32))
    assert none.tolist() == [0, 0]
    some = question.lexical(words, np.array([[1, 0], [2, 0]], np.float32))
    assert some[1] == pytest.approx(2 * some[0])


def test_a_very_long_question_is_read_to_its_limit(model: PhraseModel) -> None:
    assert np.isfinite(model.encode_question("who wrote emma ? " * 100).dense).all()


@pytest.mark.parametrize("form", ["markers", "span"])
def test_saving_rounds_to_int8_and_no_further(tmp_path: Path, form: str) -> None:
    folder = make_folder(tmp_path / "model", form=form)
    first, again = PhraseModel.load(folder), PhraseModel.load(folder)
    assert np.array_equal(first.encode(TEXT).dense, again.encode(TEXT).dense)
    assert {file.name for file in folder.iterdir()} == {
        "README.md",
        "config.json",
        "tokenizer.json",
        "weights.safetensors",
    }


def test_a_model_without_words_adds_nothing(tmp_path: Path) -> None:
    model = PhraseModel.load(make_folder(tmp_path / "model", words=0))
    coded = model.encode(TEXT, limit=5)
    assert coded.words.shape == (5, 0)
    assert not model.encode_question("who ?").lexical(coded.words, coded.weights).any()


def test_an_incomplete_folder_is_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "size": 9}))
    with pytest.raises(ModelError, match=r"phrase.weight must be \(9, 32\), got \(8, 32\)"):
        PhraseModel.load(folder)
    (folder / "config.json").write_text(json.dumps({**config, "form": "cls"}))
    with pytest.raises(ModelError, match="must have valid sizes and a form"):
        PhraseModel.load(folder)
    (folder / "config.json").write_text(json.dumps({**config, "encoder": {"layers": 2}}))
    with pytest.raises(ModelError, match="does not describe a model"):
        PhraseModel.load(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="tokenizer.json is missing"):
        PhraseModel.load(folder)


@pytest.mark.slow
def test_ten_megabytes_in_one_paragraph_are_encoded_per_window(model: PhraseModel) -> None:
    text = "jane austen wrote emma , a novel " * 300_000
    parts = list(islice(model.encode_windows(text, limit=5), 3))
    assert [len(part) for part in parts] == [5, 5, 5]
    for part in parts:
        assert all(text[phrase.start : phrase.end] == phrase.text for phrase in part.phrases)


def test_texts_are_encoded_together_as_they_are_alone(model: PhraseModel) -> None:
    texts = [TEXT, "", f"{TEXT} " * 20, "a"]
    for text, together in zip(texts, model.encode_many(texts, limit=10), strict=True):
        alone = model.encode(text, limit=10)
        assert together.phrases == alone.phrases
        assert np.array_equal(together.dense, alone.dense)
        assert np.array_equal(together.words, alone.words)


@pytest.mark.slow
def test_the_model_that_comes_along_answers() -> None:
    folder = files("askline.models") / "shipped" / "phrases" / "config.json"
    if not folder.is_file():
        pytest.skip("no phrase model comes with this checkout")
    model = PhraseModel.load(threads=1)
    text = "Emma is a novel by Jane Austen. It was first published in December 1815."
    coded, asked = model.encode(text), model.encode_question("Who wrote Emma?")
    scores = coded.dense @ asked.dense + asked.lexical(coded.words, coded.weights)
    assert coded.phrases[int(scores.argmax())].text == "Jane Austen"


def test_a_word_longer_than_any_phrase_causes_no_numpy_warning() -> None:
    """No phrase can start at this word, because none can end in it; warnings fail the tests."""
    text = f"Key: {'qzxjkv' * 16} ends here. The lamp was lit."
    phrases = PhraseModel.load().extract(text, limit=20)
    assert {"lamp", "The lamp"} & {phrase.text for phrase in phrases}
