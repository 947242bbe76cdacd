"""Trained networks as folders: an extractor to train phrases with, and the phrase model itself."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ...errors import ModelError
from ...phrases.bert import BertShape
from ...phrases.folder import PhraseConfig, write_phrase_folder
from ...phrases.windows import overlap_for
from ...text.writing import replacing
from ..transformer.network import read_encoder
from .encoders import first_position
from .extractor import ENDS, Extractor
from .network import PhraseNetwork

__all__ = ["export_phrases", "load_extractor", "save_extractor"]

_HEAD, _KEY = "spans.safetensors", "askline_extractor"


def save_extractor(
    network: Extractor, tokeniser: str, folder: str | PathLike[str], *, card: str
) -> Path:
    """A Hugging Face folder with one more file; `tokeniser` is the text of its JSON file."""
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    setattr(network.encoder.config, _KEY, network.spans.ends)
    network.encoder.save_pretrained(path)
    save_file(network.spans.state_dict(), path / _HEAD)
    for name, text in (("tokenizer.json", tokeniser), ("README.md", card)):
        with replacing(path / name) as stream:
            stream.write(text.encode())
    return path


def load_extractor(folder: str | PathLike[str]) -> Extractor:
    """The extractor in a folder that `save_extractor` wrote, every weight checked."""
    path = Path(folder).expanduser()
    if not (path / _HEAD).is_file():
        raise ModelError(f"No {_HEAD} in {path}. Name a folder that `train extractor` wrote.")
    ends = json.loads((path / "config.json").read_text(encoding="utf-8")).get(_KEY)
    if ends not in ENDS:
        raise ModelError(f"{path} must name its ends as {' or '.join(ENDS)}, got {ends!r}.")
    network = Extractor(read_encoder(path, plain=False)[0], ends)
    try:
        network.spans.load_state_dict(load_file(path / _HEAD))
    except (SafetensorError, RuntimeError) as error:
        raise ModelError(f"{path / _HEAD} is damaged or of another network: {error}") from error
    return network.eval()


def export_phrases(
    network: PhraseNetwork,
    tokeniser: str,
    folder: str | PathLike[str],
    *,
    card: str,
    words: int = 24,
) -> Path:
    """The torch-free folder. Only encoders built like BERT can be written, and no `pair` form."""
    if network.form == "pair":
        raise ModelError("The pair form encodes a text once for each phrase; it is not exported.")
    shape = _shape(network.encoder)
    window = min(384, shape.positions - shape.first_position)
    config = PhraseConfig(
        shape,
        network.form,
        network.phrase.out_features,
        words if network.lexical is not None else 0,
        window,
        overlap_for(window),
    )
    wanted = config.weights()
    state = {
        name.removeprefix("encoder.") if name.startswith("encoder.e") else name: value
        for name, value in network.state_dict().items()
    }
    missing = sorted(wanted.keys() - state.keys())
    if missing:
        raise ModelError(f"The encoder is not built like BERT: it has no {', '.join(missing[:3])}.")
    weights = {name: state[name].detach().float().cpu().numpy() for name in wanted}
    return write_phrase_folder(
        folder, config=config, weights=weights, tokeniser=tokeniser, card=card
    )


def _shape(encoder: Any) -> BertShape:
    config = encoder.config
    if config.hidden_act != "gelu":
        raise ModelError(f"The runtime knows gelu alone, got {config.hidden_act!r}.")
    return BertShape(
        config.num_hidden_layers,
        config.hidden_size,
        config.num_attention_heads,
        config.intermediate_size,
        config.vocab_size,
        config.max_position_embeddings,
        config.type_vocab_size,
        first_position(encoder),
        float(config.layer_norm_eps),
    )
