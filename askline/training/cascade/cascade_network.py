"""
The cascade network: an encoder with classifiers at several depths and a reader at the last.

In a folder, `config.json` is that of the encoder with the cascade's shape under `askline_cascade`,
`model.safetensors` has the encoder without a head, `cascade.safetensors` the classifiers and the
reader; the tokenizer is beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ...data import filter_questions
from ...errors import InputError, ModelError, UnknownNameError
from ...evaluation import Run, make_qrels, score_run
from ...models.cascade_config import Head, Pooling, pooling_at
from ...rankers.requests import sort_by_score
from ...types import QuestionSet
from ..packing import (
    PackedBatch,
    PairTemplate,
    Rows,
    TokenTable,
    bert_embed,
    bert_layer,
    is_bert,
    pack,
)
from ..transformer.cross_encoder_folder import load_tokenizer
from ..transformer.pair_network import autocast, encoder_layers, import_transformers, read_encoder

__all__ = [
    "HEADS",
    "CascadeDevSet",
    "CascadeNetwork",
    "CascadeOutput",
    "CascadeShape",
    "FirstTokenClassifier",
    "Head",
    "MeanClassifier",
    "is_cascade",
    "load_cascade",
    "measure",
    "save_cascade",
    "score_pairs",
    "split_by_tokens",
]

HEADS: tuple[str, ...] = get_args(Head)


class FirstTokenClassifier(nn.Module):
    """The classifier of BERT: the first token, one hidden layer with tanh, one output."""

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)

    @property
    def hidden(self) -> list[nn.Linear]:
        """All layers but the last."""
        return [self.dense]

    def forward(self, states: Tensor, batch: PackedBatch) -> Tensor:
        """Packed states (tokens, width) → (sequences,)"""
        return self.classify(states[batch.starts[:-1].long()].float())

    def classify(self, first: Tensor) -> Tensor:
        """First tokens (sequences, width) in float32 → (sequences,)"""
        scores: Tensor = self.out(self.dropout(torch.tanh(self.dense(first))))
        return scores[:, 0]


class MeanClassifier(nn.Module):
    """The Cascade Transformer's classifier: the mean of all tokens, three layers with tanh."""

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, 1)
        self.dropout = nn.Dropout(dropout)

    @property
    def hidden(self) -> list[nn.Linear]:
        """All layers but the last."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, states: Tensor, batch: PackedBatch) -> Tensor:
        """Packed states (tokens, width) → (sequences,)"""
        counts = (batch.starts[1:] - batch.starts[:-1]).unsqueeze(1)
        total = states.new_zeros(len(batch), states.shape[1], dtype=torch.float32)
        return self.classify(total.index_add(0, batch.owners, states.float()) / counts)

    def classify(self, mean: Tensor) -> Tensor:
        """Means (sequences, width) in float32 → (sequences,)"""
        for layer in self.layers:
            mean = self.dropout(torch.tanh(layer(mean)))
        scores: Tensor = self.out(mean)
        return scores[:, 0]


@dataclass(frozen=True, slots=True)
class CascadeShape:
    """The depths and the kind of the classifiers, and whether there is a reader."""

    depths: tuple[int, ...]
    """Layers below each classifier, ascending. Layers after the last are cut off."""
    head: Head = "first"
    reader: bool = True

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.depths, self.depths[1:], strict=False))
        if not self.depths or self.depths[0] < 1 or not rising:
            raise InputError(f"depths must be ascending and at least 1, got {self.depths}.")
        if self.head not in HEADS:
            raise UnknownNameError("head", self.head, HEADS)

    def reads(self, depth: int) -> Pooling:
        """What the classifier at a depth reads: the first token or the mean."""
        return pooling_at(self.head, depth, self.depths[-1])


class CascadeOutput(NamedTuple):
    """The result of one forward pass."""

    scores: Tensor
    """(depths, sequences): the logit of "the second text answers the first"."""
    ends: Tensor | None
    """(tokens, 2): logits of the answer starting and ending at each token."""
    first: Tensor
    """(sequences, width): the first token of each sequence after the deepest layer."""


class CascadeNetwork(nn.Module):
    """Scores packed (question, candidate) pairs at every depth."""

    def __init__(self, encoder: nn.Module, shape: CascadeShape) -> None:
        super().__init__()
        config: Any = encoder.config
        layers = encoder_layers(encoder)
        if shape.depths[-1] > len(layers):
            raise InputError(
                f"Depths must be at most {len(layers)}, the number of layers of the encoder, "
                f"got {shape.depths[-1]}."
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

        If the folder has a classifier, every classifier that reads the first token starts as a
        copy of it. All other new weights are drawn from torch's generator.
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

    def forward(self, batch: PackedBatch, *, deepest: int | None = None) -> CascadeOutput:
        """Scores of all classifiers up to `deepest`; the reader runs only at full depth."""
        scores = []
        for depth, states in self.states(batch, deepest=deepest):
            if str(depth) in self.classifiers:
                scores.append(self.classifiers[str(depth)](states, batch))
        ends = None
        if self.reader is not None and deepest is None:
            ends = self.reader(states.float())
        return CascadeOutput(torch.stack(scores), ends, states[batch.starts[:-1].long()])

    def states(
        self, batch: PackedBatch, *, deepest: int | None = None
    ) -> Iterator[tuple[int, Tensor]]:
        """The number of each layer, from 1, and its output (tokens, width)."""
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
            yield number, found[number][batch.owners, batch.positions]


def _own_classifier(whole: Any) -> tuple[nn.Linear, nn.Linear] | None:
    """The two layers of a sequence classifier with one output, if it has them."""
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


def parse_depths(text: str) -> tuple[int, ...]:
    """Depths from text such as `4,6,8`."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"Expected depths as integers separated by commas, such as 4,6,8, got {text!r}."
        ) from None


