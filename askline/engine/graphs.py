"""
The encoder's parts as ONNX graphs, built from a model folder's tensors when they are first needed.

All sequences of a batch have the same length, so no graph needs a padding mask and no work is
spent on padding. Int8 dense layers accumulate integers, whose sum does not depend on the order.
The fused operators are ONNX Runtime's own: research/decisions/engine.md says why.

`LayerBuilder` writes the layers of an encoder; each `*_graph` function below returns one complete
ONNX file as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..models.encoder_config import DENSE_INPUTS, EncoderConfig
from .onnx_writer import OnnxGraph

if TYPE_CHECKING:
    from ..models.cascade_config import CascadeConfig

__all__ = [
    "BATCH_AXES",
    "LayerBuilder",
    "Tensors",
    "activations_graph",
    "classifier_graph",
    "context_classifier_graph",
    "embedding_graph",
    "embedding_inputs",
    "key_value_graph",
    "layers_graph",
    "marker_activations_graph",
    "marker_graph",
    "pooler_graph",
    "reader_graph",
    "span_graph",
]

_ONNX_RUNTIME = "com.microsoft"  # the domain of ONNX Runtime's fused operators
BATCH_AXES = ("batch", "tokens")
"""Names of the dimensions whose size differs from batch to batch."""
Tensors = Mapping[str, NDArray[Any]]


@dataclass(slots=True, eq=False)
class LayerBuilder:
    """
    Writes the layers of an encoder into one ONNX graph.

    Methods take and return names of values in the graph.
    """

    config: EncoderConfig
    tensors: Tensors
    graph: OnnxGraph = field(default_factory=OnnxGraph)
    activations: dict[str, str] = field(default_factory=dict)
    """Inputs of the dense layers in the last layer written, without the input of the layer."""
    key_value: tuple[str, str] = ("", "")
    """The keys and the values of the last layer written."""
    _quantized: dict[tuple[str, str], str] = field(default_factory=dict)
    _block_shapes: tuple[str, str] = ("", "")

    def states_input(self) -> str:
        return self.graph.input("states", "float32", (*BATCH_AXES, self.config.width))

    def embedded_input(self) -> str:
        """Inputs as `embedding_inputs` makes them, and their embedding."""
        shape, table = (*BATCH_AXES, self.config.width), self.tensors["words.weight"]
        if table.dtype == np.int8:
            rows = self.graph.input("words", "int8", shape)
            scales = self.graph.input("scales", "float32", (*BATCH_AXES, 1))
            words = self._scaled_words(rows, scales)
        else:
            words = self.graph.input("words", "float32", shape)
        return self._embedding(words, self.graph.input("token_types", "int64", BATCH_AXES))

    def embedding(self, token_ids: str, token_types: str) -> str:  # (batch, tokens, hidden)
        """The embedding of token ids, with the word table inside the graph."""
        node, table = self.graph.node, self.tensors["words.weight"]
        if table.dtype != np.int8:
            words = node("Gather", self.float_constant("words.weight"), token_ids)
        else:
            scales = self.graph.constant(self.tensors["words.scale"].astype(np.float32)[:, None])
            rows = node("Gather", self.graph.constant(table), token_ids)
            words = self._scaled_words(rows, node("Gather", scales, token_ids))
        return self._embedding(words, token_types)

    def _scaled_words(self, rows: str, scales: str) -> str:
        return self.graph.node("Mul", self.graph.node("Cast", rows, to=1), scales)

    def _embedding(self, words: str, token_types: str) -> str:
        node, start = self.graph.node, self.graph.constant(np.zeros(1, np.int64))
        length = node("Shape", token_types, start=1, end=2)
        positions = node("Slice", self.float_constant("positions.weight"), start, length)
        types = node("Gather", self.float_constant("kinds.weight"), token_types)
        return self.norm("norm", node("Add", node("Add", words, positions), types))

    def layer(self, layer: int, states: str, *, first_only: bool = False) -> str:
        """
        One encoder layer, counted from 0.

        (batch, tokens, hidden) → the same shape, or (batch, 1, hidden) with `first_only`, which
        computes the first token alone.
        """
        stem = f"layers.{layer}"
        key, value = self.dense(f"{stem}.key", states), self.dense(f"{stem}.value", states)
        if first_only:
            states = self.first_token(states)
        self.key_value = key, value
        query = self.dense(f"{stem}.query", states)
        is_local = self.config.block and layer % 2 == 0
        attend = self.block_attention if is_local else self.attention
        return self.feed_forward(stem, states, attend(query, key, value))

    def cross_attention_layer(
        self, layer: int, states: str, key_value_cache: tuple[str, str], attention_mask: str
    ) -> str:
        """
        A layer whose tokens also attend to cached tokens, which do not attend to them.

        `key_value_cache` are the cached tokens' keys and values. `attention_mask` has the shape
        (1, 1, tokens, cached + tokens): 0 where a token may attend, a large negative number where
        it may not.
        """
        stem, node = f"layers.{layer}", self.graph.node
        own = self.dense(f"{stem}.key", states), self.dense(f"{stem}.value", states)
        key, value = (
            node("Concat", *both, axis=1) for both in zip(key_value_cache, own, strict=True)
        )
        query = self.dense(f"{stem}.query", states)
        return self.feed_forward(stem, states, self.attention(query, key, value, attention_mask))

    def feed_forward(self, stem: str, states: str, context: str) -> str:
        """The rest of a layer after attention: output projection, feed-forward, both norms."""
        node = self.graph.node
        attended = self.dense(f"{stem}.attended", context)
        states = self.norm(f"{stem}.attention_norm", node("Add", attended, states))
        inner = self.gelu(self.dense(f"{stem}.inner", states))
        self.activations = {"context": context, "middle": states, "activated": inner}
        outer = self.dense(f"{stem}.outer", inner)
        return self.norm(f"{stem}.output_norm", node("Add", outer, states))

    def attention(self, query: str, key: str, value: str, attention_mask: str = "") -> str:
        """Multi-head attention over all tokens of a sequence, or those that the mask allows."""
        mask = ("", "", attention_mask) if attention_mask else ()
        return self.graph.node(
            "MultiHeadAttention",
            *(query, key, value, *mask),
            domain=_ONNX_RUNTIME,
            num_heads=self.config.heads,
        )

    def block_attention(self, query: str, key: str, value: str) -> str:
        """
        Multi-head attention within blocks of equal length.

        The number of tokens must be a multiple of the number of blocks, which is the smallest one
        whose blocks have at most `config.block` tokens.
        """
        node, constant = self.graph.node, self.graph.constant
        if not any(self._block_shapes):
            length, block = node("Shape", query, start=1, end=2), self.config.block
            rounded = node("Add", length, constant(np.array([block - 1], np.int64)))
            blocks = node("Div", rounded, constant(np.array([block], np.int64)))
            sizes = (np.array([size], np.int64) for size in (-1, self.config.width))
            texts, width = map(constant, sizes)
            inside = node("Concat", texts, node("Div", length, blocks), width, axis=0)
            self._block_shapes = inside, node("Shape", query)
        inside, outside = self._block_shapes
        parts = [node("Reshape", one, inside) for one in (query, key, value)]
        return node("Reshape", self.attention(*parts), outside)

    def gelu(self, inputs: str) -> str:
        return self.graph.node("Gelu", inputs, domain=_ONNX_RUNTIME)

    def first_token(self, states: str) -> str:  # (batch, 1, hidden)
        bounds = [self.graph.constant(np.array([bound], np.int64)) for bound in (0, 1, 1)]
        return self.graph.node("Slice", states, *bounds)

    def dense(self, name: str, inputs: str) -> str:
        """An affine map over the last axis, computed in int8 if the weights are stored in int8."""
        stem, _, dense = name.rpartition(".")
        weight = self.tensors[f"{name}.weight"]
        if weight.dtype == np.int8 and dense in DENSE_INPUTS:
            outputs = self.quantized_dense(name, inputs, f"{stem}.{DENSE_INPUTS[dense]}")
        else:
            product = self.graph.node("MatMul", inputs, self.graph.constant(self._weight(name).T))
            outputs = self.graph.node("Add", product, self.float_constant(f"{name}.bias"))
        if f"{name}.down.weight" not in self.tensors:
            return outputs
        return self._add_adapter(name, inputs, outputs)

    def _add_adapter(self, name: str, inputs: str, outputs: str) -> str:
        """Add the low-rank product of a reader's adapter to the outputs of a dense layer."""
        node, constant = self.graph.node, self.graph.constant
        low_rank = node("MatMul", inputs, constant(self._weight(f"{name}.down").T))
        return node("Add", outputs, node("MatMul", low_rank, constant(self._weight(f"{name}.up"))))

    def _weight(self, name: str) -> NDArray[np.float32]:
        """A weight in float; dequantized if it is stored in int8."""
        weight = self.tensors[f"{name}.weight"].astype(np.float32)
        if self.tensors[f"{name}.weight"].dtype == np.int8:
            weight *= self.tensors[f"{name}.scale"].astype(np.float32)[:, None]
        return weight

    def quantized_dense(self, name: str, inputs: str, activation: str) -> str:
        """A dense layer in int8: integer products and sums, then scaled back to float."""
        return self.graph.node(
            "MatMulIntegerToFloat",
            self.quantized_input(activation, inputs),
            self.graph.constant(self.tensors[f"{name}.weight"].T),
            self.float_constant(f"{activation}.scale"),
            self.float_constant(f"{name}.scale"),
            self.graph.constant(self.zero_point(activation)),
            "",
            self.float_constant(f"{name}.bias"),
            domain=_ONNX_RUNTIME,
        )

    def quantized_input(self, activation: str, inputs: str) -> str:
        """An activation in uint8, computed once for all layers that read it."""
        if (activation, inputs) not in self._quantized:
            smooth, smoothed = f"{activation}.smooth", inputs
            if smooth in self.tensors:
                smoothed = self.graph.node("Mul", inputs, self.float_constant(smooth))
            scale = self.float_constant(f"{activation}.scale")
            zero = self.graph.constant(self.zero_point(activation))
            quantized = self.graph.node("QuantizeLinear", smoothed, scale, zero)
            self._quantized[activation, inputs] = quantized
        return self._quantized[activation, inputs]

    def zero_point(self, activation: str) -> NDArray[np.uint8]:
        return self.tensors[f"{activation}.zero"].astype(np.uint8)

    def norm(self, name: str, states: str) -> str:
        return self.graph.node(
            "LayerNormalization",
            states,
            self.float_constant(f"{name}.weight"),
            self.float_constant(f"{name}.bias"),
            axis=-1,
            epsilon=self.config.norm_epsilon,
        )

    def float_constant(self, name: str) -> str:
        return self.graph.constant(self.tensors[name].astype(np.float32))

    def states_output(self, states: str) -> bytes:
        """The finished graph, with these states as its output `output_states`."""
        shape = (*BATCH_AXES, self.config.width)
        self.graph.output(states, "output_states", "float32", shape)
        return self.graph.to_bytes()


