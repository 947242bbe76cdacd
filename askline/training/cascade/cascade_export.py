"""
Export of a trained cascade or cross-encoder to a folder that runs without torch.

The result is an askline model folder, in int8 or float32, or a folder with an ONNX file of standard
operators. Its tokens and scores are compared with those of torch. Inputs of the ONNX file are
`input_ids`, `attention_mask` and `token_type_ids`, with padding allowed. Outputs are `logits` at
full depth, `logits_D` at each earlier depth D, and `start_logits` and `end_logits` of the reader.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from ...engine.encoder import OnnxEncoder
from ...engine.graphs import BATCH_AXES, LayerBuilder
from ...engine.sequences import TokenSequences
from ...engine.sessions import create_session
from ...engine.threads import WorkerThreads
from ...engine.tokenizer import WordPiece
from ...errors import InputError, ModelError
from ...models.cascade_config import CascadeConfig, Precision
from ...models.folder import write_folder
from ...models.huggingface import CascadeCheckpoint
from ...text.atomic_write import atomic_write
from ..post_training_quantization import Pair, quantize_cascade
from ..transformer.pair_network import import_transformers
from .cascade_network import torch_folder

__all__ = [
    "Agreement",
    "Exported",
    "Format",
    "StandardOnnxGraph",
    "agreement",
    "check_tokens",
    "export_cascade",
    "onnx_file",
    "torch_scores",
]

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How result scores are to those of torch."""

    largest: float
    correlation: float
    """At full depth; `largest` is the largest difference over all depths."""


def agreement(found: FloatArray, wanted: FloatArray) -> Agreement:
    """Compare scores, both (depths, pairs)."""
    largest = float(np.abs(found - wanted).max())
    same = len(found[-1]) < 2 or np.ptp(wanted[-1]) == 0
    return Agreement(largest, 1.0 if same else float(np.corrcoef(found[-1], wanted[-1])[0, 1]))


def check_tokens(source: CascadeCheckpoint, tokenizer: WordPiece, pairs: Sequence[Pair]) -> None:
    """Raise ModelError if askline tokenizes a text differently from the tokenizers library."""
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_str(source.tokenizer.decode())
    theirs.no_truncation()
    theirs.no_padding()
    for text in (text for pair in pairs for text in pair):
        found, wanted = tokenizer.token_ids(text), theirs.encode(text, add_special_tokens=False).ids
        if found != wanted:
            raise ModelError(f"{source.path}: {text!r} must be the tokens {wanted}, got {found}.")


@torch.inference_mode()
def torch_scores(
    source: CascadeCheckpoint, tokenizer: WordPiece, pairs: Sequence[Pair]
) -> FloatArray:
    """Logits (depths, pairs) by transformers' BERT; of a long candidate only the first window."""
    encoder = _bert(source)
    scores = np.empty((len(source.config.depths), len(pairs)), np.float32)
    for at, (question, candidate) in enumerate(pairs):
        positions = source.config.encoder.positions
        windows = TokenSequences.for_question(tokenizer, question, [candidate], positions=positions)
        numbers, kinds = (torch.from_numpy(one) for one in windows.batch(np.zeros(1, np.int64)))
        states = encoder(
            input_ids=numbers, token_type_ids=kinds, output_hidden_states=True
        ).hidden_states
        for row, depth in enumerate(source.config.depths):
            scores[row, at] = _classified(source, depth, states[depth][0])
    return scores


def _bert(source: CascadeCheckpoint) -> Any:
    library = import_transformers()
    config = library.BertConfig.from_pretrained(source.path)
    encoder = library.BertModel(config, add_pooling_layer=False).eval()
    found = load_file(source.path / "model.safetensors")
    stripped = {name.removeprefix("bert."): value.float() for name, value in found.items()}
    missing = encoder.load_state_dict(stripped, strict=False).missing_keys
    if missing:
        raise ModelError(f"model.safetensors in {source.path} has no {', '.join(missing)}.")
    return encoder


