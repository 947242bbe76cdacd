"""The phrase model that comes along."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import numpy as np
import pytest

import askline.models
from askline.phrases.phrase_model import PhraseModel

FOLDER = Path(askline.models.__file__).parent / "shipped" / "phrases"
TEXT = (
    "The Firth bridge was opened in 1890 by the Prince of Wales. "
    "It was designed by John Fowler and Benjamin Baker and is 2,467 metres long."
)


@pytest.fixture(scope="module")
def model() -> PhraseModel:
    return PhraseModel.load()


def test_its_size() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 30_000_000


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


@pytest.mark.slow
def test_it_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from askline.phrases import PhraseModel\n"
        f"print(len(PhraseModel.load().extract({TEXT!r})) > 20)"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
