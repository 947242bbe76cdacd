"""A float phrase model → the same in int8, by what its layers read on real text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...engine import graphs
from ...engine.encoder import open_session
from ...engine.quantization import to_nibbles
from ...phrases.model import PhraseConfig, PhraseModel, pack
from ...phrases.phrase_encoder import PhraseEncoder, Sight, pairs_apart
from ..quantised import quantised_layer

__all__ = ["quantised_phrases"]

Floats = NDArray[np.float32]
Tensors = dict[str, NDArray[Any]]
_MARKED = 25  # candidates of a window whose markers are looked at


class _Read(NamedTuple):
    """States of a text before a layer, and of the markers beside it where it has any."""

    text: Floats  # (1, tokens, width)
    marks: Floats | None


def quantised_phrases(
    config: PhraseConfig,
    tensors: Mapping[str, Floats],
    tokeniser: Any,
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
    encoder = PhraseEncoder(config, tensors)
    heads = {name: tensors[name] for name in config.heads()}
    model = PhraseModel(config, encoder, heads, tokeniser)
    for layer, read in enumerate(_observed(model, encoder, texts)):
        made |= quantised_layer(f"layers.{layer}", tensors, read)
    return made


def _rest(config: PhraseConfig, tensors: Mapping[str, Floats], bits: int) -> Tensors:
    """Everything but the layers' dense parts: words by rows or in 4 bits, heads by rows."""
    made: Tensors = pack({name: tensors[name] for name in config.heads()})
    for name in config.encoder.shapes():
        made[name] = tensors[name].astype(np.float16)
    if bits == 4:
        made["words.weight"], made["words.scale"] = to_nibbles(tensors["words.weight"])
    else:
        made |= pack({"words.weight": tensors["words.weight"]})
    return made


def _observed(
    model: PhraseModel, encoder: PhraseEncoder, texts: Sequence[str]
) -> Iterator[dict[str, Floats]]:
    """For each layer (tokens, channels) by what is read: input, context, middle, activated."""
    config, tensors = model.config, encoder.tensors
    batches = [read for text in texts for read in _embedded(model, encoder, text)]
    for layer in range(config.encoder.layers):
        plain = open_session(graphs.observer(config, tensors, layer))
        beside = open_session(graphs.marker_observer(config, tensors, layer))
        found: list[dict[str, Floats]] = []
        risen: list[_Read] = []
        for text, marks in batches:
            seen = _run(plain, {"states": text})
            found.append({"input": text, **seen})
            after = None
            if marks is not None:
                sight = pairs_apart(marks.shape[1] // 2, text.shape[1])
                given = {"states": marks, "sight": sight, **_seen(tensors, layer, text)}
                looked = _run(beside, given)
                found.append({"input": marks, **looked})
                after = looked["risen"]
            risen.append(_Read(seen["risen"], after))
        yield {name: _flat(found, name) for name in found[0] if name != "risen"}
        batches = risen


def _embedded(model: PhraseModel, encoder: PhraseEncoder, text: str) -> Iterator[_Read]:
    for tokens, spans in model.marked(text, limit=_MARKED):
        states = encoder.embed(tokens, np.arange(len(tokens)), 0)
        marks = None
        if len(spans) and model.config.form == "markers":
            marks = encoder.embed(tokens[spans].ravel(), spans.ravel(), 1)
        yield _Read(states, marks)


def _seen(tensors: Mapping[str, NDArray[Any]], layer: int, text: Floats) -> Sight:
    """What markers see of a text at this layer."""
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
