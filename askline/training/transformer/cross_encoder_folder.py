"""
Folders of cross-encoders, and a ranker that runs them in torch.

With the plain head, a folder is a sentence-transformers CrossEncoder folder: a Hugging Face
sequence classifier with one output, its tokenizer, and the name of the activation between output
and score. That name is in one of three places, depending on the version of the library; without it,
a single output means a sigmoid. With another head, the folder has one more file.
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
    The network, its tokenizer, and the activation that CrossEncoder applies to its output.

    Every weight must exist: a folder without a classifier is only an encoder.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ModelError(f"No model folder at {path}. Name a folder with a cross-encoder.")
    encoder, missing = read_encoder(path, plain=True)
    missing = [name for name in missing if not name.endswith("position_ids")]
    if missing:
        raise ModelError(
            f"{path} is not a cross-encoder: it has no {', '.join(missing)}. To train a "
            "cross-encoder from it, use it as --init."
        )
    return PairNetwork(encoder, "plain", None), load_tokenizer(path), _activation(path)


def save_cross_encoder(network: PairNetwork, tokenizer: Any, folder: str | PathLike[str]) -> Path:
    """
    Write a CrossEncoder folder whose scores are those of the network, without a sigmoid.

    Only the plain head is accepted, because CrossEncoder has no other.
    """
    if network.head != "plain":
        raise InputError(
            f"Only the plain head can be saved as a CrossEncoder, got {network.head!r}."
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
    except Exception as error:  # the library raises many kinds of errors
        raise ModelError(f"The tokenizer in {folder} cannot be loaded: {error}") from error
    if not set(found.get_vocab()) - set(found.all_special_tokens):
        # Without files, some versions of the library return a tokenizer that knows no words.
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
    """Write a folder for a network with any head. Weights are safetensors."""
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
    """A network, its tokenizer, and the activation of its output."""
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
        raise ModelError(
            f"{path / _HEAD} is damaged or belongs to another network: {error}"
        ) from error
    return network.eval(), load_tokenizer(path), "identity"


@dataclass(frozen=True, eq=False)
class TransformerRanker(Ranker):
    """A cross-encoder in torch. Scores are logits, or probabilities if the folder has a sigmoid."""

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
        Load a CrossEncoder folder, or one with another head.

        Scores agree with CrossEncoder's `predict`; those of other heads are logits.
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
