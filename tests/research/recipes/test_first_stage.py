from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askline.models.folder import write_folder
from askline.models.light_config import FirstStageConfig
from askline.models.word_vectors import WordVectors
from askline.rankers.cosinet import Cosinet
from askline.types import Candidate, Question, QuestionSet
from research.recipes.first_stage import FilterBatch, FilterRecipe, fit, tensors_of
from research.recipes.first_stage_examples import Example, Vocabulary, examples

torch = pytest.importorskip("torch")


WORDS = ("the", "of", "was", "in", "built", "lit", "tower", "lamp", "sea", "keeper", "year")
VECTORS = WordVectors.from_rows(
    WORDS, np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))[0][:11].astype(np.float32)
)
LAYOUT = FirstStageConfig(dimensions=16, filters=5, width=5, terms=4, hidden=6, feedback=0.0)


def _question(number: int, text: str, *candidates: tuple[str, bool]) -> Question:
    return Question(
        f"Q{number}",
        text,
        tuple(
            Candidate(f"Q{number}-{i}", said, is_answer=a) for i, (said, a) in enumerate(candidates)
        ),
    )


SET = QuestionSet(
    "toy",
    tuple(
        _question(
            number,
            f"When was tower {number} built?",
            ("The sea", False),
            (f"Tower {number} was built in the year {1700 + number}.", True),
            (f"The keeper of lamp {number} was in tower {number}", False),
            ("", False),
        )
        for number in range(40)
    ),
)


@pytest.fixture(scope="module")
def made() -> tuple[list[Example], Vocabulary]:
    vocabulary = Vocabulary()
    return list(examples([SET], VECTORS, vocabulary, seed=0)), vocabulary


def test_lists_have_their_answers_first(made: tuple[list[Example], Vocabulary]) -> None:
    lists, _ = made
    assert len(lists) == len(SET)
    assert {one.answers for one in lists} == {1}
    assert {len(one.features) for one in lists} == {4, 24}
    padded = next(one for one in lists if len(one.features) == 24)
    # Sampled ones stand for all that were left out.
    assert np.exp(padded.log_weight).sum() > 24


def test_lists_hang_on_the_seed_alone(made: tuple[list[Example], Vocabulary]) -> None:
    again = list(examples([SET], VECTORS, Vocabulary(), seed=0))
    assert all(
        np.array_equal(one.features, other.features)
        for one, other in zip(made[0], again, strict=True)
    )


@pytest.mark.slow
def test_training_learns_and_is_repeatable(made: tuple[list[Example], Vocabulary]) -> None:
    lists, vocabulary = made
    heard: list[float] = []
    recipe = FilterRecipe(epochs=6, batch_size=8, learning_rate=1e-2)
    table = vocabulary.table(VECTORS)
    first = tensors_of(
        fit(lists, table, LAYOUT, recipe, on_step=lambda step: heard.append(float(step.loss)))
    )
    assert heard[-1] < 0.5 * heard[0]
    again = tensors_of(fit(lists, table, LAYOUT, recipe))
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_the_ranker_gives_torchs_scores(
    made: tuple[list[Example], Vocabulary], tmp_path: Path
) -> None:
    lists, vocabulary = made
    recipe = FilterRecipe(epochs=1, batch_size=8)
    table = vocabulary.table(VECTORS)
    network = fit(lists, table, LAYOUT, recipe)
    write_folder(
        tmp_path,
        config=LAYOUT.to_config(),
        tensors=tensors_of(network),
        card="",
        vectors=VECTORS,
    )
    ranker = Cosinet.load(tmp_path)
    short = [one for one in lists if len(one.features) == 4][:5]
    with torch.no_grad():
        vectors, rarity = (torch.from_numpy(part) for part in table)
        wanted = network(FilterBatch.of(short), vectors, rarity).numpy()
    for one, row in zip(short, wanted, strict=True):
        question = SET.questions[lists.index(one)]
        scores = ranker.score(question.text, question.texts)
        assert scores[1] == pytest.approx(row[0], abs=1e-4)  # the answer comes first in a list
        assert np.sort(scores) == pytest.approx(np.sort(row), abs=1e-4)


def test_the_recipe_runs_from_data_folder_to_model_folder(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from research.recipes.first_stage import main

    text = "The tower was lit in 1698. The sea took it."
    asked = {"question": "When was the tower lit?", "id": "1"}
    spans = {"answers": [{"text": "1698", "answer_start": text.index("1698")}]}
    shifts = {"data": [{"title": "T", "paragraphs": [{"context": text, "qas": [asked | spans]}]}]}
    for name in ("new_wiki", "reddit", "amazon_reviews"):
        changed = json.dumps(shifts).replace('"id": "1"', f'"id": "{name}"')
        _write(tmp_path / f"squadshifts/{name}_v1.0.json", changed)
    lone = {"question": asked["question"], "answer": "1698"}
    _write(
        tmp_path / "squad/train-800-contexts.json", json.dumps([{"context": text, "qas": [lone]}])
    )
    pairs = [
        {"question": f"Who kept lamp {n}?", "sentence": f"Ann kept lamp {n}."} for n in range(4)
    ]
    _write(tmp_path / "squad/train-pairs.jsonl", "\n".join(map(json.dumps, pairs)))
    arguments = ["--data", str(tmp_path), "--out", str(tmp_path / "model")]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    ranker = Cosinet.load(tmp_path / "model")
    assert len(ranker.rank("When was it lit?", ["In 1698.", "The sea."])) == 2
    assert "Trained on 6 questions" in (tmp_path / "model/README.md").read_text("utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
