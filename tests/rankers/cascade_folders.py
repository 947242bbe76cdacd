"""A tiny cascade with drawn weights, as a runtime folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from askline.models.cascade_config import CascadeConfig
from askline.models.encoder_config import EncoderConfig
from askline.models.folder import write_folder

_WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "rock", "lighthouse", "lit", "in", "a", "##s")
_TOKENISER = {
    "model": {
        "type": "WordPiece",
        "vocab": {word: number for number, word in enumerate(_WORDS)},
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    },
    "normalizer": {"type": "BertNormalizer", "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}
DEPTHS = (2, 3, 4)


def cascade_folder(path: Path, **config: Any) -> Path:
    shape = EncoderConfig(
        layers=4, width=8, heads=2, inner=12, vocabulary=len(_WORDS), positions=48
    )
    layout = CascadeConfig(shape, DEPTHS)
    random = np.random.default_rng(5)
    tensors = {
        name: random.standard_normal(size).astype(np.float32)
        for name, size in layout.shapes().items()
    }
    return write_folder(
        path,
        config=layout.to_config() | config,
        tensors=tensors,
        card="drawn",
        files={"tokenizer.json": json.dumps(_TOKENISER).encode()},
    )
