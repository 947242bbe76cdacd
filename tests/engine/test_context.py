from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askline.engine import layerwise
from askline.engine.encoder import OnnxEncoder, load_encoder
from askline.engine.sequences import Windows, best_span
from askline.engine.tokenizer import WordPiece
from askline.errors import InputError, ModelError
from askline.models.cascade_config import CascadeConfig, ContextConfig
from askline.models.folder import ModelFolder
from askline.training.post_training_quantization import quantize_cascade
from askline.types import Passage, Span

from .tiny_cascades import CANDIDATES, QUESTION, encoder, runtime_folder, tensors, tiny_config
from .tiny_contexts import (
    PASSAGES,
    context_config,
    context_encoder,
    everyone,
    int8_folder,
    reference,
    reference_logit,
)

FloatArray = Any
SENTENCES = sum(len(passage.sentences) for passage in PASSAGES)


def _logits(of: OnnxEncoder, passages: list[Passage], question: str = QUESTION) -> FloatArray:
    """(depths, sentences)"""
    run = of.begin_passages([(question, passages)])
    return np.stack([run.advance(everyone(passages), depth) for depth in of.context_depths])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    return context_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    """In int8."""
    folder = int8_folder(tmp_path_factory.mktemp("small"), context_config())
    return load_encoder(ModelFolder.open(folder, kind="cascade"), threads=2)


def _expected(of: CascadeConfig, windows: Windows) -> tuple[FloatArray, dict[int, list[Any]]]:
    """By torch: logits (depths, sentences), and per sentence its token spans."""
    weights, context = tensors(of), of.context
    assert context is not None
    logits = np.full((len(context.depths), SENTENCES), -np.inf)
    spans: dict[int, list[Any]] = {}
    for ids, second, pieces in zip(
        windows.token_ids, windows.second.tolist(), windows.pieces, strict=True
    ):
        states, ends = reference(of, weights, ids.tolist(), second)
        for piece in pieces:
            for at, depth in enumerate(context.depths):
                logit = reference_logit(weights, depth, states[depth][piece.begin : piece.end])
                logits[at, piece.sentence] = max(logits[at, piece.sentence], logit)
            span = best_span(ends[: piece.end + 1].numpy(), piece.begin + 1)
            if span is not None:
                own = span.shifted(piece.start - piece.begin - 1)
                spans.setdefault(piece.sentence, []).append(own)
    return logits, spans


@pytest.mark.parametrize("first", [0, 1])
def test_logits_are_those_of_the_network(tmp_path: Path, first: int) -> None:
    of = context_config(first)
    made = context_encoder(tmp_path, of)
    assert of.context is not None
    windows = Windows.for_requests(made.tokenizer, of.context, [(QUESTION, PASSAGES)])
    wanted, _ = _expected(of, windows)
    assert np.abs(_logits(made, PASSAGES) - wanted).max() < 1e-4


@pytest.mark.parametrize("depths", [(1, 2, 3), (2,)])
def test_spans_are_those_of_the_network(tmp_path: Path, depths: tuple[int, ...]) -> None:
    of = context_config(depths=depths)
    made = context_encoder(tmp_path, of)
    assert of.context is not None
    windows = Windows.for_requests(made.tokenizer, of.context, [(QUESTION, PASSAGES)])
    _, wanted = _expected(of, windows)
    run = made.begin_passages([(QUESTION, PASSAGES)])
    for depth in depths:
        run.advance(everyone(PASSAGES), depth)
    texts = [text for passage in PASSAGES for text in passage.sentences]
    for number, (text, span) in enumerate(zip(texts, run.read(np.arange(SENTENCES)), strict=True)):
        if not text:
            assert span is None
            continue
        assert span is not None
        best = max(wanted[number], key=lambda one: (one.score, -one.start))
        tokens = made.tokenizer.tokens_with_offsets(text)
        assert (span.start, span.end) == (tokens[best.start][1], tokens[best.end][2])
        assert span.score == pytest.approx(best.score, abs=1e-3)
        lowest = min(one.no_answer for one in wanted[number])
        assert span.no_answer == pytest.approx(lowest, abs=1e-3)


