"""Small embeddings: words in 4 bits, and without what no text can reach."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from ...engine.quantization import from_nibbles, to_nibbles
from .network import PhraseNetwork

__all__ = ["hold_words", "trim_positions", "trim_words"]

Floats = NDArray[np.float32]
_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_SPARE = re.compile(r"\[unused\d+\]")


def trim_words(state: Mapping[str, Floats], tokeniser: str) -> tuple[dict[str, Floats], str]:
    """
    The state and the tokeniser's JSON without BERT's spare words, all others numbered anew.

    Brackets are words of their own, so no text is ever cut into a spare word. Tokenisers of other
    families have none, and come back as they are.
    """
    entries = json.loads(tokeniser)
    if entries["model"].get("type") != "WordPiece":
        return {**state}, tokeniser
    vocabulary: dict[str, int] = entries["model"]["vocab"]
    kept = sorted((at, word) for word, at in vocabulary.items() if not _SPARE.fullmatch(word))
    places = {old: new for new, (old, _) in enumerate(kept)}
    entries["model"]["vocab"] = {word: places[old] for old, word in kept}
    for mark in entries.get("added_tokens") or ():
        mark["id"] = places[mark["id"]]
    frame = entries.get("post_processor") or {}
    for mark in (frame.get("special_tokens") or {}).values():  # TemplateProcessing
        mark["ids"] = [places[old] for old in mark["ids"]]
    for name in {"sep", "cls"} & frame.keys():  # BertProcessing
        word, old = frame[name]
        frame[name] = [word, places[old]]
    words = state[_WORDS][[old for old, _ in kept]]
    said = json.dumps(entries, ensure_ascii=False, separators=(",", ":"))
    return {**state, _WORDS: words}, said


def trim_positions(state: Mapping[str, Floats], count: int) -> dict[str, Floats]:
    """The state with the first `count` positions; a window is no longer than that."""
    return {**state, _POSITIONS: state[_POSITIONS][:count]}


def hold_words(network: PhraseNetwork) -> None:
    """Round the words' embeddings to 4 bits and train them no more; the layers learn around it."""
    table = network.encoder.get_input_embeddings().weight
    rounded = from_nibbles(*to_nibbles(table.detach().float().cpu().numpy()))
    with torch.no_grad():
        table.copy_(torch.from_numpy(rounded))
    table.requires_grad_(False)
