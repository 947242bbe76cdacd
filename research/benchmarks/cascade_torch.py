"""A runtime folder's cascade in torch, by the numbers that its int8 weights stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from askline.models.cascade_config import CascadeLayout
from askline.models.encoder_config import renamed
from askline.models.folder import ModelFolder
from askline.training.cascade.cascade_network import CascadeNetwork, CascadeShape
from askline.training.reader.reader_network import float_tensors
from askline.training.transformer.pair_network import transformers


def torch_network(path: Path) -> CascadeNetwork:
    """Without the reader, which has an adapter."""
    folder = ModelFolder.open(path, kind="cascade")
    layout = CascadeLayout.from_config(folder.config, path=path)
    library, own = transformers(), layout.encoder
    config = library.BertConfig(
        vocab_size=own.vocabulary,
        hidden_size=own.width,
        num_hidden_layers=own.layers,
        num_attention_heads=own.heads,
        intermediate_size=own.inner,
        max_position_embeddings=own.positions,
        layer_norm_eps=own.norm_epsilon,
    )
    encoder = library.BertModel(config, add_pooling_layer=False)
    network = CascadeNetwork(encoder, CascadeShape(layout.depths, layout.head, reader=False))
    found = float_tensors(folder.stored())
    state = {name: value for name, value in found.items() if name.startswith("classifiers.")}
    names = np.array([*encoder.state_dict()])
    for ours, theirs in renamed(dict(zip(names, names, strict=True)), own.layers).items():
        state[f"encoder.{theirs}"] = found[ours]
    wrong = network.load_state_dict(
        {name: torch.from_numpy(value) for name, value in state.items()}, strict=False
    )
    missing = [name for name in wrong.missing_keys if not name.endswith("position_ids")]
    if missing or wrong.unexpected_keys:
        raise SystemExit(f"{path}: missing {missing}, too many {wrong.unexpected_keys}")
    return network.eval()


def torch_tokeniser(path: Path) -> Any:
    """The folder's tokeniser as Hugging Face has one."""
    return transformers().PreTrainedTokenizerFast(
        tokenizer_file=str(path / "tokenizer.json"),
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
