"""
Folders of trained phrase models: the extractor, and the exported model that runs without torch.

The export is float or int8, with scales from activations on real text. Word embeddings can be
stored in 4 bits; vocabulary entries and positions that no text can use are removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from ...engine import graphs
from ...engine.quantization import pack_int4, unpack_int4
from ...engine.sessions import create_session
from ...errors import ModelError
from ...models.encoder_config import EncoderConfig
from ...models.huggingface import from_huggingface_names
from ...phrases.phrase_encoder import KeyValueCache, PhraseEncoder, marker_attention_mask
from ...phrases.phrase_model import (
    PhraseConfig,
    PhraseModel,
    document_tensors,
    quantize_matrices,
    read_phrase_folder,
    write_phrase_folder,
)
from ...phrases.tokenization import default_overlap, load_tokenizer
from ...text.atomic_write import atomic_write
from ..post_training_quantization import quantize_layer
from ..transformer.pair_network import import_transformers, load_head, read_encoder
from .phrase_networks import SPAN_ENDS, Extractor, PhraseNetwork, first_position

__all__ = [
    "add_document_encoder",
    "bert_encoder",
    "export_phrases",
    "freeze_words",
    "layer_inputs",
    "load_extractor",
    "prune_positions",
    "prune_words",
    "quantize_phrases",
    "runtime_config",
    "save_extractor",
    "write_runtime",
]

Floats = NDArray[np.float32]
_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_SPARE = re.compile(r"\[unused\d+\]")


def prune_words(state: Mapping[str, Floats], tokenizer: str) -> tuple[dict[str, Floats], str]:
    """
    The state and the tokenizer's JSON without BERT's spare words, all others numbered anew.

    Brackets are words of their own, so no text is ever cut into a spare word. Tokenizers of other
    families have none, and come back as they are.
    """
    entries = json.loads(tokenizer)
    if entries["model"].get("type") != "WordPiece":
        return {**state}, tokenizer
    vocabulary: dict[str, int] = entries["model"]["vocab"]
    kept = sorted((at, word) for word, at in vocabulary.items() if not _SPARE.fullmatch(word))
    places = {old: new for new, (old, _) in enumerate(kept)}
    entries["model"]["vocab"] = {word: places[old] for old, word in kept}
    marks = [mark for mark in entries.get("added_tokens") or () if mark["id"] in places]
    entries["added_tokens"] = [{**mark, "id": places[mark["id"]]} for mark in marks]
    frame = entries.get("post_processor") or {}
    for mark in (frame.get("special_tokens") or {}).values():  # TemplateProcessing
        mark["ids"] = [places[old] for old in mark["ids"]]
    for name in {"sep", "cls"} & frame.keys():  # BertProcessing
        word, old = frame[name]
        frame[name] = [word, places[old]]
    words = state[_WORDS][[old for old, _ in kept]]
    said = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    return {**state, _WORDS: words}, said


def prune_positions(state: Mapping[str, Floats], count: int) -> dict[str, Floats]:
    """The state with only the first `count` position embeddings."""
    return {**state, _POSITIONS: state[_POSITIONS][:count]}


def freeze_words(network: PhraseNetwork) -> None:
    """Round the word embeddings to 4 bits and freeze them; the other layers adapt to it."""
    table = network.encoder.get_input_embeddings().weight
    rounded = unpack_int4(*pack_int4(table.detach().float().cpu().numpy()))
    with torch.no_grad():
        table.copy_(torch.from_numpy(rounded))
    table.requires_grad_(False)


Tensors = dict[str, NDArray[Any]]
_MARKED = 25  # candidates of a window whose markers are looked at


class _Read(NamedTuple):
    """Input states of a layer, for a text and for its markers if it has any."""

    text: Floats  # (1, tokens, width)
    marks: Floats | None


def quantize_phrases(
    config: PhraseConfig,
    tensors: Mapping[str, Floats],
    tokenizer: Any,
    texts: Sequence[str],
    *,
    bits: int = 8,
) -> Tensors:
    """
    The encoder's dense layers in int8, all else small.

    `texts` are paragraphs and questions, about a hundred; what the layers read on them, and on the
    markers of their likeliest phrases, decides the steps. `bits` are those of a word's embedding.
    """
    made = _rest(config, tensors, bits)
    encoder = PhraseEncoder(config.encoder, tensors)
    heads = {name: tensors[name] for name in config.head_shapes()}
    model = PhraseModel(config, encoder, heads, tokenizer)
    for layer, read in enumerate(layer_inputs(model, encoder, texts)):
        made |= quantize_layer(f"layers.{layer}", tensors, read)
    return made


def _rest(config: PhraseConfig, tensors: Mapping[str, Floats], bits: int) -> Tensors:
    """Everything but the dense layers: words by rows or in 4 bits, heads by rows."""
    made: Tensors = quantize_matrices({name: tensors[name] for name in config.head_shapes()})
    for name in config.encoder.shapes():
        made[name] = tensors[name].astype(np.float16)
    if bits == 4:
        made["words.weight"], made["words.scale"] = pack_int4(tensors["words.weight"])
    else:
        made |= quantize_matrices({"words.weight": tensors["words.weight"]})
    return made


def layer_inputs(
    model: PhraseModel, encoder: PhraseEncoder, texts: Sequence[str]
) -> Iterator[dict[str, Floats]]:
    """For each layer the inputs (tokens, channels) of its dense parts, by name."""
    config, tensors = encoder.config, encoder.tensors
    batches = [read for text in texts for read in _embedded(model, encoder, text)]
    for layer in range(config.layers):
        plain = create_session(graphs.activations_graph(config, tensors, layer))
        beside = create_session(graphs.marker_activations_graph(config, tensors, layer))
        found: list[dict[str, Floats]] = []
        risen: list[_Read] = []
        for text, marks in batches:
            seen = _run(plain, {"states": text})
            found.append({"input": text, **seen})
            after = None
            if marks is not None:
                sight = marker_attention_mask(marks.shape[1] // 2, text.shape[1])
                given = {"states": marks, "attention_mask": sight, **_seen(tensors, layer, text)}
                looked = _run(beside, given)
                found.append({"input": marks, **looked})
                after = looked["output_states"]
            risen.append(_Read(seen["output_states"], after))
        yield {name: _flat(found, name) for name in found[0] if name != "output_states"}
        batches = risen


def _embedded(model: PhraseModel, encoder: PhraseEncoder, text: str) -> Iterator[_Read]:
    for tokens, spans in model.candidate_tokens(text, limit=_MARKED):
        padded = encoder.padded(tokens[None])[0]
        states = encoder.embed(padded, np.arange(len(padded)), 0)
        marks = None
        if len(spans) and model.config.form == "markers":
            marks = encoder.embed(tokens[spans].ravel(), spans.ravel(), 1)
        yield _Read(states, marks)


def _seen(tensors: Mapping[str, NDArray[Any]], layer: int, text: Floats) -> KeyValueCache:
    """Keys and values of a text at a layer, for its markers."""
    stem = f"layers.{layer}"
    return {
        f"{name}.{layer}": text @ tensors[f"{stem}.{name}.weight"].T
        + tensors[f"{stem}.{name}.bias"]
        for name in ("key", "value")
    }


def _run(session: Any, given: Mapping[str, Floats]) -> dict[str, Floats]:
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, given), strict=True))


def _flat(found: Sequence[Mapping[str, Floats]], name: str) -> Floats:
    return np.concatenate([one[name].reshape(-1, one[name].shape[-1]) for one in found])


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
    network: Extractor, tokenizer: str, folder: str | PathLike[str], *, card: str
) -> Path:
    """Write a Hugging Face folder with one more file; `tokenizer` is the text of its JSON file."""
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    setattr(network.encoder.config, _KEY, network.spans.ends)
    network.encoder.save_pretrained(path)
    save_file(network.spans.state_dict(), path / _HEAD)
    for name, text in (("tokenizer.json", tokenizer), ("README.md", card)):
        with atomic_write(path / name) as stream:
            stream.write(text.encode())
    return path


def load_extractor(folder: str | PathLike[str]) -> Extractor:
    """Load a folder that `save_extractor` wrote, and check every weight."""
    path = Path(folder).expanduser()
    if not (path / _HEAD).is_file():
        raise ModelError(f"No {_HEAD} in {path}. Name a folder that `train extractor` wrote.")
    ends = json.loads((path / "config.json").read_text(encoding="utf-8")).get(_KEY)
    if ends not in SPAN_ENDS:
        raise ModelError(f"{path} must name its ends as {' or '.join(SPAN_ENDS)}, got {ends!r}.")
    network = Extractor(read_encoder(path, plain=False)[0], ends)
    load_head(network.spans, path / _HEAD)
    return network.eval()


def export_phrases(
    network: PhraseNetwork,
    tokenizer: str,
    folder: str | PathLike[str],
    *,
    card: str,
    words: int = 24,
    texts: Sequence[str] = (),
    bits: Literal[4, 8] = 8,
    articles: Sequence[str] = (),
) -> Path:
    """
    The torch-free folder. Only encoders built like BERT can be written.

    With `texts`, some paragraphs and questions of the kind to be read, in int8; else in float.
    `bits` are those of a word's embedding in int8 folders. Words and positions that no text can
    reach are left out. Candidates that differ only by `articles` at their ends count as one.
    """
    shape = runtime_config(network.encoder)
    window = min(384, shape.positions - shape.first_position)
    state = {
        name.removeprefix("encoder.") if name.startswith("encoder.e") else name: value
        for name, value in network.state_dict().items()
    }
    floats = {name: value.detach().float().cpu().numpy() for name, value in state.items()}
    floats, said = prune_words(prune_positions(floats, window + shape.first_position), tokenizer)
    table = floats["embeddings.word_embeddings.weight"]
    config = PhraseConfig(
        replace(shape, vocabulary=len(table), positions=window + shape.first_position),
        network.form,
        network.phrase.out_features,
        words if network.lexical is not None else 0,
        window,
        default_overlap(window),
        articles=tuple(articles),
    )
    return write_runtime(floats, config, said, folder, card=card, texts=texts, bits=bits)


def write_runtime(
    state: Mapping[str, NDArray[np.float32]],
    config: PhraseConfig,
    tokenizer: str,
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
    found = from_huggingface_names(state, config.encoder.layers) | {
        name: state[name] for name in config.head_shapes() if name in state
    }
    wanted = config.shapes()
    floats = {name: np.asarray(found[name], np.float32) for name in wanted}
    tensors: dict[str, NDArray[Any]] = {**floats}
    path = Path(folder).expanduser()
    if texts:
        path.mkdir(parents=True, exist_ok=True)
        with atomic_write(path / "tokenizer.json") as stream:
            stream.write(tokenizer.encode())
        tensors = quantize_phrases(config, floats, load_tokenizer(path), texts, bits=bits)
    return write_phrase_folder(path, config=config, tensors=tensors, tokenizer=tokenizer, card=card)


def add_document_encoder(
    folder: str | PathLike[str],
    state: Mapping[str, Floats],
    target: str | PathLike[str],
    *,
    card: str,
    texts: Sequence[str] = (),
    block: int = 0,
) -> Path:
    """
    Write a phrase model again, with other layers for texts; questions keep their vectors.

    `state` has the layers as `layers.N.…`, and the heads of phrases if they were trained too. With
    `texts`, some paragraphs of the kind to be read, the layers are written in int8; else in float.
    `block` is that of `EncoderConfig`.
    """
    old, stored, heads = read_phrase_folder(folder)
    encoders = {name: stored[name] for name in stored if not name.startswith("documents.")}
    own = {name: value for name, value in state.items() if name.startswith("layers.")}
    heads |= {name: state[name] for name in heads.keys() & state.keys()}
    config = replace(
        old,
        document_layers=sum(name.endswith(".query.weight") for name in own),
        document_inner=len(own["layers.0.inner.bias"]),
        document_block=block,
    )
    layers: Tensors = {**own}
    if texts:
        tokenizer = load_tokenizer(folder)
        encoder = PhraseEncoder(old.encoder, encoders)
        floats = {**document_tensors(encoders), **own}
        documents = PhraseEncoder(config.document_encoder, floats)
        model = PhraseModel(config, encoder, heads, tokenizer, document_encoder=documents)
        layers = {name: value.astype(np.float16) for name, value in own.items()}
        for layer, read in enumerate(layer_inputs(model, documents, texts)):
            layers |= quantize_layer(f"layers.{layer}", own, read)
    return write_phrase_folder(
        target,
        config=config,
        tensors={
            **encoders,
            **{f"documents.{name}": value for name, value in layers.items()},
            **(quantize_matrices(heads) if texts else heads),
        },
        tokenizer=(Path(folder).expanduser() / "tokenizer.json").read_text("utf-8"),
        card=card,
    )


def bert_encoder(
    config: EncoderConfig, tensors: Mapping[str, Floats], *, dropout: float = 0.1
) -> Any:
    """An encoder in torch with tensors that are named as in a model folder; others are ignored."""
    transformers = import_transformers()
    sizes = {theirs: getattr(config, ours) for ours, theirs in _SIZES.items()}
    dropouts = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), dropout)
    settings = transformers.BertConfig(**sizes, **dropouts)
    encoder = transformers.BertModel(settings, add_pooling_layer=False)
    own: Any = {name: name for name in encoder.state_dict()}
    theirs = from_huggingface_names(own, config.layers)  # the names of torch, by those of a folder
    state = {str(name): torch.from_numpy(tensors[ours].copy()) for ours, name in theirs.items()}
    encoder.load_state_dict(state)
    encoder.get_input_embeddings().weight.requires_grad_(False)  # they are stored in 4 bits
    return encoder


def runtime_config(encoder: Any) -> EncoderConfig:
    """The config of an encoder for the engine; ModelError if the engine cannot run it."""
    config = encoder.config
    missing = [theirs for theirs in _SIZES.values() if not hasattr(config, theirs)]
    if missing:
        raise _unlike_bert(encoder, f"its config has no {', '.join(missing)}")
    if getattr(config, "hidden_act", None) != "gelu":
        raise _unlike_bert(encoder, f"its hidden_act is {config.hidden_act!r}")
    sizes = {ours: getattr(config, theirs) for ours, theirs in _SIZES.items()}
    sizes["norm_epsilon"] = float(sizes["norm_epsilon"])
    shape = EncoderConfig(**sizes, first_position=first_position(encoder))
    found = from_huggingface_names(encoder.state_dict(), shape.layers)
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
        f"The engine runs only encoders built like BERT with GELU, got {type(encoder).__name__}: "
        f"{why}."
    )
