"""
Post-training quantization of a cascade to int8, with statistics of activations on real text.

The dense layers of the encoder run in int8. Word embeddings and the wide layers of the classifiers
are stored in int8 by rows but computed in float: they cost little time, and no later layer would
compensate their errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine import graphs
from ..engine.quantization import (
    InputQuantization,
    fit_input_quantization,
    quantize_rows,
    quantize_rows_gptq,
)
from ..engine.sequences import TokenSequences, Windows
from ..engine.sessions import create_session
from ..engine.tokenizer import WordPiece
from ..models.cascade_config import CascadeConfig
from ..models.encoder_config import DENSE_INPUTS
from ..types import Passage, QuestionSet

__all__ = [
    "activation_statistics",
    "layer_activations",
    "pair_batches",
    "quantize_adapter",
    "quantize_cascade",
    "quantize_layer",
    "sample_pairs",
]

FloatArray = NDArray[np.float32]
Pair = tuple[str, str]
TokenBatch = tuple[NDArray[np.int64], NDArray[np.int64]]


def sample_pairs(questions: QuestionSet, count: int) -> list[Pair]:
    """Random questions with one candidate each, alternately an answer and any candidate."""
    random = np.random.default_rng(0)
    kept = [question for question in questions if question.candidates]
    picked = random.permutation(len(kept))[:count]
    pairs = []
    for turn, number in enumerate(picked.tolist()):
        question = kept[number]
        answers = [one for one in question.candidates if one.is_answer]
        among = answers if answers and turn % 2 else question.candidates
        pairs.append((question.text, among[int(random.integers(len(among)))].text))
    return pairs


def activation_statistics(
    layout: CascadeConfig,
    tensors: Mapping[str, FloatArray],
    tokenizer: WordPiece,
    pairs: Sequence[Pair],
) -> Iterator[dict[str, FloatArray]]:
    """For each layer the inputs (tokens, channels) of its dense parts, by name."""
    return layer_activations(layout, tensors, pair_batches(layout, tokenizer, pairs))


def pair_batches(
    layout: CascadeConfig, tokenizer: WordPiece, pairs: Sequence[Pair]
) -> list[TokenBatch]:
    """The tokens of each pair as a batch; of a long candidate, the first window."""
    positions, sequences = layout.encoder.positions, list[TokenBatch]()
    for question, candidate in pairs:
        windows = TokenSequences.for_question(tokenizer, question, [candidate], positions=positions)
        sequences.append(windows.batch(np.zeros(1, np.int64)))
    return sequences


def layer_activations(
    layout: CascadeConfig, tensors: Mapping[str, FloatArray], sequences: Iterable[TokenBatch]
) -> Iterator[dict[str, FloatArray]]:
    """As `activation_statistics`, from token ids and token types, both (batch, tokens)."""
    session = create_session(graphs.embedding_graph(layout.encoder, tensors, 0))
    batches: list[FloatArray] = [
        session.run(None, graphs.embedding_inputs(tensors, *batch))[0] for batch in sequences
    ]
    for layer in range(layout.encoder.layers):
        session = create_session(graphs.activations_graph(layout.encoder, tensors, layer))
        names = [one.name for one in session.get_outputs()]
        found = [
            dict(zip(names, session.run(None, {"states": one}), strict=True)) for one in batches
        ]
        read = {
            name: _flat(one[name] for one in found) for name in names if name != "output_states"
        }
        yield {"input": _flat(batches), **read}
        batches = [one["output_states"] for one in found]


def _flat(batches: Iterator[FloatArray] | Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([one.reshape(-1, one.shape[-1]) for one in batches])


Tensors = dict[str, NDArray[Any]]


def quantize_cascade(
    layout: CascadeConfig,
    tensors: Mapping[str, FloatArray],
    tokenizer: WordPiece,
    pairs: Sequence[Pair],
    windows: Sequence[tuple[str, Passage]] = (),
) -> tuple[CascadeConfig, Tensors]:
    """
    The encoder's dense layers in int8, all else in float16.

    `pairs` are (question, candidate) texts: about a hundred are enough. If the same layers also
    read passages, `windows` are questions with passages. Word embeddings and the classifiers' wide
    layers are kept in int8 too, by their rows, but computed in float: they cost little time, and
    nothing behind a classifier evens an error out.
    """
    made: Tensors = {name: value.astype(np.float16) for name, value in tensors.items()}
    hidden = [name for depth in layout.depths for name in layout.classifier_layers(depth)]
    if layout.context and not layout.adapter:
        hidden += [f"context.{depth}.dense" for depth in layout.context.depths]
    for name in ("words", *hidden):
        weight = tensors[f"{name}.weight"]
        made[f"{name}.weight"], made[f"{name}.scale"] = quantize_rows(weight)
    sequences = pair_batches(layout, tokenizer, pairs)
    if layout.context and windows:
        sample = Windows.for_requests(
            tokenizer, layout.context, [(question, [passage]) for question, passage in windows]
        )
        sequences += [sample.batch(np.array([window])) for window in range(len(sample))]
    for layer, read in enumerate(layer_activations(layout, tensors, sequences)):
        made |= quantize_layer(f"layers.{layer}", tensors, read)
    return replace(layout, precision="int8"), made


def quantize_adapter(own: Mapping[str, FloatArray]) -> dict[str, NDArray[Any]]:
    """Low-rank matrices in int8 by rows, everything else in float16."""
    made: dict[str, NDArray[Any]] = {name: one.astype(np.float16) for name, one in own.items()}
    for name in own:
        if name.endswith((".up.weight", ".down.weight")):
            made[name], made[f"{name.removesuffix('weight')}scale"] = quantize_rows(own[name])
    return made


def quantize_layer(
    stem: str, tensors: Mapping[str, FloatArray], read: Mapping[str, FloatArray]
) -> Tensors:
    """The dense parts of one layer in int8, from their inputs (tokens, channels) by name."""
    made: Tensors = {}
    for point, inputs in read.items():
        names = [f"{stem}.{dense}" for dense, reads in DENSE_INPUTS.items() if reads == point]
        steps = fit_input_quantization(inputs, [tensors[f"{name}.weight"] for name in names])
        for name in names:
            made |= _dense(name, tensors, inputs, steps)
        made[f"{stem}.{point}.scale"] = np.array(steps.scale, np.float32)
        made[f"{stem}.{point}.zero"] = np.array(steps.zero, np.uint8)
        if steps.smooth is not None:
            made[f"{stem}.{point}.smooth"] = steps.smooth
    return _moved_into_value(stem, made)


def _dense(
    name: str, tensors: Mapping[str, FloatArray], inputs: FloatArray, steps: InputQuantization
) -> Tensors:
    """Weights in int8, and a bias that corrects their mean error."""
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    smooth = np.float32(1.0) if steps.smooth is None else steps.smooth
    rounded = steps.fake_quantize(inputs) * smooth
    whole, scale = quantize_rows_gptq(weight / smooth, rounded)
    mean = rounded.mean(axis=0) @ (whole * scale[:, None]).T
    right = bias + inputs.mean(axis=0) @ weight.T - mean
    return {f"{name}.weight": whole, f"{name}.scale": scale, f"{name}.bias": right}


def _moved_into_value(stem: str, made: Tensors) -> Tensors:
    """Move the channel factors of the context into the values, of which it is a mean."""
    smooth = made.pop(f"{stem}.context.smooth", None)
    if smooth is not None:
        made[f"{stem}.value.scale"] = made[f"{stem}.value.scale"] * smooth
        made[f"{stem}.value.bias"] = made[f"{stem}.value.bias"] * smooth
    return made