def test_int8_is_close_to_float(tiny: OnnxEncoder, small: OnnxEncoder) -> None:
    wanted, found = _logits(tiny, PASSAGES), _logits(small, PASSAGES)
    for depth in range(3):
        assert np.corrcoef(wanted[depth], found[depth])[0, 1] > 0.95
    assert {one.dtype.name for one in small.tensors.values()} >= {"int8", "float16"}
    assert small.tensors["context.3.dense.weight"].dtype == np.int8


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_bytes_are_the_same_in_any_company(
    precision: str, request: pytest.FixtureRequest
) -> None:
    of: OnnxEncoder = request.getfixturevalue("tiny" if precision == "float32" else "small")
    together = _logits(of, PASSAGES)
    spans = of.begin_passages([(QUESTION, PASSAGES)]).read(np.arange(SENTENCES))
    ends = np.cumsum([0, *(len(passage.sentences) for passage in PASSAGES)])
    random = np.random.default_rng(3)
    for _ in range(6):
        chosen = random.permutation(len(PASSAGES))[: int(random.integers(1, len(PASSAGES) + 1))]
        passages = [PASSAGES[at] for at in chosen]
        rows = np.concatenate([np.arange(ends[at], ends[at + 1]) for at in chosen])
        assert _logits(of, passages).tobytes() == together[:, rows].tobytes()
        found = of.begin_passages([(QUESTION, passages)]).read(np.arange(len(rows)))
        assert found == [spans[row] for row in rows]


def test_the_bytes_are_the_same_on_any_number_of_threads(tmp_path: Path) -> None:
    folder = int8_folder(tmp_path, context_config())
    opened = ModelFolder.open(folder, kind="cascade")
    one, three = (load_encoder(opened, threads=threads) for threads in (1, 3))
    wanted = _logits(one, PASSAGES).tobytes()
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: _logits(three, PASSAGES).tobytes(), range(12)))
    assert set(found) == {wanted}


def test_several_questions_in_one_run(tiny: OnnxEncoder) -> None:
    questions = [(QUESTION, PASSAGES[:3]), ("Who saw it?", PASSAGES[2:5])]
    run = tiny.begin_passages(questions)
    found = run.advance(np.arange(6), 2)
    alone = [_logits(tiny, passages, question)[1] for question, passages in questions]
    assert found.tobytes() == np.concatenate(alone).tobytes()


def test_dropped_passages_cost_nothing_and_change_nothing(tiny: OnnxEncoder) -> None:
    whole = _logits(tiny, PASSAGES)
    run = tiny.begin_passages([(QUESTION, PASSAGES)])
    run.advance(everyone(PASSAGES), 1)
    found = run.advance(np.array([4, 0]), 3)
    owner = np.repeat(np.arange(len(PASSAGES)), [len(one.sentences) for one in PASSAGES])
    kept = np.isin(owner, [0, 4])
    assert found[kept].tobytes() == whole[2, kept].tobytes()
    assert np.isnan(found[~kept]).all()


