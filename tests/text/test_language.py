"""The language of texts."""

from __future__ import annotations

import pytest

from askline.text.language import LANGUAGE_NAMES, detect_language


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Who wrote the book that was published in 1815?"),
        ("fr", "Quel est le nom du roi ?"),
        ("fr", "Où est né Victor Hugo ?"),
        ("fr", "combien d'habitants à Paris"),
        ("fr", "Le phare fut construit en 1759 par un ingénieur du roi."),
        ("de", "Wer hat das Buch geschrieben, und wann ist es erschienen?"),
        ("es", "¿Quién escribió el libro y en qué año se publicó?"),
        ("it", "Chi ha scritto il libro e in che anno è stato stampato?"),
        ("pt", "Quem escreveu o livro e em que ano foi publicado?"),
        ("nl", "Wie schreef het boek en wanneer is het verschenen?"),
        ("ru", "Кто написал эту книгу?"),
        ("el", "Ποιος έγραψε το βιβλίο;"),
        ("ja", "誰がこの本を書きましたか"),
        ("zh", "谁写了这本书"),
        ("ko", "누가 이 책을 썼습니까"),
        ("ar", "من كتب هذا الكتاب"),
        ("th", "ใครเขียนหนังสือเล่มนี้"),
        ("he", "מי כתב את הספר הזה"),
        ("hi", "यह किताब किसने लिखी"),
    ],
)
def test_a_sentence_is_recognized(language: str, text: str) -> None:
    assert detect_language([text]) == language
    assert language in LANGUAGE_NAMES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Emma",
        "1815",
        "la la land release date",
        "le mans winner",
        "max_retry_count",
        "?!",
        "東",
    ],
)
def test_too_little_to_decide_is_english(text: str) -> None:
    assert detect_language([text, "What is it about?"]) == "en"


def test_most_of_the_texts_decide() -> None:
    french = "Le phare de la ville est le plus ancien des phares du pays."
    english = "The lighthouse of the town is the oldest of all in this country."
    assert detect_language(["lighthouse", french, french, english]) == "fr"
    assert detect_language([french, english, english, english]) == "en"
    assert detect_language([]) == "en"


def test_one_long_text_does_not_hide_the_others() -> None:
    english = "The lighthouse of the town is one of the oldest in this country. " * 100
    french = "Le phare de la ville est le plus ancien des phares de notre pays, et il est ouvert."
    assert detect_language([english, *[french] * 5]) == "fr"
