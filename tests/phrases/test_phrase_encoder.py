"""The encoder against a reference in numpy with explicit attention masks; the choice of spans."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from askline.errors import InputError, UnknownNameError
from askline.phrases.phrase_encoder import (
    Decoding,
    PhraseEncoder,
    decode_spans,
    marker_attention_mask,
)
from askline.phrases.phrase_model import PhraseConfig

from .models import make_config, make_tensors

Floats = NDArray[np.float32]
TOKENS = np.array([2, 9, 14, 30, 7, 21, 3], np.int32)
SPANS = np.array([[1, 2], [3, 3], [2, 5]], np.int32)


@pytest.fixture(params=[{}, {"kinds": 1, "first_position": 2}], ids=["bert", "roberta"])
def config(request: pytest.FixtureRequest, tokenizer: Any) -> PhraseConfig:
    whole = make_config(tokenizer)
    return replace(whole, encoder=replace(whole.encoder, **request.param))


def _reference(
    config: PhraseConfig, weights: dict[str, Floats], tokens: Any, places: Any, sight: Floats
) -> Floats:
    """All tokens at once; `sight` (tokens, tokens) is 0 or minus infinity."""
    shape, text = config.encoder, len(TOKENS)
    kinds = [0] * text + [min(1, shape.kinds - 1)] * (len(tokens) - text)
    states = weights["words.weight"][tokens] + weights["kinds.weight"][kinds]
    states = states + weights["positions.weight"][places + shape.first_position]
    states = _norm(states, weights, "norm")
    size = shape.width // shape.heads
    for layer in range(shape.layers):
        stem = f"layers.{layer}"
        query, key, value = (
            _dense(weights, f"{stem}.{name}", states).reshape(-1, shape.heads, size)
            for name in ("query", "key", "value")
        )
        scores = np.einsum("qhd,khd->hqk", query, key) / math.sqrt(size) + sight
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        context = np.einsum("hqk,khd->qhd", shares, value).reshape(len(states), -1)
        attended = _dense(weights, f"{stem}.attended", context)
        states = _norm(states + attended, weights, f"{stem}.attention_norm")
        inner = _dense(weights, f"{stem}.inner", states)
        bent = np.vectorize(math.erf)(inner / math.sqrt(2))
        outer = _dense(weights, f"{stem}.outer", inner * (1 + bent) / 2)
        states = _norm(states + outer, weights, f"{stem}.output_norm")
    return np.asarray(states, np.float32)


def _dense(weights: dict[str, Floats], name: str, inputs: Floats) -> Floats:
    return np.asarray(inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])


def _norm(states: Floats, weights: dict[str, Floats], name: str) -> Floats:
    centred = states - states.mean(-1, keepdims=True)
    scaled = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-12)
    return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])


def test_states_of_text_and_markers_equal_the_reference(config: PhraseConfig) -> None:
    weights = make_tensors(config)
    encoder = PhraseEncoder(config.encoder, weights)
    states, sight = encoder.encode(TOKENS, keep=True)
    marks = encoder.encode_markers(TOKENS[SPANS], SPANS, sight)
    count, pairs = len(TOKENS), 2 * len(SPANS)
    may = np.full((count + pairs, count + pairs), -np.inf, np.float32)
    may[:, :count] = 0
    for pair in range(len(SPANS)):
        own = slice(count + 2 * pair, count + 2 * pair + 2)
        may[own, own] = 0
    tokens = np.concatenate([TOKENS, TOKENS[SPANS].ravel()])
    places = np.concatenate([np.arange(count), SPANS.ravel()])
    wanted = _reference(config, weights, tokens, places, may)
    assert np.abs(states - wanted[:count]).max() < 1e-4
    assert np.abs(marks.reshape(pairs, -1) - wanted[count:]).max() < 1e-4


def test_markers_do_not_attend_to_each_other(config: PhraseConfig) -> None:
    encoder = PhraseEncoder(config.encoder, make_tensors(config))
    _, sight = encoder.encode(TOKENS, keep=True)
    together = encoder.encode_markers(TOKENS[SPANS], SPANS, sight)
    for at, span in enumerate(SPANS):
        alone = encoder.encode_markers(TOKENS[span][None], span[None], sight)
        assert np.abs(alone[0] - together[at]).max() < 1e-5


def test_a_text_without_markers_keeps_nothing(config: PhraseConfig) -> None:
    states, sight = PhraseEncoder(config.encoder, make_tensors(config)).encode(TOKENS)
    assert states.shape == (len(TOKENS), config.encoder.width)
    assert sight == {}


def test_the_attention_mask_hides_other_pairs_only() -> None:
    open_ones = marker_attention_mask(2, 3)[0, 0] == 0
    assert open_ones.astype(int).tolist() == [
        [1, 1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 0, 0],
        [1, 1, 1, 0, 0, 1, 1],
        [1, 1, 1, 0, 0, 1, 1],
    ]


def test_int8_embeddings_are_dequantized(config: PhraseConfig) -> None:
    table = np.array([[1, -2], [3, 4]], np.int8)
    scale = np.array([0.5, 2.0], np.float32)
    encoder = PhraseEncoder(config.encoder, {"words.weight": table, "words.scale": scale})
    assert encoder.word_vectors(np.array([1, 0])).tolist() == [[6, 8], [0.5, -1]]


NO = -np.inf


def _tables() -> tuple[np.ndarray, np.ndarray]:
    starts = np.log(np.array([0.6, 0.3, 0.1], np.float32))
    with np.errstate(divide="ignore"):
        ends = np.log(np.array([[0.98, 0.02, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], np.float32))
    return starts, ends


def test_joint_takes_the_likeliest_spans() -> None:
    spans, log_probabilities = decode_spans(*_tables(), limit=3)
    assert spans.tolist() == [[0, 0], [1, 1], [1, 2]]
    assert np.exp(log_probabilities) == pytest.approx([0.588, 0.15, 0.15], rel=1e-4)


def test_beam_gives_each_start_its_ends() -> None:
    spans, _ = decode_spans(*_tables(), limit=4, decoding="beam")
    assert sorted(spans.tolist()) == [[0, 0], [0, 1], [1, 1], [1, 2]]


@pytest.mark.parametrize("how", ["joint", "beam"])
def test_impossible_spans_are_never_returned(how: Decoding) -> None:
    spans, log_probabilities = decode_spans(*_tables(), limit=100, decoding=how)
    assert len(spans) == 5
    assert np.isfinite(log_probabilities).all()
    assert (spans[:, 0] <= spans[:, 1]).all()


@pytest.mark.parametrize("how", ["joint", "beam"])
def test_no_possible_span_gives_no_result(how: Decoding) -> None:
    spans, log_probabilities = decode_spans(
        np.full(3, NO, np.float32), np.full((3, 2), NO, np.float32), decoding=how
    )
    assert spans.shape == (0, 2)
    assert len(log_probabilities) == 0


def test_joint_agrees_with_trying_every_span() -> None:
    rng = np.random.default_rng(1)
    starts, ends = rng.normal(size=9).astype(np.float32), rng.normal(size=(9, 4)).astype(np.float32)
    spans, log_probabilities = decode_spans(starts, ends, limit=7)
    every = sorted(
        ((starts[at] + ends[at, more], at, at + more) for at in range(9) for more in range(4)),
        reverse=True,
    )
    assert spans.tolist() == [[at, end] for _, at, end in every[:7]]
    assert log_probabilities == pytest.approx([score for score, _, _ in every[:7]])


def test_spans_that_differ_by_minor_tokens_are_one() -> None:
    # "the red house ." with an article and a full stop that do not count at the ends
    starts = np.log(np.array([0.5, 0.4, 0.1, 1e-9], np.float32))
    ends = np.log(np.array([[0.1, 0.2, 0.5, 0.2]] * 4, np.float32))
    ends[1:, 3] = ends[2:, 2] = ends[3:, 1] = NO  # they would end after the text
    minor = np.array([True, False, False, True])
    spans, log_probabilities = decode_spans(starts, ends, limit=10, minor=minor)
    # "the red house" stands for "red house", "the red house ." and "red house ."
    assert [0, 2] in spans.tolist()
    assert not {(0, 3), (1, 2), (1, 3)} & {tuple(span) for span in spans.tolist()}
    # "the" and "." alone have no other token, so neither is a variant of anything
    assert {(0, 0), (3, 3)} <= {tuple(span) for span in spans.tolist()}
    assert list(log_probabilities) == sorted(log_probabilities, reverse=True)
    assert len(decode_spans(starts, ends, limit=2, minor=minor)[0]) == 2


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="limit and beam must be at least 1, got 0 and 2"):
        decode_spans(*_tables(), limit=0)
    with pytest.raises(UnknownNameError, match="No decoding 'greedy'. Known: beam, joint"):
        decode_spans(*_tables(), decoding="greedy")  # type: ignore[arg-type]
