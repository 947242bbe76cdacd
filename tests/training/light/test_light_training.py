from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from askline.errors import InputError
from askline.models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    RelationalCNNConfig,
)
from askline.models.word_vectors import WordVectors
from askline.training.light.encoded_questions import encode_questions
from askline.training.light.light_training import (
    LightDevSet,
    LightRecipe,
    TrainedLightRanker,
    train_light_ranker,
)
from askline.types import QuestionSet

SMALL = CosinetConfig(dimensions=16, filters=12, list_hidden=8, list_layer="birnn")
LAYOUTS: list[LightConfig] = [
    replace(SMALL, list_layer="none"),
    SMALL,
    replace(SMALL, list_layer="lstm", channels=("related", "exact", "idf", "exact_idf")),
    CompareAggregateConfig(dimensions=16, gate=10, filters=8, list_layer="none"),
    CompareAggregateConfig(dimensions=16, gate=10, filters=8, list_hidden=8, list_layer="bilstm"),
    RelationalCNNConfig(dimensions=16, filters=8),
]
QUICK = LightRecipe(learning_rate=5e-3, epochs=6, batch_size=4)


def _weights(trained: TrainedLightRanker) -> dict[str, list[float]]:
    return {name: value.flatten().tolist() for name, value in trained.network.state_dict().items()}


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["list", "point"])
@pytest.mark.parametrize(
    "config", LAYOUTS, ids=lambda one: f"{one.kind}-{getattr(one, 'list_layer', '')}"
)
def test_every_network_learns_word_overlap(
    config: LightConfig,
    loss: str,
    vectors: WordVectors,
    train_questions: QuestionSet,
    dev_questions: QuestionSet,
) -> None:
    recipe = LightRecipe(learning_rate=1e-2, epochs=8, batch_size=4, loss=loss)  # type: ignore[arg-type]
    dev = LightDevSet(dev_questions, encode_questions(dev_questions, vectors, config))
    trained = train_light_ranker(
        config, encode_questions(train_questions, vectors, config), recipe, dev=dev
    )
    assert trained.history[-1].loss < 0.8 * trained.history[0].loss
    assert trained.history[-1].dev["MAP"] > 70  # chance is 46


@pytest.mark.slow
def test_same_seed_gives_the_same_weights_and_another_seed_others(
    vectors: WordVectors, train_questions: QuestionSet
) -> None:
    numbers = encode_questions(train_questions, vectors, SMALL)
    recipe = replace(QUICK, epochs=2, dropout=0.2)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first, second = (train_light_ranker(SMALL, numbers, recipe) for _ in range(2))
    other = train_light_ranker(SMALL, numbers, replace(recipe, seed=1))
    assert _weights(first) == _weights(second)
    assert _weights(first) != _weights(other)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_keeping_the_best_epoch_gives_its_measures(
    vectors: WordVectors, train_questions: QuestionSet, dev_questions: QuestionSet
) -> None:
    dev = LightDevSet(dev_questions, encode_questions(dev_questions, vectors, SMALL))
    recipe = replace(QUICK, keep="best")
    trained = train_light_ranker(
        SMALL, encode_questions(train_questions, vectors, SMALL), recipe, dev=dev
    )
    best = max(epoch.dev["MAP"] for epoch in trained.history)
    assert dev.measure(trained.network)["MAP"] == best


def test_keeping_the_best_epoch_without_a_dev_set_is_refused(
    vectors: WordVectors, train_questions: QuestionSet
) -> None:
    numbers = encode_questions(train_questions, vectors, SMALL)
    with pytest.raises(InputError, match="needs a dev set"):
        train_light_ranker(SMALL, numbers, replace(QUICK, keep="best"))


@pytest.mark.slow
def test_starting_from_trained_weights_starts_where_they_left_off(
    vectors: WordVectors, train_questions: QuestionSet
) -> None:
    numbers = encode_questions(train_questions, vectors, SMALL)
    first = train_light_ranker(SMALL, numbers, QUICK)
    again = train_light_ranker(
        SMALL, numbers, replace(QUICK, epochs=1), start=first.network.state_dict()
    )
    assert again.history[0].loss < 0.5 * first.history[0].loss


