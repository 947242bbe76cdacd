"""Tiny cascades as runtime folders, float and int8, on which readers are trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askline.engine.tokenizer import WordPiece
from askline.models.folder import ModelFolder
from askline.training.post_training_quantization import quantize_cascade

from ...engine.tiny_cascades import (
    CANDIDATES,
    QUESTION,
    runtime_folder,
    tensors,
    tiny_config,
    tokenizer_entries,
)

__all__ = ["PAIRS", "folder"]

PAIRS = [(QUESTION, text) for text in CANDIDATES]


@pytest.fixture(params=["float32", "int8"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> ModelFolder:
    of = tiny_config("mean", positions=128)
    weights = tensors(of)
    if request.param == "int8":
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(tokenizer_entries()), encoding="utf-8")
        of, weights = quantize_cascade(of, weights, WordPiece.load(path), PAIRS)
    return ModelFolder.open(runtime_folder(tmp_path / "start", of, weights), kind="cascade")
