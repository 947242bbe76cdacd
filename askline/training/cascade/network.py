"""An encoder with classifiers at chosen depths and, at the last, a reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...errors import InputError, UnknownNameError
from ...models.cascade_config import Read, what_is_read
from ..packed.bert import bert_embed, bert_layer, is_bert
from ..packed.packing import Packed
from ..transformer.network import encoder_layers, read_encoder
from ..transformer.scoring import autocast
from .heads import HEADS, FirstTokenClassifier, Head, MeanClassifier

__all__ = ["CascadeNetwork", "CascadeShape", "Scored"]


@dataclass(frozen=True, slots=True)
class CascadeShape:
    """Where classifiers stand, of which kind, and whether there is a reader."""

    depths: tuple[int, ...]
    """Layers below each classifier, ascending; the last is as deep as the encoder is run."""
    head: Head = "first"
    reader: bool = True

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.depths, self.depths[1:], strict=False))
        if not self.depths or self.depths[0] < 1 or not rising:
            raise InputError(f"depths must rise and start at 1 or more, got {self.depths}.")
        if self.head not in HEADS:
            raise UnknownNameError("head", self.head, HEADS)

    def reads(self, depth: int) -> Read:
        """What the classifier at that depth reads."""
        return what_is_read(self.head, depth, self.depths[-1])


class Scored(NamedTuple):
    """What one pass gives."""

    scores: Tensor
    """(depths, sequences): the log-odds that the second text answers the first."""
    ends: Tensor | None
    """(tokens, 2): how likely an answer starts and ends at each token, as logits."""
    first: Tensor
    """(sequences, width): what the deepest layer that was run has of each one's first token."""


class CascadeNetwork(nn.Module):
    """Scores packed (question, candidate) pairs at every depth."""

    def __init__(self, encoder: nn.Module, shape: CascadeShape) -> None:
        super().__init__()
        config: Any = encoder.config
        layers = encoder_layers(encoder)
        if shape.depths[-1] > len(layers):
            raise InputError(
                f"The encoder has {len(layers)} layers, so no classifier can stand after "
                f"{shape.depths[-1]}."
            )
        del layers[shape.depths[-1] :]
        config.num_hidden_layers = len(layers)
        self.encoder, self.shape = encoder, shape
        width: int = config.hidden_size
        kinds = {"first": FirstTokenClassifier, "mean": MeanClassifier}
        self.classifiers = nn.ModuleDict(
            {str(depth): kinds[shape.reads(depth)](width) for depth in shape.depths}
        )
        self.reader = nn.Linear(width, 2) if shape.reader else None

    @classmethod
    def start(cls, name: str | PathLike[str], shape: CascadeShape) -> CascadeNetwork:
        """
        A cascade on an encoder, or on a cross-encoder, from a folder or a hub name.

        Where the folder has a classifier of its own, every classifier that reads the first token
        starts as a copy of it; all else is drawn from torch's generator.
        """
        whole, missing = read_encoder(name, plain=True)
        encoder = whole.base_model
        network = cls(encoder, shape)
        found = None if missing else _own_classifier(whole)
        for classifier in network.classifiers.values():
            if found is not None and isinstance(classifier, FirstTokenClassifier):
                _copy(classifier, *found)
        encoder.pooler = None
        return network

    def forward(self, batch: Packed, *, deepest: int | None = None) -> Scored:
        """All classifiers up to `deepest`, and the reader where the last layer is reached."""
        scores = []
        for depth, states in self.states(batch, deepest=deepest):
            if str(depth) in self.classifiers:
                scores.append(self.classifiers[str(depth)](states, batch))
        ends = None
        if self.reader is not None and deepest is None:
            ends = self.reader(states.float())
        return Scored(torch.stack(scores), ends, states[batch.starts[:-1].long()])

    def states(self, batch: Packed, *, deepest: int | None = None) -> Iterator[tuple[int, Tensor]]:
        """Each layer's number, from 1, and what it gives: (tokens, width)."""
        deepest = deepest or self.shape.depths[-1]
        encoder: Any = self.encoder
        if is_bert(encoder):
            states = bert_embed(encoder, batch)
            for number, layer in enumerate(encoder.encoder.layer[:deepest], 1):
                states = bert_layer(layer, states, batch)
                yield number, states
            return
        with autocast(batch.tokens.device):
            found = encoder(**batch.padded(), output_hidden_states=True).hidden_states
        for number in range(1, deepest + 1):
            yield number, found[number][batch.owners, batch.places]


def _own_classifier(whole: Any) -> tuple[nn.Linear, nn.Linear] | None:
    """The two layers of a sequence classifier that end in one output, where it has them."""
    pooler = getattr(whole.base_model, "pooler", None)
    for dense, out in (
        (getattr(pooler, "dense", None), whole.classifier),  # BERT
        (getattr(whole.classifier, "dense", None), getattr(whole.classifier, "out_proj", None)),
    ):
        if isinstance(dense, nn.Linear) and isinstance(out, nn.Linear) and out.out_features == 1:
            return dense, out
    return None


def _copy(classifier: FirstTokenClassifier, dense: nn.Linear, out: nn.Linear) -> None:
    classifier.dense.load_state_dict(dense.state_dict())
    classifier.out.load_state_dict(out.state_dict())


def depths_of(text: str) -> tuple[int, ...]:
    """`4,6,8` as numbers."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"Expected depths as whole numbers with commas between, like 4,6,8, got {text!r}."
        ) from None
