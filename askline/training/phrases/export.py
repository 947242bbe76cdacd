"""Trained networks as folders: an extractor to train phrases with, and the phrase model itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ...errors import ModelError
from ...models.encoder_config import EncoderShape, renamed
from ...phrases.model import PhraseConfig, write_phrase_folder
from ...phrases.tokenization import load_tokeniser, overlap_for
from ...text.atomic_write import replacing
from ..transformer.network import read_encoder
from .encoders import first_position
from .extractor import ENDS, Extractor
from .network import PhraseNetwork
from .quantised import quantised_phrases
from .trimming import trim_positions, trim_words

__all__ = [
    "export_phrases",
    "load_extractor",
    "runtime_shape",
    "save_extractor",
    "write_runtime",
]

_HEAD, _KEY = "spans.safetensors", "askline_extractor"
# What the configs of Hugging Face call the sizes of an EncoderShape.
_SIZES = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "inner": "intermediate_size",
    "vocabulary": "vocab_size",
    "positions": "max_position_embeddings",
    "norm_epsilon": "layer_norm_eps",
    "kinds": "type_vocab_size",
}


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
    texts: Sequence[str] = (),
    bits: Literal[4, 8] = 8,
) -> Path:
    """
    The torch-free folder. Only encoders built like BERT can be written, and no `pair` form.

    With `texts`, some paragraphs and questions of the kind to be read, in int8; else in float.
    `bits` are those of a word's embedding in int8 folders. Words and positions that no text can
    reach are left out.
    """
    if network.form == "pair":
        raise ModelError("The pair form encodes a text once for each phrase; it is not exported.")
    shape = runtime_shape(network.encoder)
    window = min(384, shape.positions - shape.first_position)
    state = {
        name.removeprefix("encoder.") if name.startswith("encoder.e") else name: value
        for name, value in network.state_dict().items()
    }
    floats = {name: value.detach().float().cpu().numpy() for name, value in state.items()}
    floats, said = trim_words(trim_positions(floats, window + shape.first_position), tokeniser)
    table = floats["embeddings.word_embeddings.weight"]
    config = PhraseConfig(
        replace(shape, vocabulary=len(table), positions=window + shape.first_position),
        network.form,
        network.phrase.out_features,
        words if network.lexical is not None else 0,
        window,
        overlap_for(window),
    )
    return write_runtime(floats, config, said, folder, card=card, texts=texts, bits=bits)


def write_runtime(
    state: Mapping[str, NDArray[np.float32]],
    config: PhraseConfig,
    tokeniser: str,
    folder: str | PathLike[str],
    *,
    card: str,
    texts: Sequence[str] = (),
    bits: Literal[4, 8] = 8,
) -> Path:
    """
    A network's weights, the encoder's in Hugging Face's names, as the torch-free folder.

    `texts` as for `export_phrases`; `bits` are those of a word's embedding in int8 folders.
    """
    found = renamed(state, config.encoder.layers) | {
        name: state[name] for name in config.heads() if name in state
    }
    wanted = config.shapes()
    floats = {name: np.asarray(found[name], np.float32) for name in wanted}
    tensors: dict[str, NDArray[Any]] = {**floats}
    path = Path(folder).expanduser()
    if texts:
        path.mkdir(parents=True, exist_ok=True)
        with replacing(path / "tokenizer.json") as stream:
            stream.write(tokeniser.encode())
        tensors = quantised_phrases(config, floats, load_tokeniser(path), texts, bits=bits)
    return write_phrase_folder(path, config=config, tensors=tensors, tokeniser=tokeniser, card=card)


def runtime_shape(encoder: Any) -> EncoderShape:
    """The encoder as the torch-free runtime runs it; ModelError for one that it cannot run."""
    config = encoder.config
    missing = [theirs for theirs in _SIZES.values() if not hasattr(config, theirs)]
    if missing:
        raise _unlike_bert(encoder, f"its config has no {', '.join(missing)}")
    if getattr(config, "hidden_act", None) != "gelu":
        raise _unlike_bert(encoder, f"its hidden_act is {config.hidden_act!r}")
    sizes = {ours: getattr(config, theirs) for ours, theirs in _SIZES.items()}
    sizes["norm_epsilon"] = float(sizes["norm_epsilon"])
    shape = EncoderShape(**sizes, first_position=first_position(encoder))
    found = renamed(encoder.state_dict(), shape.layers)
    wrong = [
        name
        for name, wanted in shape.shapes().items()
        if name not in found or tuple(found[name].shape) != wanted
    ]
    if wrong:
        raise _unlike_bert(encoder, f"it has no {', '.join(wrong[:3])} as its config says")
    return shape


def _unlike_bert(encoder: Any, why: str) -> ModelError:
    return ModelError(
        f"The runtime runs encoders built like BERT, with gelu; {type(encoder).__name__} is none: "
        f"{why}."
    )
