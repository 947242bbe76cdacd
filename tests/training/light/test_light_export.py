"""What torch trained and what numpy ranks with are the same network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askline.errors import ModelError
from askline.models.folder import ModelFolder
from askline.models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    RelationalCNNConfig,
)
from askline.models.word_vectors import WordVectors
from askline.rankers.base import Ranker
from askline.rankers.cosinet import Cosinet
from askline.rankers.paper_networks import CompareAggregate, RelationalCNN
from askline.training.light.encoded_questions import encode_questions
from askline.training.light.light_training import (
    LightRecipe,
    TrainedLightRanker,
    export_light_ranker,
    initial_weights,
    network_scores,
    tensors_of,
    train_light_ranker,
)
from askline.types import Candidate, Question, QuestionSet

CA = CompareAggregateConfig(dimensions=16, gate=10, filters=8, list_hidden=6)
COSINET = CosinetConfig(
    dimensions=16, filters=8, list_hidden=6, channels=("related", "exact", "idf", "exact_idf")
)
CASES: list[tuple[LightConfig, Callable[[Path], Ranker]]] = [
    *((replace(CA, list_layer=kind), CompareAggregate.load) for kind in ("none", "rnn", "birnn")),
    *((replace(CA, list_layer=kind), CompareAggregate.load) for kind in ("lstm", "bilstm")),
    (RelationalCNNConfig(dimensions=16, filters=8), RelationalCNN.load),
    *((replace(COSINET, list_layer=kind), Cosinet.load) for kind in ("none", "birnn", "lstm")),
]


def _train(config: LightConfig, questions: QuestionSet, vectors: WordVectors) -> TrainedLightRanker:
    return train_light_ranker(
        config,
        encode_questions(questions, vectors, config),
        LightRecipe(epochs=1, learning_rate=5e-3),
    )


@pytest.mark.parametrize(
    ("config", "load"), CASES, ids=lambda one: getattr(one, "list_layer", getattr(one, "kind", ""))
)
def test_numpy_and_torch_give_the_same_scores(
    config: LightConfig,
    load: Callable[[Path], Ranker],
    vectors: WordVectors,
    train_questions: QuestionSet,
    tmp_path: Path,
) -> None:
    trained = _train(config, train_questions, vectors)
    ranker = load(export_light_ranker(trained, tmp_path / "model", vectors=vectors))
    hard = ["", "unknown words alone", "w1", "w1 " * 300, "w1 w2 w3 w4", "w5 w6 w7 unknown"]
    texts = tuple(Candidate(str(place), text) for place, text in enumerate(hard))
    asked = ("w1 w2 w9 unheard", "w3", "")
    odd = QuestionSet("odd", tuple(Question(text or "-", text, texts) for text in asked))
    for questions in (train_questions, odd):
        numbers = encode_questions(questions, vectors, config)
        for question, expected in zip(
            questions, network_scores(trained.network, numbers), strict=True
        ):
            found = ranker.score_texts(question.text, question.texts)
            np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=1e-5)


def test_card_names_data_and_recipe(
    vectors: WordVectors, train_questions: QuestionSet, tmp_path: Path
) -> None:
    config = RelationalCNNConfig(dimensions=16, filters=8)
    trained = _train(config, replace(train_questions, name="wikiqa:train"), vectors)
    export_light_ranker(trained, tmp_path / "model", vectors=vectors, command="askline train …")
    card = (tmp_path / "model" / "README.md").read_text("utf-8")
    for part in ("relational-cnn", "wikiqa:train", "research", "tiny: 60 words", "askline train …"):
        assert part in card


def test_weights_of_a_folder_start_another_training(
    vectors: WordVectors, train_questions: QuestionSet, tmp_path: Path
) -> None:
    config = replace(CA, list_layer="birnn")
    trained = _train(config, train_questions, vectors)
    folder = export_light_ranker(trained, tmp_path / "model", vectors=vectors)
    tensors = ModelFolder.open(folder, kind=config.kind).tensors()
    start = initial_weights(tensors, config)
    again = train_light_ranker(
        config,
        encode_questions(train_questions, vectors, config),
        LightRecipe(epochs=1, learning_rate=1e-12),
        start=start,
    )
    for name, value in tensors_of(again.network).items():
        np.testing.assert_allclose(value, tensors[name], atol=1e-6)
    with pytest.raises(ModelError, match="do not fit .*list.weight_ih_l0_reverse.* differ"):
        initial_weights(tensors, replace(config, list_layer="rnn"))
