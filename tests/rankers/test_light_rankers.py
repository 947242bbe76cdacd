"""Compare-Aggregate and Rel-CNN as rankers; tests/training holds them against torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import askline
from askline.engine import lexical_matches as pairs
from askline.errors import ModelError, SpecError
from askline.rankers.base import Ranker
from askline.rankers.paper_networks import CompareAggregate, RelationalCNN
from askline.testing import CHECKS

from .light_folders import compare_aggregate_folder, relational_cnn_folder

QUESTION = "When was the first lighthouse on the rock lit?"
TEXTS = ["the rock", "the first lighthouse was lit in a storm", "", "keepers keepers", "zzz yyy"]


@pytest.fixture(scope="module", params=["none", "bilstm", "relational-cnn"])
def ranker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> CompareAggregate | RelationalCNN:
    folder = tmp_path_factory.mktemp("model")
    if request.param == "relational-cnn":
        return RelationalCNN.load(relational_cnn_folder(folder))
    return CompareAggregate.load(compare_aggregate_folder(folder, request.param))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_ranker_keeps_the_contract(ranker: Ranker, check: Callable[[Ranker], None]) -> None:
    check(ranker)


def test_scores_do_not_depend_on_the_size_of_blocks(
    ranker: CompareAggregate | RelationalCNN, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = TEXTS * 20
    together = ranker.score(QUESTION, texts)
    monkeypatch.setattr(pairs, "_BLOCK_WORDS", 1)
    np.testing.assert_allclose(ranker.score(QUESTION, texts), together, atol=1e-5)


@pytest.mark.parametrize(
    "texts",
    [["one"], [""], ["zzz yyy"], ["rock " * 2_000, "rock"], TEXTS * 1_000],
    ids=["one", "empty", "unknown", "2,000 words", "5,000 candidates"],
)
def test_hard_lists_get_real_scores(
    ranker: CompareAggregate | RelationalCNN, texts: list[str]
) -> None:
    scores = ranker.score(QUESTION, texts)
    assert scores.shape == (len(texts),)
    assert np.isfinite(scores).all()


def test_spec_names_the_folder(tmp_path: Path) -> None:
    folder = relational_cnn_folder(tmp_path / "model")
    ranker = askline.load(f"relational-cnn('{folder}') % 2 >> rr")
    assert str(ranker) == f"relational-cnn({str(folder)!r}) % 2 >> rr"
    assert len(ranker.rank(QUESTION, TEXTS)) == len(TEXTS)


@pytest.mark.parametrize("name", ["compare-aggregate", "relational-cnn"])
def test_spec_without_a_folder_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match=f"Ranker '{name}': missing a required argument: 'folder'"):
        askline.load(name)


def test_weights_that_do_not_fit_the_config_are_refused(tmp_path: Path) -> None:
    folder = compare_aggregate_folder(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"gate": 7}), "utf-8")
    with pytest.raises(ModelError, match=r"gate.weight must be \(7, 6\), got \(5, 6\)"):
        CompareAggregate.load(folder)


def test_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = compare_aggregate_folder(tmp_path / "model")
    with pytest.raises(ModelError, match="relational-cnn"):
        RelationalCNN.load(folder)
