from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from askline.errors import ModelError
from askline.models.folder import write_folder
from askline.models.light_config import CosinetConfig, FirstStageConfig, ListLayerKind
from askline.models.word_vectors import WordVectors
from askline.rankers.cosinet import Cosinet, cosinet_shapes
from askline.testing import check_ranker

WORDS = ("the", "rock", "first", "lighthouse", "was", "lit", "in", "november", "storm")
VECTORS = WordVectors.from_rows(
    WORDS, np.random.default_rng(5).normal(size=(9, 6)).astype(np.float32)
)
QUESTION = "When was the first lighthouse lit?"
TEXTS = [
    "The rock.",
    "It was first lit in November 1698.",
    "",
    "xyzzy plugh",
    "word " * 2_000,
    "A storm took the lighthouse.",
]
KINDS: tuple[ListLayerKind, ...] = ("none", "rnn", "birnn", "lstm", "bilstm")


def _random(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {name: rng.normal(size=shape).astype(np.float32) * 0.3 for name, shape in shapes.items()}


def _trained(path: Path, kind: ListLayerKind = "none") -> Path:
    layout = CosinetConfig(
        dimensions=6, filters=4, list_layer=kind, list_hidden=6, channels=("related", "exact")
    )
    tensors = _random(cosinet_shapes(layout))
    return write_folder(path, config=layout.to_config(), tensors=tensors, card="", vectors=VECTORS)


def _filter(path: Path) -> Path:
    layout = FirstStageConfig(dimensions=6, filters=4, terms=3, hidden=5)
    tensors = _random(layout.shapes())
    tensors["features.scale"] = np.abs(tensors["features.scale"]) + 1
    return write_folder(path, config=layout.to_config(), tensors=tensors, card="", vectors=VECTORS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "filter"])
def test_every_network_keeps_the_contract(tmp_path: Path, kind: str) -> None:
    folder = _filter(tmp_path) if kind == "filter" else _trained(tmp_path, kind)  # type: ignore[arg-type]
    check_ranker(Cosinet.load(folder))


def test_the_shipped_one_puts_the_answer_first() -> None:
    ranker = Cosinet.load()
    assert ranker.rank(QUESTION, TEXTS)[0].index == 1
    assert str(ranker) == "cosinet"


def test_what_ships_is_small() -> None:
    import askline.models

    folder = Path(askline.models.__file__).parent / "shipped"
    sizes = {
        part: sum(file.stat().st_size for file in folder.rglob("*") if part in file.parts)
        for part in ("cascade", "cascade-fr", "phrases", "phrases-fr", "shipped")
    }
    assert sizes["cascade"] < 45_000_000
    assert sizes["cascade-fr"] < 34_000_000
    assert sizes["phrases-fr"] < 25_000_000
    assert sizes.pop("shipped") - sum(sizes.values()) < 15_000_000


@pytest.mark.parametrize("make", [_filter, _trained], ids=["filter", "point-wise"])
def test_order_does_not_matter_without_a_list_layer(make: object, tmp_path: Path) -> None:
    ranker = Cosinet.load(make(tmp_path))  # type: ignore[operator]
    forth = ranker.score(QUESTION, TEXTS)
    back = ranker.score(QUESTION, TEXTS[::-1])
    assert forth == pytest.approx(back[::-1], abs=1e-5)


@pytest.mark.slow
def test_a_pair_scores_alike_in_any_company_without_a_list_layer(tmp_path: Path) -> None:
    ranker = Cosinet.load(_trained(tmp_path))
    together = ranker.score(QUESTION, TEXTS * 300)
    alone = [ranker.score(QUESTION, [text])[0] for text in TEXTS]
    assert together == pytest.approx(alone * 300, abs=1e-5)


def test_a_recurrent_layer_reads_the_order(tmp_path: Path) -> None:
    ranker = Cosinet.load(_trained(tmp_path, "birnn"))
    forth = ranker.score(QUESTION, TEXTS)
    back = ranker.score(QUESTION, TEXTS[::-1])
    assert np.abs(forth - back[::-1]).max() > 1e-3


def test_a_folder_saved_again_scores_the_same(tmp_path: Path) -> None:
    ranker = Cosinet.load(_filter(tmp_path / "one"))
    write_folder(
        tmp_path / "two",
        config=ranker.network.config.to_config(),
        tensors=dict(ranker.network.tensors),
        card="",
        vectors=ranker.vectors,
    )
    again = Cosinet.load(tmp_path / "two")
    assert np.array_equal(ranker.score(QUESTION, TEXTS), again.score(QUESTION, TEXTS))
    assert str(again) == f"cosinet({str(tmp_path / 'two')!r})"


def test_weights_that_do_not_fit_their_config(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    _trained(tmp_path)
    config.write_text(
        json.dumps(json.loads(config.read_text(encoding="utf-8")) | {"filters": 9}),
        encoding="utf-8",
    )
    with pytest.raises(ModelError, match=r"candidate\.bias must be \(9,\), got \(4,\)"):
        Cosinet.load(tmp_path)


def test_a_filter_with_other_features(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    _filter(tmp_path)
    config.write_text(
        json.dumps(json.loads(config.read_text(encoding="utf-8")) | {"features": ["length"]}),
        encoding="utf-8",
    )
    with pytest.raises(ModelError, match="was trained on the features"):
        Cosinet.load(tmp_path)


def test_another_kind_of_model(tmp_path: Path) -> None:
    write_folder(tmp_path, config={"kind": "oracle"}, tensors={}, card="", vectors=VECTORS)
    with pytest.raises(ModelError, match="must hold a cosinet or cosinet-filter model"):
        Cosinet.load(tmp_path)