def embedding_graph(config: EncoderConfig, tensors: Tensors, layers: int) -> bytes:
    """Inputs of `embedding_inputs` → states after the embeddings and the first `layers` layers."""
    builder = LayerBuilder(config, tensors)
    states = builder.embedded_input()
    for layer in range(layers):
        states = builder.layer(layer, states)
    return builder.states_output(states)


def embedding_inputs(
    tensors: Tensors, token_ids: NDArray[np.int64], token_types: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """
    The inputs of a graph that starts with the embedding, from token ids and token types.

    Both are (batch, tokens); the type is 0 for the question and 1 for the candidate. The rows of
    the word table are looked up here: it stays in the mapped file of the weights, of which a
    question needs a few pages. Inside a graph it would be copied as a whole.
    """
    table = tensors["words.weight"]
    rows = table.take(token_ids, axis=0)  # (batch, tokens, hidden)
    if table.dtype != np.int8:
        return {"words": rows.astype(np.float32), "token_types": token_types}
    scales = tensors["words.scale"].take(token_ids).astype(np.float32)[..., None]
    return {"words": rows, "scales": scales, "token_types": token_types}


def layers_graph(config: EncoderConfig, tensors: Tensors, first: int, last: int) -> bytes:
    """States → states, by the layers from `first` to `last` - 1."""
    builder = LayerBuilder(config, tensors)
    states = builder.states_input()
    for layer in range(first, last):
        states = builder.layer(layer, states)
    return builder.states_output(states)


def pooler_graph(config: CascadeConfig, tensors: Tensors, depth: int) -> bytes:
    """
    States → the input of a classifier that reads the first token, (batch, hidden).

    It takes the states before the classifier's layer and computes that layer for the first token
    alone: a candidate that is dropped here does not pay for the rest of the layer.
    """
    builder = LayerBuilder(config.encoder, tensors)
    first = builder.layer(depth - 1, builder.states_input(), first_only=True)
    pooled = builder.graph.node("ReduceMean", first, axes=[1], keepdims=0)
    builder.graph.output(pooled, "pooled_states", "float32", ("batch", config.encoder.width))
    return builder.graph.to_bytes()


def classifier_graph(config: CascadeConfig, tensors: Tensors, depth: int) -> bytes:
    """Pooled states (batch, hidden) → logits (batch, 1) of the classifier at that depth."""
    builder = LayerBuilder(config.encoder, tensors)
    hidden = builder.graph.input("pooled", "float32", ("batch", config.encoder.width))
    for name in config.classifier_layers(depth):
        hidden = builder.graph.node("Tanh", builder.dense(name, hidden))
    logits = builder.dense(f"classifiers.{depth}.out", hidden)
    builder.graph.output(logits, "logits", "float32", ("batch", 1))
    return builder.graph.to_bytes()


def context_classifier_graph(config: EncoderConfig, tensors: Tensors, depth: int) -> bytes:
    """Mean states of sentences (batch, hidden) → logits (batch, 1) of the context classifier."""
    builder = LayerBuilder(config, tensors)
    pooled = builder.graph.input("pooled", "float32", ("batch", config.width))
    hidden = builder.graph.node("Tanh", builder.dense(f"context.{depth}.dense", pooled))
    logits = builder.dense(f"context.{depth}.out", hidden)
    builder.graph.output(logits, "logits", "float32", ("batch", 1))
    return builder.graph.to_bytes()


def span_graph(config: EncoderConfig, tensors: Tensors) -> bytes:
    """States after the last layer → start and end logits (batch, tokens, 2)."""
    builder = LayerBuilder(config, tensors)
    logits = builder.dense("reader", builder.states_input())
    builder.graph.output(logits, "span_logits", "float32", (*BATCH_AXES, 2))
    return builder.graph.to_bytes()


def reader_graph(config: CascadeConfig, tensors: Tensors) -> bytes:
    """
    The span reader: start and end logits (batch, tokens, 2), from the `reader_tensors` of a model.

    Its input are the states that the last classifier takes, or `embedding_inputs` for a reader with
    an adapter.
    """
    builder, layers = LayerBuilder(config.encoder, tensors), config.encoder.layers
    states = builder.embedded_input() if config.adapter else builder.states_input()
    done = 0 if config.adapter else layers - (config.pooling(layers) == "first")
    for layer in range(done, layers):
        states = builder.layer(layer, states)
    logits = builder.dense("reader", states)
    builder.graph.output(logits, "span_logits", "float32", (*BATCH_AXES, 2))
    return builder.graph.to_bytes()


def key_value_graph(config: EncoderConfig, tensors: Tensors) -> bytes:
    """States → states by all layers, with each layer's `key.N` and `value.N` as outputs."""
    builder = LayerBuilder(config, tensors)
    states = builder.states_input()
    for layer in range(config.layers):
        states = builder.layer(layer, states)
        for value, name in zip(builder.key_value, ("key", "value"), strict=True):
            shape = (*BATCH_AXES, config.width)
            builder.graph.output(value, f"{name}.{layer}", "float32", shape)
    return builder.states_output(states)


def marker_graph(config: EncoderConfig, tensors: Tensors) -> bytes:
    """States of marker tokens → states by all layers, attending to a text's cached keys/values."""
    builder = LayerBuilder(config, tensors)
    states, mask = builder.states_input(), _attention_mask_input(builder)
    for layer in range(config.layers):
        cache = _key_value_inputs(builder, layer)
        states = builder.cross_attention_layer(layer, states, cache, mask)
    return builder.states_output(states)


def activations_graph(config: EncoderConfig, tensors: Tensors, layer: int) -> bytes:
    """States → states by one layer, with the inputs of its dense layers as further outputs."""
    builder = LayerBuilder(config, tensors)
    return _with_activations(builder, builder.layer(layer, builder.states_input()))


def marker_activations_graph(config: EncoderConfig, tensors: Tensors, layer: int) -> bytes:
    """As `activations_graph`, for marker tokens that attend to a text's cached keys/values."""
    builder = LayerBuilder(config, tensors)
    states, mask = builder.states_input(), _attention_mask_input(builder)
    cache = _key_value_inputs(builder, layer)
    return _with_activations(builder, builder.cross_attention_layer(layer, states, cache, mask))


def _with_activations(builder: LayerBuilder, states: str) -> bytes:
    for name, value in builder.activations.items():
        builder.graph.output(value, name, "float32", (*BATCH_AXES, f"{name} channels"))
    return builder.states_output(states)


def _attention_mask_input(builder: LayerBuilder) -> str:
    return builder.graph.input("attention_mask", "float32", (1, 1, "tokens", "all"))


def _key_value_inputs(builder: LayerBuilder, layer: int) -> tuple[str, str]:
    """The cached keys and values of a text at a layer."""
    shape = ("batch", "cached", builder.config.width)
    key, value = (
        builder.graph.input(f"{name}.{layer}", "float32", shape) for name in ("key", "value")
    )
    return key, value