def _classified(source: CascadeCheckpoint, depth: int, states: torch.Tensor) -> float:
    """(tokens, width) → a logit"""
    pooled = states[0] if source.config.pooling(depth) == "first" else states.mean(dim=0)
    for name in source.config.classifier_layers(depth):
        pooled = torch.tanh(_dense(source, name, pooled))
    return float(_dense(source, f"classifiers.{depth}.out", pooled))


def _dense(source: CascadeCheckpoint, name: str, inputs: torch.Tensor) -> torch.Tensor:
    weight, bias = (
        torch.from_numpy(source.tensors[f"{name}.{kind}"]) for kind in ("weight", "bias")
    )
    return torch.nn.functional.linear(inputs, weight, bias)


def onnx_file(config: CascadeConfig, tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """The whole network with all classifiers."""
    builder = StandardOnnxGraph(config.encoder, tensors)
    graph = builder.graph
    numbers, mask, kinds = (
        graph.input(name, "int64", BATCH_AXES)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    builder.hide(mask)
    states = builder.embedding(numbers, kinds)
    for layer in range(config.depths[-1]):
        states = builder.layer(layer, states)
        if layer + 1 in config.depths:
            name = "logits" if layer + 1 == config.depths[-1] else f"logits_{layer + 1}"
            graph.output(
                builder.classified(config, layer + 1, states), name, "float32", ("pairs", 1)
            )
    if config.reader:
        ends = graph.split(builder.dense("reader", states), (1, 1), axis=2)
        for made, name in zip(ends, ("start_logits", "end_logits"), strict=True):
            axis = graph.constant(np.array([2], np.int64))
            graph.output(graph.node("Squeeze", made, axis), name, "float32", BATCH_AXES)
    return graph.to_bytes()


@dataclass(slots=True, eq=False)
class StandardOnnxGraph(LayerBuilder):
    """Uses only standard operators; padding is masked in attention and means."""

    _shown: str = ""  # (pairs, tokens, 1): 1 for a token, 0 for padding
    _hidden: str = ""  # (pairs, 1, 1, tokens): 0 for a token, far below it for padding

    def hide(self, mask: str) -> None:
        """Use `mask` (pairs, tokens) for all attention layers."""
        node, const = self.graph.node, self.graph.constant
        floats = node("Cast", mask, to=1)
        self._shown = node("Unsqueeze", floats, const(np.array([2], np.int64)))
        wide = node("Unsqueeze", floats, const(np.array([1, 2], np.int64)))
        less = node("Sub", wide, const(np.float32(1.0)))
        self._hidden = node("Mul", less, const(np.float32(1e9)))

    def attention(self, query: str, key: str, value: str, attention_mask: str = "") -> str:
        node, const = self.graph.node, self.graph.constant
        heads, width = self.config.heads, self.config.width
        apart = const(np.array([0, 0, heads, width // heads], np.int64))

        def turned(states: str, order: list[int]) -> str:
            return node("Transpose", node("Reshape", states, apart), perm=order)

        scores = node("MatMul", turned(query, [0, 2, 1, 3]), turned(key, [0, 2, 3, 1]))
        scores = node("Mul", scores, const(np.float32(1.0 / math.sqrt(width // heads))))
        shares = node("Softmax", node("Add", scores, attention_mask or self._hidden), axis=-1)
        context = node("MatMul", shares, turned(value, [0, 2, 1, 3]))
        together = const(np.array([0, 0, width], np.int64))
        return node("Reshape", node("Transpose", context, perm=[0, 2, 1, 3]), together)

    def gelu(self, inputs: str) -> str:
        node, const = self.graph.node, self.graph.constant
        bent = node("Erf", node("Mul", inputs, const(np.float32(math.sqrt(0.5)))))
        half = node("Mul", inputs, const(np.float32(0.5)))
        return node("Mul", half, node("Add", bent, const(np.float32(1.0))))

    def quantized_dense(self, name: str, inputs: str, activation: str) -> str:
        """Quantize and dequantize (QDQ): runtimes recognize the pattern and compute in int8."""
        node, const = self.graph.node, self.graph.constant
        scale, zero = self.float_constant(f"{activation}.scale"), const(self.zero_point(activation))
        rounded = node("DequantizeLinear", self.quantized_input(activation, inputs), scale, zero)
        whole = const(self.tensors[f"{name}.weight"].T)
        weight = node("DequantizeLinear", whole, self.float_constant(f"{name}.scale"), axis=1)
        return node("Add", node("MatMul", rounded, weight), self.float_constant(f"{name}.bias"))

    def classified(self, config: CascadeConfig, depth: int, states: str) -> str:
        """Logits (pairs, 1) from the states at a depth."""
        node, axis = self.graph.node, self.graph.constant(np.array([1], np.int64))
        if config.pooling(depth) == "first":
            pooled = node("Squeeze", self.first_token(states), axis)
        else:
            total = node("ReduceSum", node("Mul", states, self._shown), axis, keepdims=0)
            pooled = node("Div", total, node("ReduceSum", self._shown, axis, keepdims=0))
        for name in config.classifier_layers(depth):
            pooled = node("Tanh", self.dense(name, pooled))
        return self.dense(f"classifiers.{depth}.out", pooled)


Format = Literal["askline", "onnx"]


_MAX_FLOAT_DIFFERENCE = 1e-3  # explained by rounding
_MIN_INT8_CORRELATION = 0.99  # a correct export has 0.999
_CHECKED_PAIRS = 24  # scored by torch as well
_KEPT_KEYS = ("schedule", "calibration", "threshold")  # of the trained config, if set


@dataclass(frozen=True, slots=True)
class Exported:
    """The exported folder and its agreement with torch."""

    path: Path
    bytes: int
    agreement: Agreement

    @property
    def summary(self) -> str:
        """One line for the terminal."""
        return (
            f"{self.path}: {self.bytes / 1e6:.1f} MB. Against torch: correlation "
            f"{self.agreement.correlation:.5f}, largest difference {self.agreement.largest:.2g}."
        )


def export_cascade(
    folder: str | PathLike[str],
    out: str | PathLike[str],
    *,
    precision: Precision = "int8",
    to_format: Format = "askline",
    last_depth: int | None = None,
    pairs: Sequence[Pair],
) -> Exported:
    """
    Write an askline model folder or an ONNX folder.

    `pairs` are (question, candidate) texts: int8 scales are fitted to them, and the scores of some
    of them must agree with those of torch. Classifiers after `last_depth` are left out; their
    layers are kept, and a reader may be trained on them.
    """
    source, target = CascadeCheckpoint.read(torch_folder(folder)), Path(out).expanduser()
    source = source if last_depth is None else source.up_to(last_depth)
    if target.exists() and target.resolve() == source.path.resolve():
        raise InputError(f"--out must be another folder than {source.path}, which is read.")
    if not pairs:
        raise InputError("At least one (question, candidate) pair is needed to check the export.")
    tokenizer = WordPiece.load(source.path / "tokenizer.json")
    checked = pairs[:: max(1, len(pairs) // _CHECKED_PAIRS)]
    check_tokens(source, tokenizer, checked)
    wanted = torch_scores(source, tokenizer, checked)
    config, tensors = source.config, dict[str, NDArray[Any]](source.tensors)
    if precision == "int8":
        config, tensors = quantize_cascade(config, source.tensors, tokenizer, pairs)
    if to_format == "onnx":
        file = onnx_file(config, tensors)
        found = _by_file(file, config, tokenizer, checked)
    else:
        found = _by_engine(OnnxEncoder(config, tensors, tokenizer, WorkerThreads(1)), checked)
    result = agreement(found, wanted)
    _check_agreement(result, precision)
    if to_format == "onnx":
        _write_onnx(source, target, file, result)
    else:
        _write_runtime(source, target, config, tensors, result)
    size = sum(one.stat().st_size for one in target.iterdir() if one.is_file())
    return Exported(target, size, result)


def _by_engine(encoder: OnnxEncoder, pairs: Sequence[Pair]) -> FloatArray:
    scores = np.empty((len(encoder.depths), len(pairs)), np.float32)
    for at, (question, candidate) in enumerate(pairs):
        run = encoder.begin(question, [_first_window(encoder, question, candidate)])
        for row, depth in enumerate(encoder.depths):
            scores[row, at] = run.advance(np.zeros(1, np.int64), depth)[0]
    return scores


def _first_window(encoder: OnnxEncoder, question: str, candidate: str) -> str:
    """The part of a candidate that is in its first window; nearly always all of it."""
    positions = encoder.config.encoder.positions
    windows = TokenSequences.for_question(
        encoder.tokenizer, question, [candidate], positions=positions
    )
    if len(windows) == 1:
        return candidate
    end = encoder.tokenizer.tokens_with_offsets(candidate)[len(windows.suffixes[0]) - 2][2]
    return candidate[:end]


def _by_file(
    file: bytes, config: CascadeConfig, tokenizer: WordPiece, pairs: Sequence[Pair]
) -> FloatArray:
    session = create_session(file)
    names = [f"logits_{depth}" for depth in config.depths[:-1]] + ["logits"]
    scores = np.empty((len(names), len(pairs)), np.float32)
    for at, (question, candidate) in enumerate(pairs):
        positions = config.encoder.positions
        windows = TokenSequences.for_question(tokenizer, question, [candidate], positions=positions)
        numbers, kinds = windows.batch(np.zeros(1, np.int64))
        inputs = {"input_ids": numbers, "token_type_ids": kinds}
        found = session.run(names, {**inputs, "attention_mask": np.ones_like(numbers)})
        scores[:, at] = [one[0, 0] for one in found]
    return scores


def _check_agreement(result: Agreement, precision: Precision) -> None:
    if precision == "float32" and not result.largest <= _MAX_FLOAT_DIFFERENCE:
        raise ModelError(
            f"The exported scores must be within {_MAX_FLOAT_DIFFERENCE} of torch's, "
            f"got {result.largest:.2g}."
        )
    if precision == "int8" and not result.correlation >= _MIN_INT8_CORRELATION:
        raise ModelError(
            f"The int8 scores must correlate with torch's by {_MIN_INT8_CORRELATION} or more, got "
            f"{result.correlation:.4f}. Use --precision float32, or calibrate on texts that are "
            "more like those that the model will read."
        )


def _write_runtime(
    source: CascadeCheckpoint,
    target: Path,
    config: CascadeConfig,
    tensors: Mapping[str, NDArray[Any]],
    result: Agreement,
) -> None:
    theirs = json.loads((source.path / "config.json").read_text(encoding="utf-8"))
    entry = theirs.get("askline_cascade", {})
    kept = {key: entry[key] for key in _KEPT_KEYS if key in entry}
    write_folder(
        target,
        config={**config.to_config(), **kept},
        tensors=tensors,
        card=_card(source, result, config.precision),
        files={"tokenizer.json": source.tokenizer},
    )


def _write_onnx(source: CascadeCheckpoint, target: Path, file: bytes, result: Agreement) -> None:
    target.mkdir(parents=True, exist_ok=True)
    files = {"model.onnx": file, "README.md": _card(source, result, "ONNX").encode()}
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if (source.path / name).is_file():
            files[name] = (source.path / name).read_bytes()
    for name, content in files.items():
        with atomic_write(target / name) as stream:
            stream.write(content)


def _card(source: CascadeCheckpoint, result: Agreement, kind: str) -> str:
    """The card of the trained folder with a section about the export."""
    own = source.path / "README.md"
    text = own.read_text(encoding="utf-8").rstrip() if own.is_file() else "# cascade"
    return (
        f"{text}\n\n## Export\n\nExported as {kind}. Against torch on "
        f"{_CHECKED_PAIRS} pairs: correlation {result.correlation:.5f} at full depth, largest "
        f"difference {result.largest:.2g} over all depths, in logits.\n"
    )
