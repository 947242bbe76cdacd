"""How small rerankers for CPUs rank: one padded batch through a dynamically quantised ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askline.engine.encoder import OnnxEncoder
from askline.engine.graphs import STATES
from askline.engine.pair_windows import Windows
from askline.engine.quantization import quantise_rows
from askline.training.cascade.cascade_export import Standard

__all__ = ["padded_inputs", "padded_pass"]


def padded_pass(
    encoder: OnnxEncoder, question: str, candidates: list[str]
) -> Callable[[], NDArray[np.float32]]:
    """From a float encoder; all cores on every product, as ONNX Runtime does by itself."""
    import onnxruntime

    session = onnxruntime.InferenceSession(_graph(encoder), providers=["CPUExecutionProvider"])

    def run() -> NDArray[np.float32]:
        windows = Windows.of(encoder.tokeniser, question, candidates, positions=512)
        inputs = padded_inputs(windows, range(len(candidates)))
        found: NDArray[np.float32] = session.run(None, inputs)[0][:, 0]
        return found

    return run


def padded_inputs(windows: Windows, rows: Sequence[int]) -> dict[str, NDArray[np.int64]]:
    """Some of the pairs as one batch, as long as the longest of them."""
    numbers = np.zeros((len(rows), int(windows.lengths[list(rows)].max())), np.int64)
    mask, kinds = np.zeros_like(numbers), np.zeros_like(numbers)
    for place, row in enumerate(rows):
        head, part = windows.heads[row], windows.parts[row]
        own = [*head, *part]
        numbers[place, : len(own)], mask[place, : len(own)] = own, 1
        kinds[place, len(head) : len(own)] = 1
    return {"input_ids": numbers, "attention_mask": mask, "token_type_ids": kinds}


def _graph(encoder: OnnxEncoder) -> bytes:
    sheet = _Dynamic(encoder.layout, encoder.tensors)
    numbers, mask, kinds = (
        sheet.graph.input(name, "int64", STATES)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    sheet.hide(mask)
    states = sheet.embedding(numbers, kinds)
    for layer in range(encoder.layers):
        states = sheet.layer(layer, states)
    sheet.graph.output(sheet.classified(encoder.layers, states), "logits", "float32", ("pairs", 1))
    return sheet.graph.to_bytes()


@dataclass(slots=True, eq=False)
class _Dynamic(Standard):
    """Every product in int8, its input's range taken anew from each batch."""

    def dense(self, name: str, inputs: str) -> str:
        if not name.startswith("layers."):
            return Standard.dense(self, name, inputs)
        node, const = self.graph.node, self.graph.constant
        whole, scale = quantise_rows(self.tensors[f"{name}.weight"], 64)
        arguments: list[Any] = [
            inputs,
            const(whole.T),
            const(scale),
            "",
            self.floats(f"{name}.bias"),
        ]
        return node("DynamicQuantizeMatMul", *arguments, domain="com.microsoft")