TORCH_FOLDER = "torch"
"""Where `train cascade` keeps the float weights, inside the exported model folder."""
_HEADS = "cascade.safetensors"
_KEY = "askline_cascade"


def is_cascade(folder: str | PathLike[str]) -> bool:
    """Whether `load_cascade` can read a folder."""
    return (torch_folder(folder) / _HEADS).is_file()


def torch_folder(folder: str | PathLike[str]) -> Path:
    """The subfolder with the torch weights of a folder that `train cascade` wrote, or itself."""
    path = Path(folder).expanduser()
    return path / TORCH_FOLDER if (path / TORCH_FOLDER / _HEADS).is_file() else path


def save_cascade(network: CascadeNetwork, tokenizer: Any, folder: str | PathLike[str]) -> Path:
    """Write network and tokenizer to a folder. Weights are safetensors."""
    path = Path(folder).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    encoder: Any = network.encoder
    shape = network.shape
    setattr(
        encoder.config,
        _KEY,
        {"depths": list(shape.depths), "head": shape.head, "reader": shape.reader},
    )
    encoder.save_pretrained(path)
    tokenizer.save_pretrained(path)
    heads = {
        name: value.detach().cpu().contiguous()
        for name, value in network.state_dict().items()
        if not name.startswith("encoder.")
    }
    save_file(heads, path / _HEADS, metadata={"format": "pt"})
    return path


def load_cascade(folder: str | PathLike[str]) -> tuple[CascadeNetwork, Any]:
    """A network and its tokenizer, with every weight checked."""
    path = torch_folder(folder)
    if not is_cascade(path):
        raise ModelError(f"No {_HEADS} in {path}. Name a folder that `train cascade` wrote.")
    network = CascadeNetwork(_bare_encoder(path), _shape(path))
    try:
        found = load_file(path / _HEADS)
        wrong = network.load_state_dict(found, strict=False)
    except (SafetensorError, RuntimeError) as error:
        raise ModelError(
            f"{path / _HEADS} is damaged or belongs to another network: {error}"
        ) from error
    missing = [name for name in wrong.missing_keys if not name.startswith("encoder.")]
    if missing or wrong.unexpected_keys:
        raise ModelError(
            f"{path / _HEADS} does not fit config.json: missing {missing}, "
            f"unexpected {wrong.unexpected_keys}."
        )
    return network.eval(), load_tokenizer(path)


def _bare_encoder(path: Path) -> Any:
    """The encoder of the config, without the pooler that some families have."""
    library = import_transformers()
    try:
        config = library.AutoConfig.from_pretrained(path)
        with torch.random.fork_rng(devices=[]):  # its weights are drawn first and then overwritten
            try:
                encoder = library.AutoModel.from_config(config, add_pooling_layer=False)
            except TypeError:  # a family without poolers
                encoder = library.AutoModel.from_config(config)
        encoder.pooler = None
        encoder.float().load_state_dict(load_file(path / "model.safetensors"))
    except Exception as error:  # the library raises many kinds of errors
        raise ModelError(
            f"The encoder in {path} cannot be loaded: {error} Check that the folder is complete."
        ) from error
    return encoder