def test_states_without_room_in_memory_are_computed_again(
    tiny: OnnxEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _logits(tiny, PASSAGES)
    monkeypatch.setattr(layerwise, "_MAX_KEPT_TOKENS", 100)
    run: Any = tiny.begin_passages([(QUESTION, PASSAGES)])
    run.advance(everyone(PASSAGES), 1)
    assert 0 < run._cache.kept.sum() < len(run._windows)
    assert run.advance(everyone(PASSAGES), 3).tobytes() == whole[2].tobytes()


def test_passages_after_a_stop_have_no_score(tiny: OnnxEncoder) -> None:
    run = tiny.begin_passages([(QUESTION, PASSAGES)])
    assert np.isnan(run.advance(everyone(PASSAGES), 1, stop=lambda: True)).all()
    answers = iter([*[False] * 7, *[True] * 99])
    order = everyone(PASSAGES)[::-1].copy()
    run = tiny.begin_passages([(QUESTION, PASSAGES)])
    some = run.advance(order, 1, stop=lambda: next(answers))
    missing = np.isnan(some)
    assert 0 < missing.sum() < SENTENCES
    assert missing[0], "the passage that was named last is the first one left out"
    start = 0
    for passage in PASSAGES:  # all sentences of a passage are reached, or none
        own = missing[start : start + len(passage.sentences)]
        assert own.all() or not own.any()
        start += len(passage.sentences)


def test_the_tokens_of_a_passage_are_those_of_its_windows(tiny: OnnxEncoder) -> None:
    run: Any = tiny.begin_passages([(QUESTION, PASSAGES)])
    assert run.tokens.sum() == run._windows.lengths.sum()
    assert len(run.tokens) == len(PASSAGES)


def test_reading_texts_is_reading_passages_of_one_sentence(tiny: OnnxEncoder) -> None:
    run = tiny.begin(QUESTION, CANDIDATES)
    rows = np.arange(len(CANDIDATES))
    passages = [Passage([text]) for text in CANDIDATES]
    wanted = tiny.begin_passages([(QUESTION, passages)]).read(rows)
    found = run.read(rows)
    assert found == wanted
    assert [span is None for span in found] == [not text for text in CANDIDATES]


def test_a_context_does_not_change_the_scores_of_candidates(
    tmp_path: Path, tiny: OnnxEncoder
) -> None:
    of = tiny_config("mean", reader=False, positions=96)
    weights = {name: tensors(context_config())[name] for name in of.shapes()}
    folder = runtime_folder(tmp_path / "plain", of, weights)
    plain = load_encoder(ModelFolder.open(folder, kind="cascade"))
    rows = np.arange(len(CANDIDATES))
    for depth in of.depths:
        one, other = (
            each.begin(QUESTION, CANDIDATES).advance(rows, depth) for each in (tiny, plain)
        )
        assert one.tobytes() == other.tobytes()


def test_layers_are_merged_when_they_are_needed(tmp_path: Path) -> None:
    made = context_encoder(tmp_path)
    made.begin_passages([(QUESTION, PASSAGES)]).advance(everyone(PASSAGES), 1)
    assert sorted(made.context.sessions._sessions) == [("classifier", 1, 1), ("embedding", 0, 1)]
    assert made.parts_ready == 2


def test_a_cascade_without_context_reads_no_passages(tmp_path: Path) -> None:
    made = encoder(tmp_path / "tiny", tiny_config())
    assert made.context_depths == ()
    with pytest.raises(ModelError, match="has no context"):
        made.begin_passages([(QUESTION, PASSAGES)])


def test_a_depth_without_a_classifier_is_refused(tiny: OnnxEncoder) -> None:
    with pytest.raises(InputError, match="depth must be one of 1, 2, 3, got 4"):
        tiny.begin_passages([(QUESTION, PASSAGES)]).advance(everyone(PASSAGES), 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depths": []}, r"context depths must be from 1 to 3, got \[\]"),
        ({"depths": [1, 4]}, "context depths must be from 1 to 3"),
        ({"depths": [2, 1]}, r"context depths must ascend, got \[2, 1\]"),
        ({"marker": 10_000}, "marker must be a token id from 0 to"),
        ({"max_length": 97}, "max_length must be from 16 to 96, got 97"),
        ({"max_title": -1}, "max_title must be from 0 to 96, got -1"),
    ],
    ids=str,
)
def test_a_context_that_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    config = context_config().to_config()
    config["context"] |= change
    with pytest.raises(ModelError, match=message):
        CascadeConfig.from_config(config, path=Path("config.json"))


