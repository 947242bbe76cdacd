from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.engine import layerwise
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.engine.layerwise import LayerwiseEncoder, LayerwiseRun
from askline.errors import InputError, ModelError
from askline.models.cascade_config import Adapter, CascadeConfig, Head, reader_tensors
from askline.models.folder import ModelFolder
from askline.rankers.cascade import Cascade
from askline.rankers.schedule import KeepCounts

from .tiny_cascades import (
    CANDIDATES,
    QUESTION,
    encoder,
    logits,
    runtime_folder,
    tensors,
    tiny_config,
)

LONG = " ".join(f"she wrote novel {number}," for number in range(400))
ALL = np.arange(len(CANDIDATES))


def _descend(
    of: OnnxEncoder, candidates: list[str]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """(depths, candidates)"""
    run, rows = of.begin(QUESTION, candidates), np.arange(len(candidates))
    return np.stack([run.advance(rows, depth) for depth in of.depths])


@pytest.fixture
def tiny(tmp_path: Path) -> OnnxEncoder:
    return encoder(tmp_path / "tiny", tiny_config())


def test_the_encoder_is_layerwise(tiny: OnnxEncoder) -> None:
    assert isinstance(tiny, LayerwiseEncoder)
    assert isinstance(tiny.begin(QUESTION, CANDIDATES), LayerwiseRun)
    assert (tiny.depths, tiny.layers) == ((1, 3), 3)


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
def test_logits_are_those_of_the_network(tmp_path: Path, head: Head) -> None:
    of = tiny_config(head)
    tiny = encoder(tmp_path / "tiny", of)
    found = _descend(tiny, CANDIDATES)
    for row, candidate in enumerate(CANDIDATES):
        prefix = [
            tiny.tokenizer.cls_id,
            *tiny.tokenizer.token_ids(QUESTION),
            tiny.tokenizer.sep_id,
        ]
        suffix = [*tiny.tokenizer.token_ids(candidate), tiny.tokenizer.sep_id]
        token_types = [0] * len(prefix) + [1] * len(suffix)
        wanted = logits(of, tensors(of), [*prefix, *suffix][:64], token_types[:64])
        if len(token_types) <= 64:
            assert found[:, row] == pytest.approx([wanted[1], wanted[3]], abs=1e-4)


def test_scores_do_not_depend_on_the_other_candidates(tiny: OnnxEncoder) -> None:
    together = _descend(tiny, CANDIDATES)
    alone = [_descend(tiny, [candidate])[:, 0] for candidate in CANDIDATES]
    assert np.abs(together - np.stack(alone, axis=1)).max() < 1e-5


def test_advancing_some_gives_the_same_as_advancing_all(tiny: OnnxEncoder) -> None:
    whole = _descend(tiny, CANDIDATES)
    run = tiny.begin(QUESTION, CANDIDATES)
    run.advance(ALL, 1)
    some = np.array([6, 0, 5])
    assert np.abs(run.advance(some, 3) - whole[1, some]).max() < 1e-5
    straight = tiny.begin(QUESTION, CANDIDATES).advance(some, 3)
    assert np.abs(straight - whole[1, some]).max() < 1e-5


def test_states_without_room_in_memory_are_computed_again(
    tiny: OnnxEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _descend(tiny, CANDIDATES)
    monkeypatch.setattr(layerwise, "_MAX_KEPT_TOKENS", 60)
    run = tiny.begin(QUESTION, CANDIDATES)
    run.advance(ALL, 1)
    assert 0 < run._cache.kept.sum() < len(CANDIDATES)
    assert np.abs(run.advance(ALL, 3) - whole[1]).max() < 1e-5
    assert [span is None for span in run.read(ALL)] == [not text for text in CANDIDATES]


def test_two_runs_give_the_same_bytes(tiny: OnnxEncoder) -> None:
    assert _descend(tiny, CANDIDATES).tobytes() == _descend(tiny, CANDIDATES).tobytes()


def test_eight_threads_give_the_same_as_one(tmp_path: Path) -> None:
    one = _descend(encoder(tmp_path / "one", tiny_config(), threads=1), CANDIDATES)
    shared = encoder(tmp_path / "many", tiny_config(), threads=3)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: _descend(shared, CANDIDATES), range(24)))
    for each in found:
        assert np.abs(each - one).max() < 1e-5


def test_a_long_candidate_has_the_score_of_its_best_sequence(tiny: OnnxEncoder) -> None:
    run = tiny.begin(QUESTION, ["No.", LONG])
    found = run.advance(np.array([0, 1]), 3)
    assert np.isfinite(found).all()
    assert run.tokens[1] > len(tiny.tokenizer.token_ids(LONG))
    places = tiny.tokenizer.tokens_with_offsets(LONG)
    room = 64 - 3 - len(tiny.tokenizer.token_ids(QUESTION))
    parts = [LONG[places[at][1] : places[at + room - 1][2]] for at in run._sequences.start[1:]]
    assert found[1] == pytest.approx(float(_descend(tiny, parts)[1].max()), abs=1e-4)


def test_rows_after_a_stop_have_no_score(tiny: OnnxEncoder) -> None:
    run = tiny.begin(QUESTION, CANDIDATES)
    assert np.isnan(run.advance(ALL, 1, stop=lambda: True)).all()
    answers = iter([False, False, *[True] * 99])
    some = tiny.begin(QUESTION, CANDIDATES).advance(ALL, 1, stop=lambda: next(answers))
    assert 0 < np.isnan(some).sum() < len(CANDIDATES)