def _shape(path: Path) -> CascadeShape:
    found = json.loads((path / "config.json").read_text(encoding="utf-8")).get(_KEY)
    try:
        return CascadeShape(tuple(found["depths"]), found["head"], bool(found["reader"]))
    except (TypeError, KeyError, InputError, UnknownNameError) as error:
        raise ModelError(f"config.json in {path} has no valid {_KEY!r}: {error!r}.") from error


SCORING_TOKENS = 32_768
"""Tokens in one forward pass without gradients."""


@dataclass(frozen=True, slots=True, eq=False)
class CascadeDevSet:
    """A tokenized set to evaluate on: its questions with an answer."""

    questions: QuestionSet
    table: TokenTable
    template: PairTemplate
    first: Rows
    second: Rows
    limit: int = 256

    @classmethod
    def of(cls, questions: QuestionSet, tokenizer: Any, *, limit: int = 256) -> CascadeDevSet:
        """Tokenize a set; questions without an answer are left out."""
        kept = filter_questions(questions, "answerable")
        if not kept.questions:
            raise InputError(f"{questions.name} has no question with an answer to measure on.")
        texts: dict[str, int] = {}
        first, second = [], []
        for question in kept:
            row = texts.setdefault(question.text, len(texts))
            for text in question.texts:
                first.append(row)
                second.append(texts.setdefault(text, len(texts)))
        table = TokenTable.of(list(texts), tokenizer)
        template = PairTemplate.of(tokenizer)
        return cls(kept, table, template, np.array(first), np.array(second), limit)


@torch.inference_mode()
def score_pairs(
    network: CascadeNetwork,
    table: TokenTable,
    template: PairTemplate,
    first: Rows,
    second: Rows,
    *,
    limit: int = 256,
    deepest: int | None = None,
    max_tokens: int = SCORING_TOKENS,
) -> NDArray[np.float32]:
    """Scores (depths, pairs), independent of the batches."""
    # Training mode is restored module by module: a frozen encoder is not in training mode.
    in_training = [part for part in network.modules() if part.training]
    network.eval()
    device = next(network.parameters()).device
    lengths = np.minimum(table.lengths(first) + table.lengths(second) + template.extra, limit)
    parts, places = [], split_by_tokens(lengths, max_tokens)
    for rows in places:
        batch = pack(table, first[rows], second[rows], template, limit=limit, device=device)
        parts.append(network(batch, deepest=deepest).scores.float())
    back = np.argsort(np.concatenate(places), kind="stable")
    for part in in_training:
        part.training = True
    found: NDArray[np.float32] = torch.cat(parts, 1).cpu().numpy()[:, back]
    return found


def split_by_tokens(lengths: Rows, max_tokens: int) -> list[Rows]:
    """Batches of rows of similar length with about `max_tokens` tokens, at least one row each."""
    order = np.argsort(lengths, kind="stable")
    marks = np.cumsum(lengths[order]) // max_tokens
    return [part for part in np.split(order, np.flatnonzero(np.diff(marks)) + 1) if len(part)]


def measure(
    network: CascadeNetwork, dev: CascadeDevSet, *, measures: tuple[str, ...] = ("MAP", "P@1")
) -> dict[str, float]:
    """
    Measure → percent: those of the last classifier, then those of the others with their depth.

    `MAP` is at full depth, `MAP at 6` after six layers.
    """
    scores = score_pairs(network, dev.table, dev.template, dev.first, dev.second, limit=dev.limit)
    cuts = np.cumsum([len(question.candidates) for question in dev.questions])[:-1]
    found: dict[str, float] = {}
    truth = make_qrels(dev.questions)
    for depth, row in sorted(zip(network.shape.depths, scores, strict=True), reverse=True):
        hits = map(sort_by_score, np.split(row.astype(np.float64), cuts))
        run = Run.from_hits("network", zip(dev.questions, hits, strict=True))
        last = depth == network.shape.depths[-1]
        for name, values in score_run(run, truth, measures=measures).items():
            found[name if last else f"{name} at {depth}"] = 100 * float(values.mean())
    return found
