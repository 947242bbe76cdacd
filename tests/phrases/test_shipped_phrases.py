"""The phrase models that come along."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import numpy as np
import pytest

import askline.models
from askline.errors import UnknownNameError
from askline.phrases.phrase_model import PhraseModel

SHIPPED = Path(askline.models.__file__).parent / "shipped"
FOLDER = SHIPPED / "phrases"
TEXT = (
    "The Firth bridge was opened in 1890 by the Prince of Wales. "
    "It was designed by John Fowler and Benjamin Baker and is 2,467 metres long."
)


@pytest.fixture(scope="module")
def model() -> PhraseModel:
    return PhraseModel.load()


def test_its_size() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 35_000_000


def test_its_card_names_the_data_and_their_licences() -> None:
    card = (FOLDER / "README.md").read_text("utf-8")
    for word in ("SQuADShifts", "CC BY 4.0", "CC BY-SA 4.0", "askline train phrases"):
        assert word in card


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When was the bridge opened?", "1890"),
        ("How long is the bridge?", "2,467 metres"),
        ("Who designed the bridge?", "John Fowler and Benjamin Baker"),
    ],
    ids=["when", "how long", "who"],
)
def test_it_answers(model: PhraseModel, question: str, answer: str) -> None:
    coded = model.encode(TEXT)
    asked = model.encode_question(question)
    scores = coded.dense @ asked.dense + asked.lexical(coded.words, coded.weights)
    best = coded.phrases[int(np.argmax(scores))]
    assert best.text == answer
    assert TEXT[best.start : best.end] == answer


def test_the_card_of_the_french_one_names_the_data_and_their_licences() -> None:
    card = (SHIPPED / "phrases-fr" / "README.md").read_text("utf-8")
    for word in ("SQuADShifts", "CC BY 4.0", "CC BY-SA 4.0", "PIAF", "cascade-fr"):
        assert word in card


def test_the_french_one_answers() -> None:
    text = (
        "Le viaduc de Garabit a été construit par Gustave Eiffel entre 1880 et 1884. "
        "Il franchit les gorges de la Truyère, et sa longueur est de 565 mètres."
    )
    model = PhraseModel.load(language="fr", threads=1)
    coded = model.encode(text)
    asked = model.encode_question("Qui a construit le viaduc de Garabit ?")
    scores = coded.dense @ asked.dense + asked.lexical(coded.words, coded.weights)
    assert coded.phrases[int(np.argmax(scores))].text == "Gustave Eiffel"


def test_french_candidates_differ_by_more_than_an_article() -> None:
    text = "Le viaduc de Garabit, construit par Gustave Eiffel, franchit la Truyère (en Auvergne)."
    found = PhraseModel.load(language="fr", threads=1).extract(text)
    places = {(phrase.start, phrase.end) for phrase in found}
    assert len({start for start, end in places if text[start:end].endswith("viaduc")}) == 1
    assert len({start for start, end in places if text[start:end].endswith("Truyère")}) >= 1
    for start, end in places:  # "la Truyère" or "Truyère", never both
        if text[start:].startswith(("Le ", "la ")):
            assert (start + 3, end) not in places


def test_a_language_without_a_model_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="en, fr"):
        PhraseModel.load(language="de")


@pytest.mark.slow
def test_vectors_are_the_same_bytes_whatever_the_batch() -> None:
    """Texts of equal and of different lengths, in other orders, with one and with two threads."""
    words = (
        "The old harbor of the northern town was rebuilt in 1911 by an engineer from Bergen".split()
    )
    texts = [TEXT, *(" ".join(words[at % 3 : 6 + at % 7 + at % 3]) + "." for at in range(24))]
    model = PhraseModel.load(threads=1)
    alone = [model.encode(text) for text in texts]
    for threads, order in ((1, range(len(texts))), (2, [*range(1, len(texts), 2), 0, 4, 4, 2])):
        encoded = PhraseModel.load(threads=threads).encode_many([texts[at] for at in order])
        for at, own in zip(order, encoded, strict=True):
            assert own.phrases == alone[at].phrases
            for name in ("dense", "words", "weights"):
                assert getattr(own, name).tobytes() == getattr(alone[at], name).tobytes()


def test_it_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from askline.phrases import PhraseModel\n"
        f"print(len(PhraseModel.load().extract({TEXT!r})) > 20)"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
