from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from askline.engine.layerwise import LayerwiseEncoder, LayerwiseRun
from askline.errors import InputError, ModelError
from askline.rankers.cascade import Cascade
from askline.rankers.schedule import DropFraction, KeepCounts
from askline.training.cascade.cascade_network import CascadeNetwork, save_cascade
from askline.training.packing import PairTemplate, TokenTable, pack
from research.torch_engine.torch_encoder import TorchEncoder

QUESTION = "who wrote emma ?"
TEXTS = [
    "jane austen wrote emma .",
    "paris is a city in france .",
    "emma is a novel of jane austen .",
    "dune is a sand planet .",
    "",
]


@pytest.fixture
def encoder(network: CascadeNetwork, tokenizer: Any) -> TorchEncoder:
    return TorchEncoder(network, tokenizer, limit=64, budget=20)


def scores_of(network: CascadeNetwork, tokenizer: Any, texts: list[str]) -> Any:
    """(depths, texts) in one pass."""
    table = TokenTable.of([QUESTION, *texts], tokenizer)
    rows = np.arange(1, len(texts) + 1)
    batch = pack(table, np.zeros_like(rows), rows, PairTemplate.of(tokenizer))
    with torch.no_grad():
        return network(batch).scores.numpy()


def test_stages_give_the_scores_of_one_pass(
    encoder: TorchEncoder, network: CascadeNetwork, tokenizer: Any
) -> None:
    assert isinstance(encoder, LayerwiseEncoder)
    expected = scores_of(network, tokenizer, TEXTS)
    run = encoder.begin(QUESTION, TEXTS)
    assert isinstance(run, LayerwiseRun)
    assert (encoder.depths, encoder.layers) == ((1, 2, 4), 4)
    np.testing.assert_allclose(run.advance(np.arange(5), 1), expected[0], atol=1e-5)
    kept = np.array([3, 0, 2])  # in an order of its own
    np.testing.assert_allclose(run.advance(kept, 2), expected[1][kept], atol=1e-5)
    np.testing.assert_allclose(run.advance(kept[:1], 4), expected[2][kept[:1]], atol=1e-5)


def test_token_counts_are_those_of_the_batches(encoder: TorchEncoder) -> None:
    assert encoder.begin(QUESTION, TEXTS).tokens.tolist() == [12, 14, 15, 13, 7]
    assert encoder.begin(QUESTION, []).tokens.tolist() == []


def test_the_best_window_gives_the_score_of_a_long_candidate(
    network: CascadeNetwork, tokenizer: Any
) -> None:
    long = " ".join(["paris is a city ."] * 3 + ["jane austen wrote emma ."] * 3)
    encoder = TorchEncoder(network, tokenizer, limit=22)
    run = encoder.begin(QUESTION, [TEXTS[0], long])
    room = 22 - 3 - 4
    words = long.split()
    parts = [" ".join(words[at : at + room]) for at in range(0, len(words) - 7, room - 7)]
    assert len(parts) > 2
    expected = scores_of(network, tokenizer, parts)[0].max()
    assert run.advance(np.arange(2), 1)[1] == pytest.approx(expected, abs=1e-5)


def test_stopping_leaves_the_rest_unscored(encoder: TorchEncoder) -> None:
    run = encoder.begin(QUESTION, TEXTS)
    answers = iter([False, True])
    found = run.advance(np.arange(5), 1, stop=lambda: next(answers))
    assert not np.isnan(found[0])
    assert np.isnan(found[-1])


def test_depths_must_ascend(encoder: TorchEncoder) -> None:
    run = encoder.begin(QUESTION, TEXTS)
    run.advance(np.arange(5), 2)
    for depth in (1, 2, 3):
        with pytest.raises(InputError, match="above 2"):
            run.advance(np.arange(5), depth)


def test_reading_continues_from_the_current_layer(encoder: TorchEncoder) -> None:
    rows = np.arange(5)
    early, late = encoder.begin(QUESTION, TEXTS), encoder.begin(QUESTION, TEXTS)
    early.advance(rows, 2)
    late.advance(rows, 4)
    assert early.read(rows) == late.read(rows)


def test_reading_marks_a_part_of_the_candidate(encoder: TorchEncoder) -> None:
    run = encoder.begin(QUESTION, TEXTS)
    rows = np.array([4, 0, 2])
    run.advance(rows, 4)
    empty, *found = run.read(rows)
    assert empty is None
    for row, span in zip((0, 2), found, strict=True):
        assert span is not None
        text = TEXTS[row][span.start : span.end]
        assert text == text.strip() != ""


def test_a_cascade_runs_on_it(tmp_path: Any, network: CascadeNetwork, tokenizer: Any) -> None:
    encoder = TorchEncoder.load(save_cascade(network, tokenizer, tmp_path / "cascade"))
    full = Cascade(encoder, KeepCounts(encoder.depths)).rank(QUESTION, TEXTS)
    expected = np.argsort(-scores_of(network, tokenizer, TEXTS)[-1], kind="stable")
    assert [hit.index for hit in full] == expected.tolist()
    dropped = Cascade(encoder, DropFraction(encoder.depths, 0.5)).rank(QUESTION, TEXTS)
    assert sorted(hit.index for hit in dropped) == list(range(5))


def test_a_network_without_a_reader_reads_nothing(bert_folder: Any, tokenizer: Any) -> None:
    from askline.training.cascade.cascade_network import CascadeShape

    network = CascadeNetwork.start(bert_folder, CascadeShape((2,), reader=False))
    run = TorchEncoder(network, tokenizer).begin(QUESTION, TEXTS[:2])
    run.advance(np.arange(2), 2)
    assert run.read(np.arange(2)) == [None, None]


def test_other_encoders_are_refused(
    network: CascadeNetwork, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("research.torch_engine.torch_encoder.is_bert", lambda _: False)
    with pytest.raises(ModelError, match="Only BERT encoders"):
        TorchEncoder(network, tokenizer)


def test_batches_fill_up_again_behind_a_classifier(encoder: TorchEncoder) -> None:
    run = encoder.begin(QUESTION, TEXTS)
    run.advance(np.arange(5), 1)
    assert len(run._batches.batches) > 2
    run.keep(np.array([4, 0]))  # 7 and 12 tokens of a budget of 20
    assert [flight.windows.tolist() for flight in run._batches.batches] == [[0, 4]]


def test_candidates_dropped_before_the_first_layer_are_not_computed(
    encoder: TorchEncoder, network: CascadeNetwork, tokenizer: Any
) -> None:
    run = encoder.begin(QUESTION, TEXTS)
    expected = scores_of(network, tokenizer, TEXTS)
    np.testing.assert_allclose(run.advance(np.array([2]), 4), expected[2][[2]], atol=1e-5)
