"""A tiny phrase model with a tokenizer of its own, made here; its weights are random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from askline.models.encoder_config import EncoderConfig
from askline.phrases.phrase_model import PhraseConfig, write_phrase_folder

WORDS = (
    "who wrote emma jane austen is a novel author of the dune frank herbert sand planet what "
    "? . , when was born in 1775 1920 paris city france capital where and e ##mma caf ##e "
    "le la ville est une d ' ##s"
).split()
LETTERS = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{mark}" for mark in "abcdefghijklmnopqrstuvwxyz")]


def make_tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: at for at, word in enumerate(dict.fromkeys([*special, *WORDS, *LETTERS]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    return tokenizer


def make_config(tokenizer: Any, **changes: Any) -> PhraseConfig:
    shape = EncoderConfig(2, 16, 2, 32, tokenizer.get_vocab_size(), 128)
    return PhraseConfig(shape, **{"size": 8, "words": 4, "window": 128, "overlap": 80, **changes})


def make_tensors(config: PhraseConfig) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        name: (rng.standard_normal(shape) * 0.3 + ("norm.weight" in name)).astype(np.float32)
        for name, shape in config.shapes().items()
    }


def make_folder(path: Path, **changes: Any) -> Path:
    tokenizer = make_tokenizer()
    config = make_config(tokenizer, **changes)
    return write_phrase_folder(
        path,
        config=config,
        tensors=make_tensors(config),
        tokenizer=tokenizer.to_str(),
        card="# tiny\n",
    )
