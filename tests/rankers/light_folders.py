"""Tiny model folders with drawn weights, for rankers that need one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from askline.models.folder import write_folder
from askline.models.light_config import CompareAggregateConfig, ListLayerKind, RelationalCNNConfig
from askline.models.word_vectors import WordVectors
from askline.rankers.paper_networks import compare_aggregate_shapes, relational_cnn_shapes

WORDS = ("the", "rock", "lighthouse", "was", "lit", "in", "first", "storm", "keepers", "coast")


def vectors() -> WordVectors:
    rows = np.random.default_rng(0).standard_normal((len(WORDS), 6)).astype(np.float32)
    return WordVectors.from_rows(WORDS, rows, name="tiny")


def compare_aggregate_folder(path: Path, list_layer: ListLayerKind = "none") -> Path:
    layout = CompareAggregateConfig(
        dimensions=6, filters=4, gate=5, list_layer=list_layer, list_hidden=4
    )
    return _write(path, layout, compare_aggregate_shapes(layout))


def relational_cnn_folder(path: Path) -> Path:
    layout = RelationalCNNConfig(dimensions=6, filters=4, mark=2)
    return _write(path, layout, relational_cnn_shapes(layout))


def _write(
    path: Path,
    layout: CompareAggregateConfig | RelationalCNNConfig,
    shapes: dict[str, tuple[int, ...]],
) -> Path:
    random = np.random.default_rng(1)
    tensors = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    config = layout.to_config()
    return write_folder(path, config=config, tensors=tensors, card="drawn", vectors=vectors())