def test_without_an_adapter_the_encoder_itself_reads_passages(tmp_path: Path) -> None:
    of = replace(context_config(), adapter=None)
    made = context_encoder(tmp_path, of)
    assert of.context is not None
    windows = Windows.for_requests(made.tokenizer, of.context, [(QUESTION, PASSAGES)])
    expected, _ = _expected(of, windows)
    known = np.isfinite(expected[0])
    assert np.allclose(_logits(made, PASSAGES)[:, known], expected[:, known], atol=1e-4)
    spans = made.begin(QUESTION, CANDIDATES).read(np.arange(2))
    assert all(span is not None for span in spans)


def test_without_an_adapter_one_set_of_scales_serves_pairs_and_passages(tmp_path: Path) -> None:
    of = replace(context_config(), adapter=None)
    weights = tensors(of)
    tokenizer = WordPiece.load(runtime_folder(tmp_path / "float", of, weights) / "tokenizer.json")
    pairs = [(QUESTION, text) for text in CANDIDATES]
    windows = [(QUESTION, passage) for passage in PASSAGES]
    small, stored = quantize_cascade(of, weights, tokenizer, pairs, windows)
    folder = ModelFolder.open(runtime_folder(tmp_path / "int8", small, stored), kind="cascade")
    found = _logits(load_encoder(folder), PASSAGES)[-1]
    exact = _logits(context_encoder(tmp_path / "again", of), PASSAGES)[-1]
    known = np.isfinite(exact)
    assert np.corrcoef(found[known], exact[known])[0, 1] > 0.95
    assert stored["context.3.dense.weight"].dtype == np.int8


def test_a_context_without_depths_is_refused() -> None:
    entry = context_config().to_config() | {"context": {"marker": 1}}
    with pytest.raises(ModelError, match="does not describe a cascade"):
        CascadeConfig.from_config(entry, path=Path("config.json"))


def test_the_config_comes_back_with_the_entries_of_the_ranker() -> None:
    schedule = {"schedule": {"enter": 20, "keeps": {"2": 9}}, "answer": {"2": {"logit": 1.0}}}
    context = ContextConfig((1, 3), marker=4, max_length=64, ranking=schedule)
    of = replace(context_config(), context=context)
    entry = of.to_config()["context"]
    assert entry["schedule"] == schedule["schedule"]
    assert entry["depths"] == [1, 3]
    assert CascadeConfig.from_config(of.to_config(), path=Path("config.json")) == of


def test_context_tensors_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    of = context_config()
    weights = tensors(of)
    del weights["context.2.out.bias"]
    with pytest.raises(ModelError, match=r"context.2.out.bias must be \(1,\), got none"):
        load_encoder(ModelFolder.open(runtime_folder(tmp_path, of, weights), kind="cascade"))


def test_an_int8_folder_needs_the_scales_of_the_merged_weights(tmp_path: Path) -> None:
    folder = ModelFolder.open(int8_folder(tmp_path, context_config()), kind="cascade")
    stored = dict(folder.stored_tensors())
    del stored["adapter.layers.1.query.scale"]
    of = CascadeConfig.from_config(folder.config, path=folder.path)
    with pytest.raises(ModelError, match=r"adapter.layers.1.query.scale must be \(32,\), got none"):
        load_encoder(
            ModelFolder.open(runtime_folder(tmp_path / "less", of, stored), kind="cascade")
        )


def test_spans_of_sentences_are_inside_them(small: OnnxEncoder) -> None:
    texts = [text for passage in PASSAGES for text in passage.sentences]
    spans = small.begin_passages([(QUESTION, PASSAGES)]).read(np.arange(SENTENCES))
    for text, span in zip(texts, spans, strict=True):
        assert (span is None) == (not text)
        if isinstance(span, Span):
            assert 0 <= span.start < span.end <= len(text)
