from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError, UnknownNameError
from askline.evaluation import exact_match, f1, normalize_phrase, score_phrases
from askline.evaluation.phrase_scores import Language


@pytest.mark.parametrize(
    ("language", "phrase", "normal"),
    [
        ("en", "The  Old\tMill.", "old mill"),
        ("en", "an apple a day", "apple day"),
        ("en", "Theatre of Anhalt", "theatre of anhalt"),
        ("en", "U.S. $5-6", "us 56"),
        ("en", "“quoted”", "“quoted”"),
        ("en", "le Havre", "le havre"),
        ("en", "the", ""),
        ("fr", "L'eau de la Seine", "eau de seine"),
        ("fr", "l’Hôtel des Invalides", "hôtel invalides"),
        ("fr", "au musée du Louvre", "musée louvre"),
        ("fr", "« Les Misérables »", "misérables"),
        ("fr", "aujourd'hui", "aujourdhui"),
        ("fr", "d'Orléans", "dorléans"),
        ("fr", "une lampe, un lit", "lampe lit"),
        ("fr", "là-bas", "làbas"),
        ("fr", "l'e\u0301cole", "école"),
        ("fr", "the a", "the a"),
        ("fr", "", ""),
    ],
)
def test_normalize_phrase(language: Language, phrase: str, normal: str) -> None:
    assert normalize_phrase(phrase, language=language) == normal


@pytest.mark.parametrize(
    ("language", "prediction", "golds", "exact", "overlap"),
    [
        ("en", "the red fox", ["Red fox!"], 1, 1),
        ("en", "a quick red fox", ["the red fox"], 0, 2 * 2 / (3 + 2)),
        ("en", "blue whale", ["red fox"], 0, 0),
        ("en", "fox", ["red fox", "fox"], 1, 1),
        ("en", "red red fox", ["red fox fox"], 0, 2 * 2 / 6),
        ("en", "fox red", ["red fox"], 0, 1),
        ("en", "", [], 1, 1),
        ("en", "fox", [], 0, 0),
        ("en", "", ["fox"], 0, 0),
        ("en", "the", [], 1, 1),
        ("en", "fox", ["the", "fox"], 1, 1),
        ("en", "", ["the", "fox"], 0, 0),
        ("en", "an", ["the"], 1, 1),
        ("fr", "l'Académie", ["Académie"], 1, 1),
        ("fr", "la rivière d’argent", ["une rivière"], 0, 2 * 1 / (2 + 1)),
        ("fr", "du sel", ["des sels"], 0, 0),
    ],
    ids=[
        "articles and marks",
        "part",
        "nothing shared",
        "best gold",
        "repeated tokens",
        "order",
        "no answer, none said",
        "no answer, one said",
        "answer, none said",
        "said nothing but an article",
        "empty gold left out",
        "empty gold is no answer",
        "only empty golds",
        "fr elision",
        "fr part",
        "fr plural",
    ],
)
def test_exact_match_and_f1_of_examples(
    language: Language, prediction: str, golds: list[str], exact: float, overlap: float
) -> None:
    assert exact_match(prediction, golds, language=language) == exact
    assert f1(prediction, golds, language=language) == pytest.approx(overlap)


@given(
    st.text(max_size=20), st.lists(st.text(max_size=20), max_size=3), st.sampled_from(["en", "fr"])
)
def test_f1_is_a_fraction_and_at_least_exact_match(
    prediction: str, golds: list[str], language: Language
) -> None:
    assert (
        exact_match(prediction, golds, language=language)
        <= f1(prediction, golds, language=language)
        <= 1
    )


def test_score_phrases_reports_percent() -> None:
    golds = {"q1": ["red fox"], "q2": [], "q3": ["owl"]}
    scores = score_phrases({"q1": "the fox", "q2": "", "q3": "", "extra": "x"}, golds)
    assert scores.exact_match.tolist() == [0, 1, 0]
    assert scores.f1.tolist() == [pytest.approx(2 / 3), 1, 0]
    assert scores.percent == {"EM": pytest.approx(100 / 3), "F1": pytest.approx(500 / 9)}


def test_score_phrases_needs_a_prediction_per_question() -> None:
    with pytest.raises(InputError, match=r"got none for 1: 'q2'\. Predict \"\""):
        score_phrases({"q1": "fox"}, {"q1": ["fox"], "q2": []})
    with pytest.raises(InputError, match="at least one"):
        score_phrases({}, {})


def test_unknown_language_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="No language 'de'. Known: en, fr"):
        f1("a", ["b"], language=cast(Language, "de"))
