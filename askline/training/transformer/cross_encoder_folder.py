"""
Interchange with sentence-transformers: CrossEncoder folders, read and written.

Such a folder is a Hugging Face sequence classifier with one output, its tokenizer, and a note on
the activation that stands between the output and the score. Three places for that note are in use,
by the age of the library that wrote it; without one, a single output means a sigmoid.

A trained network as a folder: a CrossEncoder folder, with one more file for the heads it lacks.

`save_network` and `load_network` take every head; what they write for the plain head is what
`save_cross_encoder` writes.

A transformer in torch as a ranker: for measuring what was trained, not for speed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ...errors import InputError, ModelError
from ...rankers.base import Ranker
from ...rankers.requests import ScoreArray
from .pair_network import (
    HEADS,
    SCORING_TOKENS,
    Head,
    PairNetwork,
    import_transformers,
    list_scores,
    read_encoder,
)
from .pair_sets import encode_texts

__all__ = [
    "Activation",
    "TransformerRanker",
    "load_cross_encoder",
    "load_network",
    "load_ranking_network",
    "load_tokenizer",
    "save_cross_encoder",
    "save_network",
]

Activation = Literal["identity", "sigmoid"]

_NAMES: dict[str, Activation] = {
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}


def load_cross_encoder(folder: str | PathLike[str]) -> tuple[PairNetwork, Any, Activation]:
    """
    The network, its tokenizer, and what makes CrossEncoder's score of the network's.

    Every weight must be there: a folder without its classifier is an encoder, not a selector.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ModelError(f"No model folder at {path}. Name a folder with a cross-encoder.")
    encoder, missing = read_encoder(path, plain=True)
    missing = [name for name in missing if not name.endswith("position_ids")]
    if missing:
        raise ModelError(
            f"{path} is no cross-encoder: it has no {', '.join(missing)}. To train one from it, "
            "start from it instead."
        )
    return PairNetwork(encoder, "plain", None), load_tokenizer(path), _activation(path)


def save_cross_encoder(network: PairNetwork, tokenizer: Any, folder: str | PathLike[str]) -> Path:
    """
    Write a folder whose CrossEncoder scores are the network's own, without a sigmoid.

    The other heads are not known to CrossEncoder, so they are refused.
    """
    if network.head != "plain":
        raise InputError(
            f"Only a network with the plain head makes a cross-encoder, got {network.head!r}."
        )
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    encoder: Any = network.encoder
    encoder.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    encoder.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def load_tokenizer(folder: str | PathLike[str]) -> Any:
    """The tokenizer of a model folder."""
    try:
        found = import_transformers().AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # the library raises of many kinds
        raise ModelError(f"The tokenizer in {folder} cannot be loaded: {error}") from error
    if not set(found.get_vocab()) - set(found.all_special_tokens):
        # Without its files some versions of the library make one up, to which all words are one.
        raise ModelError(f"No tokenizer in {folder}: add its files, such as tokenizer.json.")
    return found


def _activation(folder: Path) -> Activation:
    own = _json(folder / "config_sentence_transformers.json")
    config = _json(folder / "config.json")
    name = (
        own.get("activation_fn")
        or config.get("sentence_transformers", {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
        or "torch.nn.modules.activation.Sigmoid"
    )
    if name not in _NAMES:
        raise ModelError(f"{folder} has activation {name!r}. Known: {', '.join(_NAMES)}.")
    return _NAMES[name]


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


_HEAD = "head.safetensors"
_KEY = "askline_head"


def save_network(network: PairNetwork, tokenizer: Any, folder: str | PathLike[str]) -> Path:
    """Write the folder. Weights are safetensors."""
    if network.scorer is None:
        return save_cross_encoder(network, tokenizer, folder)
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    encoder: Any = network.encoder
    setattr(encoder.config, _KEY, network.head)
    encoder.save_pretrained(path)
    tokenizer.save_pretrained(path)
    save_file(network.scorer.state_dict(), path / _HEAD)
    return path


def load_network(folder: str | PathLike[str]) -> tuple[PairNetwork, Any]:
    """A network and its tokenizer, with every weight checked."""
    network, tokenizer, _ = load_ranking_network(folder)
    return network, tokenizer


def load_ranking_network(folder: str | PathLike[str]) -> tuple[PairNetwork, Any, Activation]:
    """The same, and what makes a score of the network's; heads of our own give it as it is."""
    path = Path(folder).expanduser()
    if not (path / _HEAD).is_file():
        return load_cross_encoder(path)
    head = json.loads((path / "config.json").read_text(encoding="utf-8")).get(_KEY)
    if head not in HEADS or head == "plain":
        raise ModelError(f"{path} has a {_HEAD}, but its config names {head!r} as the head.")
    network = PairNetwork.start(path, head=cast(Head, head))
    assert network.scorer is not None  # only the plain head has none
    try:
        network.scorer.load_state_dict(load_file(path / _HEAD))
    except (SafetensorError, RuntimeError) as error:
        raise ModelError(f"{path / _HEAD} is damaged or of another network: {error}") from error
    return network.eval(), load_tokenizer(path), "identity"


@dataclass(frozen=True, eq=False)
class TransformerRanker(Ranker):
    """Scores are logits (or chances, where the folder asks for a sigmoid), each pair on its own."""

    name: ClassVar[str] = "transformer"

    network: PairNetwork
    tokenizer: Any
    folder: str = ""
    sigmoid: bool = False
    max_length: int = 256
    max_tokens: int = field(default=SCORING_TOKENS)

    @classmethod
    def load(cls, folder: str | PathLike[str], *, device: str = "cpu") -> TransformerRanker:
        """
        A CrossEncoder folder, or one that was trained with another head.

        Scores agree with CrossEncoder's `predict`; those of the other heads are logits.
        """
        network, tokenizer, activation = load_ranking_network(folder)
        longest = min(tokenizer.model_max_length, network.encoder.config.max_position_embeddings)  # type: ignore[union-attr]
        return cls(
            network.to(device).eval(),
            tokenizer,
            str(folder),
            sigmoid=activation == "sigmoid",
            max_length=longest,
        )

    @property
    def listwise(self) -> bool:
        return False

    def score_texts(self, question: str, texts: Sequence[str]) -> ScoreArray:
        """One score per text, independent of the other texts."""
        pairs = encode_texts(
            [(question, text) for text in texts],
            self.tokenizer,
            sizes=[len(texts)],
            max_length=self.max_length,
        )
        (scores,) = list_scores(self.network, pairs, max_tokens=self.max_tokens)
        return torch.from_numpy(scores).sigmoid().numpy() if self.sigmoid else scores

    def __str__(self) -> str:
        return f"transformer({self.folder!r})"