_LONGER = replace(QUICK, epochs=9, dropout=0.2)
_PROGRAM = """
import sys
from pathlib import Path
import torch
from askline.models.word_vectors import WordVectors
from askline.training.light.encoded_questions import encode_questions
from askline.training.light.light_training import train_light_ranker
from tests.training.conftest import overlapping_questions
from tests.training.light.test_light_training import SMALL, _LONGER

vectors, checkpoint, weights = map(Path, sys.argv[1:])
questions = overlapping_questions("tiny:train", count=60, seed=2)
numbers = encode_questions(questions, WordVectors.load(vectors), SMALL)
say = lambda _: print(flush=True)
trained = train_light_ranker(SMALL, numbers, _LONGER, checkpoint=checkpoint, on_epoch=say)
torch.save(trained.network.state_dict(), weights)
"""


@pytest.mark.slow
def test_training_killed_and_resumed_gives_the_same_weights(
    vectors: WordVectors, train_questions: QuestionSet, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("vectors.safetensors", "checkpoint", "weights")]
    vectors.save(files[0])

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _PROGRAM, *map(str, files)]
        root = Path(__file__).parent.parent.parent.parent
        return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root)

    broken = start()
    assert broken.stdout is not None
    for _ in range(3):
        broken.stdout.readline()  # three epochs are done, and the fourth has begun
    os.kill(broken.pid, signal.SIGKILL)
    assert broken.wait() == -signal.SIGKILL
    broken.stdout.close()
    assert not files[2].exists()
    again = start()
    epochs = again.communicate()[0].count(b"\n")
    assert again.returncode == 0
    assert epochs <= 6  # it did not begin anew
    whole = train_light_ranker(
        SMALL, encode_questions(train_questions, vectors, SMALL), _LONGER
    ).network.state_dict()
    resumed = torch.load(files[2], weights_only=True)
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_checkpoint_of_other_settings_is_refused(
    vectors: WordVectors, train_questions: QuestionSet, tmp_path: Path
) -> None:
    numbers = encode_questions(train_questions, vectors, SMALL)
    path = tmp_path / "state.ckpt"
    train_light_ranker(SMALL, numbers, replace(QUICK, epochs=1), checkpoint=path)
    with pytest.raises(InputError, match=r"other settings(.|\n)*Recipe"):
        train_light_ranker(SMALL, numbers, replace(QUICK, epochs=2), checkpoint=path)


def test_damaged_checkpoint_is_refused(
    vectors: WordVectors, train_questions: QuestionSet, tmp_path: Path
) -> None:
    path = tmp_path / "state.ckpt"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match=r"state.ckpt cannot be read as a checkpoint"):
        train_light_ranker(
            SMALL, encode_questions(train_questions, vectors, SMALL), QUICK, checkpoint=path
        )


def test_vectors_of_another_length_are_refused(
    vectors: WordVectors, train_questions: QuestionSet
) -> None:
    with pytest.raises(InputError, match="takes vectors of 300 dimensions, got 16"):
        encode_questions(train_questions, vectors, CosinetConfig())


def test_scores_do_not_depend_on_the_batch(
    vectors: WordVectors, train_questions: QuestionSet
) -> None:
    numbers = encode_questions(train_questions, vectors, SMALL)
    network = train_light_ranker(SMALL, numbers, replace(QUICK, epochs=1)).network
    with torch.inference_mode():
        together = network(numbers.batch(range(6)))
        alone = torch.cat([network(numbers.batch([row])) for row in range(6)])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epochs": 0}, "epochs must be positive, got 0"),
        ({"batch_size": 0}, "batch_size must be positive, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"seed": -1}, "seed must not be negative"),
        ({"loss": "pair"}, "No loss 'pair'. Known: list, point"),
        ({"keep": "first"}, "keep must be 'last' or 'best', got 'first'"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_wrong_recipe_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LightRecipe(**wrong)  # type: ignore[arg-type]
