from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from askline.evaluation import evaluate
from askline.models.light_config import FirstStageConfig
from askline.models.word_vectors import WordVectors
from askline.rankers.cosinet import Cosinet
from askline.training.checkpoint import Epoch
from askline.training.light.first_stage import (
    FirstStageBatch,
    FirstStageExample,
    FirstStageRecipe,
    Vocabulary,
    first_stage_examples,
    train_first_stage,
)
from askline.training.light.light_training import (
    TrainedLightRanker,
    export_light_ranker,
    tensors_of,
)
from askline.types import Candidate, Question, QuestionSet

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


Made = tuple[list[FirstStageExample], Vocabulary]


@pytest.fixture(scope="module")
def made() -> Made:
    vocabulary = Vocabulary()
    return list(first_stage_examples([SET], VECTORS, vocabulary, seed=0)), vocabulary


def _train(made: Made, recipe: FirstStageRecipe, **options: Any) -> TrainedLightRanker:
    lists, vocabulary = made
    return train_first_stage(lists, vocabulary, VECTORS, LAYOUT, recipe, name="toy", **options)


def test_lists_have_their_answers_first(made: Made) -> None:
    lists, _ = made
    assert len(lists) == len(SET)
    assert {one.answers for one in lists} == {1}
    assert {len(one.features) for one in lists} == {4, 24}
    padded = next(one for one in lists if len(one.features) == 24)
    # Sampled ones stand for all that were left out.
    assert np.exp(padded.log_weight).sum() > 24


def test_lists_depend_on_the_seed_alone(made: Made) -> None:
    again = list(first_stage_examples([SET], VECTORS, Vocabulary(), seed=0))
    assert all(
        np.array_equal(one.features, other.features)
        for one, other in zip(made[0], again, strict=True)
    )


@pytest.mark.slow
def test_training_learns_and_is_repeatable(made: Made) -> None:
    losses: list[float] = []
    recipe = FirstStageRecipe(epochs=6, batch_size=8, learning_rate=1e-2)
    first = _train(made, recipe, on_step=lambda step: losses.append(float(step.loss)))
    assert losses[-1] < 0.5 * losses[0]
    again = _train(made, recipe)
    assert _same_weights(first, again)


def test_the_ranker_gives_torchs_scores(made: Made, tmp_path: Path) -> None:
    lists, vocabulary = made
    trained = _train(made, FirstStageRecipe(epochs=1, batch_size=8))
    ranker = Cosinet.load(export_light_ranker(trained, tmp_path, vectors=VECTORS))
    short = [one for one in lists if len(one.features) == 4][:5]
    with torch.no_grad():
        vectors, rarity = map(torch.from_numpy, vocabulary.table(VECTORS))
        wanted = trained.network(FirstStageBatch.of(short), vectors, rarity).numpy()
    for one, row in zip(short, wanted, strict=True):
        question = SET.questions[lists.index(one)]
        scores = ranker.score(question.text, question.texts)
        assert scores[1] == pytest.approx(row[0], abs=1e-4)  # the answer comes first in a list
        assert np.sort(scores) == pytest.approx(np.sort(row), abs=1e-4)


def test_fine_tuning_continues_from_the_weights_of_a_folder(made: Made) -> None:
    first = _train(made, FirstStageRecipe(epochs=2, batch_size=8, learning_rate=1e-2))
    start = tensors_of(first.network)
    kept = _train(made, FirstStageRecipe(epochs=1, learning_rate=1e-12), start=start)
    for name, value in tensors_of(kept.network).items():
        assert value == pytest.approx(start[name], abs=1e-6), name
    losses: list[float] = []
    recipe = FirstStageRecipe(epochs=2, batch_size=8, dropout=0.0)
    tuned = _train(made, recipe, start=start, on_step=lambda step: losses.append(float(step.loss)))
    assert losses[0] < 1.0  # a network with new weights begins above 2
    assert not _same_weights(first, tuned)
    features = tensors_of(tuned.network)
    for name in ("features.mean", "features.scale"):  # not those of the new lists
        assert np.array_equal(features[name], start[name])


def test_a_stopped_training_resumes_with_the_same_result(made: Made, tmp_path: Path) -> None:
    recipe = FirstStageRecipe(epochs=3, batch_size=8)
    whole = _train(made, recipe)
    checkpoint = tmp_path / "checkpoint.pt"

    def stop(epoch: Epoch) -> None:
        if epoch.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _train(made, recipe, checkpoint=checkpoint, on_epoch=stop)
    torch.manual_seed(99)  # the state of another process
    assert _same_weights(whole, _train(made, recipe, checkpoint=checkpoint))


def test_the_dev_set_is_measured_as_the_folder_will_rank_it(made: Made, tmp_path: Path) -> None:
    pytest.importorskip("pytrec_eval")
    trained = _train(made, FirstStageRecipe(epochs=1), dev=SET)
    ranker = Cosinet.load(export_light_ranker(trained, tmp_path, vectors=VECTORS, dev="toy"))
    measured = evaluate(ranker, SET, measures="MAP").percent["MAP"]
    assert trained.history[-1].dev["MAP"] == pytest.approx(measured)
    card = (tmp_path / "README.md").read_text("utf-8")
    assert "Trained on: toy" in card
    assert "MAP on toy" in card


def _same_weights(one: TrainedLightRanker, other: TrainedLightRanker) -> bool:
    first, second = tensors_of(one.network), tensors_of(other.network)
    return all(np.array_equal(first[name], second[name]) for name in first)
