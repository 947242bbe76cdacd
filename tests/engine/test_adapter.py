"""A reader with layers of its own, on the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.engine.encoder import OnnxEncoder, open_encoder
from askline.errors import ModelError
from askline.models.cascade_config import Adapter, CascadeLayout, Head, reading_tensors
from askline.models.folder import ModelFolder
from askline.rankers.cascade import Cascade
from askline.rankers.schedule import Keeps

from .tiny_cascades import CANDIDATES, QUESTION, layout, runtime_folder, tensors

ALL = np.arange(len(CANDIDATES))


def _adapted(head: Head = "mean", first: int = 0) -> CascadeLayout:
    return replace(layout(head), adapter=Adapter(first, 4))


def _opened(path: Path, of: CascadeLayout, weights: dict[str, Any]) -> OnnxEncoder:
    return open_encoder(ModelFolder.open(runtime_folder(path, of, weights), kind="cascade"))


def _merged(weights: dict[str, Any]) -> dict[str, Any]:
    """The same reader as an encoder without an adapter: every sum written out."""
    made = reading_tensors(weights)
    for name in [name for name in made if name.startswith("layers") and ".up." in name]:
        product = made[name].T @ made[name.replace(".up.", ".down.")]
        whole = name.replace(".up.", ".")
        made[whole] = made[whole] + product
    return {
        name: made[name]
        for name in layout("mean").shapes() | layout("first").shapes()
        if name in made
    }


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
@pytest.mark.parametrize("first", [0, 2])
def test_it_reads_as_the_sum_of_the_weights_would(tmp_path: Path, head: Head, first: int) -> None:
    of = _adapted(head, first)
    weights = tensors(of)
    found = _opened(tmp_path / "adapted", of, weights).begin(QUESTION, CANDIDATES).read(ALL)
    whole = _opened(tmp_path / "merged", layout(head), _merged(weights))
    wanted = whole.begin(QUESTION, CANDIDATES).read(ALL)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.start, one.end) == (other.start, other.end)
            assert one.score == pytest.approx(other.score, abs=1e-3)
            assert one.no_answer == pytest.approx(other.no_answer, abs=1e-3)


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
def test_scores_are_those_of_the_cascade_without_it(tmp_path: Path, head: Head) -> None:
    of = _adapted(head)
    weights = tensors(of)
    plain = {name: weights[name] for name in layout(head).shapes()}
    scores = []
    for name, shape, own in (("with", of, weights), ("without", layout(head), plain)):
        run = _opened(tmp_path / name, shape, own).begin(QUESTION, CANDIDATES)
        scores.append([run.advance(ALL, depth).tobytes() for depth in (1, 3)])
        run.read(ALL)
    assert scores[0] == scores[1]


def test_it_may_read_deeper_than_the_last_classifier(tmp_path: Path) -> None:
    whole = _adapted("mixed")
    short = whole.up_to(1)
    weights = tensors(whole)
    deep = _opened(tmp_path / "deep", whole, weights)
    flat = _opened(tmp_path / "flat", short, {name: weights[name] for name in short.shapes()})
    assert (flat.depths, flat.layers) == ((1,), 1)
    runs = [encoder.begin(QUESTION, CANDIDATES) for encoder in (deep, flat)]
    scores = [run.advance(ALL, 1).tobytes() for run in runs]
    assert scores[0] == scores[1]
    assert runs[0].read(ALL) == runs[1].read(ALL)
    ranking = Cascade(flat, Keeps((1,))).rank(QUESTION, CANDIDATES)
    assert len(ranking) == len(CANDIDATES)


def test_thin_matrices_in_int8_read_nearly_the_same(tmp_path: Path) -> None:
    of = _adapted()
    weights: dict[str, Any] = tensors(of)
    wanted = _opened(tmp_path / "whole", of, weights).begin(QUESTION, CANDIDATES).read(ALL)
    for name in [name for name in weights if ".up." in name or ".down." in name]:
        step = np.abs(weights[name]).max(axis=1) / 127
        weights[name] = np.rint(weights[name] / step[:, None]).astype(np.int8)
        weights[f"{name.removesuffix('weight')}scale"] = step
    found = _opened(tmp_path / "small", of, weights).begin(QUESTION, CANDIDATES).read(ALL)
    scores = [np.array([one.no_answer for one in spans if one]) for spans in (found, wanted)]
    assert np.abs(scores[0] - scores[1]).max() < 0.2


def test_the_same_is_read_behind_any_depth_and_in_any_company(tmp_path: Path) -> None:
    of = _adapted()
    encoder = _opened(tmp_path / "tiny", of, tensors(of))
    run = encoder.begin(QUESTION, CANDIDATES)
    at_once = run.read(ALL)
    run.advance(ALL, 1)
    run.advance(ALL[:2], 3)
    again = run.read(ALL[:2])
    alone = encoder.begin(QUESTION, CANDIDATES[1:2]).read(ALL[:1])
    for found in (again[1], alone[0]):
        assert found is not None
        assert at_once[1] is not None
        assert (found.start, found.end) == (at_once[1].start, at_once[1].end)


def test_a_long_text_is_read_in_longer_windows_than_it_is_ranked_in(tmp_path: Path) -> None:
    of = replace(layout("mean", positions=512), adapter=Adapter(0, 4))
    encoder = _opened(tmp_path / "tiny", of, tensors(of))
    long = "Jane wrote it . " * 200
    ranked, read = encoder.begin(QUESTION, [long]), encoder.begin_reading([(QUESTION, long)])
    assert [run._windows.lengths.max() for run in (ranked, read)] == [256, 384]
    (span,) = ranked.read(ALL[:1])
    assert span is not None
    assert 0 <= span.start < span.end <= len(long)


def test_a_ranker_reads_by_it(tmp_path: Path) -> None:
    of = _adapted()
    folder = runtime_folder(tmp_path / "tiny", of, tensors(of))
    ranker = Cascade.load(folder)
    assert ranker.read(QUESTION, CANDIDATES) == ranker.encoder.begin(QUESTION, CANDIDATES).read(ALL)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda all_: all_.pop("adapter.layers.1.inner.up.weight"), r"up.weight must be \(4, 64\)"),
        (
            lambda all_: all_.update({"adapter.layers.0.query.down.weight": np.zeros((3, 32))}),
            r"query.down.weight must be \(4, 32\), got \(3, 32\)",
        ),
        (lambda all_: all_.pop("adapter.layers.2.output_norm.bias"), "output_norm.bias"),
        (
            lambda all_: all_.update({"adapter.layers.3.query.bias": np.zeros(32)}),
            "layers.3.query.bias must be absent",
        ),
    ],
    ids=["missing", "thinner", "norm", "too-many"],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    of = _adapted()
    weights: dict[str, Any] = tensors(of)
    change(weights)
    with pytest.raises(ModelError, match=message):
        _opened(tmp_path / "tiny", of, weights)
