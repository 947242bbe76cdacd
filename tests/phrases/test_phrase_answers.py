from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from askline.errors import InputError
from askline.phrases.phrase_index import PhraseIndex, nearest_phrases, ranked_phrases
from askline.phrases.phrase_model import PhraseModel
from askline.rankers import WordOverlap
from askline.types import Span

TEXTS = {
    "austen": "Jane Austen wrote Emma. Emma is a novel.",
    "paris": "Paris is the capital of France. It is a city.",
}


@pytest.fixture
def index(tmp_path: Path, model: PhraseModel) -> PhraseIndex:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    index.add([(name, text, model.encode(text)) for name, text in TEXTS.items()])
    return index


def test_the_nearest_phrase_comes_with_its_sentence(model: PhraseModel, index: PhraseIndex) -> None:
    answers = nearest_phrases("who wrote emma ?", model, index, top_k=5)
    assert [answer.score for answer in answers] == sorted(
        (answer.score for answer in answers), reverse=True
    )
    for answer in answers:
        text = TEXTS[answer.phrase.document]
        assert text[answer.start : answer.start + len(answer.sentence)] == answer.sentence
        assert answer.start <= answer.phrase.start < answer.start + len(answer.sentence)


def test_a_ranker_orders_the_sentences(model: PhraseModel, index: PhraseIndex) -> None:
    answers = ranked_phrases("what is the capital of france", model, index, WordOverlap(), top_k=2)
    assert answers[0].sentence == "Paris is the capital of France."
    assert answers[0].phrase.document == "paris"
    assert answers[0].score >= answers[1].score


@pytest.mark.slow
def test_a_sentence_deep_in_a_long_document_is_found(tmp_path: Path, model: PhraseModel) -> None:
    index = PhraseIndex.open(tmp_path / "index", create=True)
    text = "It is a city. " * 900 + "Jane Austen wrote Emma."
    index.add([("long", text, model.encode(text))])
    for answer in nearest_phrases("who wrote emma ?", model, index, top_k=50):
        assert text[answer.start :].startswith(answer.sentence)
        assert answer.sentence in ("It is a city.", "Jane Austen wrote Emma.")


class Reading(WordOverlap):
    """Points at a sentence's first word, or at nothing."""

    def find_spans(self, question: str, texts: Sequence[str]) -> list[Span | None]:
        return [
            Span(0, text.index(" "), 3.0, 9.0 if text.startswith("It") else 1.0) for text in texts
        ]


def test_a_ranker_that_can_read_chooses_the_phrase(model: PhraseModel, index: PhraseIndex) -> None:
    question = "what is the capital of france"
    answers = ranked_phrases(question, model, index, Reading(), top_k=9)
    phrase = answers[0].phrase
    assert (phrase.text, phrase.start, phrase.end, phrase.score) == ("Paris", 0, 5, 3.0)
    others = ranked_phrases(question, model, index, Reading(), top_k=9, read=False)
    for answer, other in zip(answers, others, strict=True):
        assert (answer.phrase == other.phrase) == answer.sentence.startswith("It")


def test_every_sentence_comes_once(model: PhraseModel, index: PhraseIndex) -> None:
    answers = ranked_phrases("who wrote emma ?", model, index, WordOverlap(), top_k=100)
    places = [(answer.phrase.document, answer.start) for answer in answers]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("question", ["", "  \n"], ids=["empty", "white"])
def test_an_empty_question_is_refused(
    model: PhraseModel, index: PhraseIndex, question: str
) -> None:
    with pytest.raises(InputError, match="The question must not be empty"):
        nearest_phrases(question, model, index)
    with pytest.raises(InputError, match="The question must not be empty"):
        ranked_phrases(question, model, index, WordOverlap())
    with pytest.raises(InputError, match="The question must not be empty"):
        model.encode_question(question)


def test_an_empty_index_has_no_answer(tmp_path: Path, model: PhraseModel) -> None:
    empty = PhraseIndex.open(tmp_path / "empty", create=True)
    assert nearest_phrases("who ?", model, empty) == []
    assert ranked_phrases("who ?", model, empty, WordOverlap()) == []
    with pytest.raises(InputError, match="retrieved must be at least 1"):
        ranked_phrases("who ?", model, empty, WordOverlap(), retrieved=0)