def test_a_depth_without_a_classifier_is_refused(tiny: OnnxEncoder) -> None:
    with pytest.raises(InputError, match="depth must be one of 1, 3, got 2"):
        tiny.begin(QUESTION, CANDIDATES).advance(ALL, 2)


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
def test_spans_are_inside_the_candidate(tmp_path: Path, head: Head) -> None:
    tiny = encoder(tmp_path / "tiny", tiny_config(head))
    texts = [*CANDIDATES, LONG]
    rows = np.arange(len(texts))
    run = tiny.begin(QUESTION, texts)
    run.advance(rows, 3)
    for text, span in zip(texts, run.read(rows), strict=True):
        if not text:
            assert span is None
            continue
        assert span is not None
        assert 0 <= span.start < span.end <= len(text)
        assert text[span.start : span.end].strip() == text[span.start : span.end]
        assert span.score < 0.0
        assert span.no_answer < 0.0


def test_an_encoder_without_a_reader_finds_no_spans(tmp_path: Path) -> None:
    run = encoder(tmp_path / "tiny", tiny_config(reader=False)).begin(QUESTION, CANDIDATES)
    run.advance(ALL, 3)
    assert run.read(ALL) == [None] * len(CANDIDATES)


def test_no_candidates_give_no_scores(tiny: OnnxEncoder) -> None:
    run = tiny.begin(QUESTION, [])
    assert run.advance(np.zeros(0, np.int64), 1).tolist() == []
    assert run.read(np.zeros(0, np.int64)) == []
    assert run.tokens.tolist() == []


def test_only_needed_sessions_are_created(tiny: OnnxEncoder) -> None:
    tiny.begin(QUESTION, CANDIDATES).advance(ALL, 1)
    assert sorted(tiny._sessions._sessions) == [
        ("classifier", 1, 1),
        ("embedding", 0, 0),
        ("pooler", 1, 1),
    ]


def _adapted(head: Head = "mean", first: int = 0) -> CascadeConfig:
    return replace(tiny_config(head), adapter=Adapter(first, 4))


def _opened(path: Path, of: CascadeConfig, weights: dict[str, Any]) -> OnnxEncoder:
    return load_encoder(ModelFolder.open(runtime_folder(path, of, weights), kind="cascade"))


def _merged(weights: dict[str, Any]) -> dict[str, Any]:
    """The same reader without an adapter: the low-rank products are added to the weights."""
    made = reader_tensors(weights)
    for name in [name for name in made if name.startswith("layers") and ".up." in name]:
        product = made[name].T @ made[name.replace(".up.", ".down.")]
        whole = name.replace(".up.", ".")
        made[whole] = made[whole] + product
    return {
        name: made[name]
        for name in tiny_config("mean").shapes() | tiny_config("first").shapes()
        if name in made
    }


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
@pytest.mark.parametrize("first", [0, 2])
def test_an_adapter_equals_the_sum_of_the_weights(tmp_path: Path, head: Head, first: int) -> None:
    of = _adapted(head, first)
    weights = tensors(of)
    found = _opened(tmp_path / "adapted", of, weights).begin(QUESTION, CANDIDATES).read(ALL)
    whole = _opened(tmp_path / "merged", tiny_config(head), _merged(weights))
    wanted = whole.begin(QUESTION, CANDIDATES).read(ALL)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.start, one.end) == (other.start, other.end)
            assert one.score == pytest.approx(other.score, abs=1e-3)
            assert one.no_answer == pytest.approx(other.no_answer, abs=1e-3)


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
def test_an_adapter_does_not_change_scores(tmp_path: Path, head: Head) -> None:
    of = _adapted(head)
    weights = tensors(of)
    plain = {name: weights[name] for name in tiny_config(head).shapes()}
    scores = []
    for name, shape, own in (("with", of, weights), ("without", tiny_config(head), plain)):
        run = _opened(tmp_path / name, shape, own).begin(QUESTION, CANDIDATES)
        scores.append([run.advance(ALL, depth).tobytes() for depth in (1, 3)])
        run.read(ALL)
    assert scores[0] == scores[1]


def test_a_reader_may_be_deeper_than_the_last_classifier(tmp_path: Path) -> None:
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
    ranking = Cascade(flat, KeepCounts((1,))).rank(QUESTION, CANDIDATES)
    assert len(ranking) == len(CANDIDATES)


def test_an_int8_adapter_is_close_to_float(tmp_path: Path) -> None:
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


def test_spans_do_not_depend_on_depth_or_other_candidates(tmp_path: Path) -> None:
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


def test_reader_sequences_are_longer_than_ranking_sequences(tmp_path: Path) -> None:
    of = replace(tiny_config("mean", positions=512), adapter=Adapter(0, 4))
    encoder = _opened(tmp_path / "tiny", of, tensors(of))
    long = "Jane wrote it . " * 200
    ranked, read = encoder.begin(QUESTION, [long]), encoder.begin_reader([(QUESTION, long)])
    assert [run._sequences.lengths.max() for run in (ranked, read)] == [256, 384]
    (span,) = ranked.read(ALL[:1])
    assert span is not None
    assert 0 <= span.start < span.end <= len(long)


def test_a_ranker_uses_the_adapted_reader(tmp_path: Path) -> None:
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
def test_adapter_tensors_that_do_not_fit_are_refused(
    tmp_path: Path, change: Any, message: str
) -> None:
    of = _adapted()
    weights: dict[str, Any] = tensors(of)
    change(weights)
    with pytest.raises(ModelError, match=message):
        _opened(tmp_path / "tiny", of, weights)
