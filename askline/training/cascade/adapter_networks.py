"""
The reader and the context pass in torch: layers of a cascade with a trained low-rank difference.

The context pass reads windows of several sentences. A window is
`[CLS] question [SEP] title (marker sentence)… [SEP]`. At several depths every sentence gets a
logit, from the mean of the states of its marker and its tokens. After the last layer every token
gets the logits of starting and ending the answer: that is the cascade's reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...errors import InputError
from ...models.cascade_config import CascadeConfig
from ...models.encoder_config import DENSE_INPUTS
from ..packing import PackedBatch, bert_layer
from .context_examples import ContextExamples, Window

__all__ = [
    "ADAPTER_DROPOUT",
    "AdapterReader",
    "ContextNetwork",
    "ContextOutput",
    "WindowBatch",
    "WindowFormat",
    "widen_adapter",
]

ADAPTER_DROPOUT = 0.1
_HEAD_DROPOUT = 0.1


class AdapterReader(nn.Module):
    """(question, text) pairs, packed → (tokens, 2) start and end logits."""

    def __init__(self, config: CascadeConfig, tensors: Mapping[str, NDArray[np.float32]]) -> None:
        """
        Start from the adapter of a folder or, if it has none, from its encoder.

        `tensors` are those of the folder in float. `config.adapter` says what is trained: low-rank
        matrices, and the biases and norms of the same layers.
        """
        super().__init__()
        if config.adapter is None or not config.reader:
            raise InputError("Expected a config of a reader with an adapter, got one without.")
        self.config, self.adapter = config, config.adapter
        self.frozen, self.own = nn.ParameterDict(), nn.ParameterDict()
        for name, value in tensors.items():
            if not name.startswith(("classifiers.", "adapter.", "context.")):
                self.frozen[_key(name)] = nn.Parameter(torch.tensor(value), requires_grad=False)
        for name, shape in config.shapes().items():
            if name.startswith("adapter.") and not name.endswith((".scale", ".zero")):
                self.own[_key(name)] = nn.Parameter(_initial_value(name, shape, tensors))
        for kind in ("weight", "bias"):
            self.own[f"reader/{kind}"] = nn.Parameter(self.frozen.pop(f"reader/{kind}").clone())

    def low_rank_parameters(self) -> list[nn.Parameter]:
        """The matrices whose products are added to the frozen weights."""
        return [value for name, value in self.own.items() if name.endswith(_LOW_RANK)]

    def other_parameters(self) -> list[nn.Parameter]:
        """Everything else that is trained: biases, norms and the output layer."""
        return [value for name, value in self.own.items() if not name.endswith(_LOW_RANK)]

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The trained tensors by the names of the model folder."""
        return {
            name.replace("/", "."): value.detach().float().cpu().numpy().copy()
            for name, value in self.own.items()
        }

    def forward(self, batch: PackedBatch) -> Tensor:
        with torch.no_grad():
            states = self._embed(batch)
            for layer in range(self.adapter.first):
                states = bert_layer(self._layer(layer, dropout=0.0), states, batch)
        for layer in range(self.adapter.first, self.config.encoder.layers):
            states = bert_layer(self._layer(layer, dropout=ADAPTER_DROPOUT), states, batch)
        return F.linear(states.float(), self.own["reader/weight"], self.own["reader/bias"])

    def _embed(self, batch: PackedBatch) -> Tensor:
        """(tokens, width)"""
        table, epsilon = self.frozen, self.config.encoder.norm_epsilon
        states = table["words/weight"][batch.tokens] + table["positions/weight"][batch.positions]
        states = states + table["kinds/weight"][batch.segments]
        width = (self.config.encoder.width,)
        states = F.layer_norm(states, width, table["norm/weight"], table["norm/bias"], epsilon)
        return states.bfloat16() if states.device.type == "cuda" else states

    def _layer(self, number: int, *, dropout: float) -> Any:
        """A layer with its current weights, in the structure that `bert_layer` expects."""
        dropped = SimpleNamespace(p=dropout, training=self.training)
        parts = {name: self._dense(f"layers.{number}.{name}") for name in DENSE_INPUTS}
        norms = [self._norm(f"layers.{number}.{name}_norm") for name in ("attention", "output")]
        own = SimpleNamespace(**parts, num_attention_heads=self.config.encoder.heads)
        output = SimpleNamespace(dense=parts["attended"], LayerNorm=norms[0], dropout=dropped)
        return SimpleNamespace(
            attention=SimpleNamespace(self=own, output=output),
            intermediate=SimpleNamespace(dense=parts["inner"], intermediate_act_fn=F.gelu),
            output=SimpleNamespace(dense=parts["outer"], LayerNorm=norms[1], dropout=dropped),
        )

    def _dense(self, name: str) -> SimpleNamespace:
        weight, bias = self._current(f"{name}.weight"), self._current(f"{name}.bias")
        stem = _key(f"adapter.{name}")
        if f"{stem}/up/weight" in self.own:
            weight = weight + self.own[f"{stem}/up/weight"].T @ self.own[f"{stem}/down/weight"]
        return SimpleNamespace(weight=weight, bias=bias)

    def _norm(self, name: str) -> SimpleNamespace:
        weight, bias = self._current(f"{name}.weight"), self._current(f"{name}.bias")
        width, epsilon = (self.config.encoder.width,), self.config.encoder.norm_epsilon
        return SimpleNamespace(weight=weight, bias=bias, normalized_shape=width, eps=epsilon)

    def _current(self, name: str) -> Tensor:
        own = _key(f"adapter.{name}")
        found: Tensor = self.own[own] if own in self.own else self.frozen[_key(name)]
        return found


_LOW_RANK = ("/up/weight", "/down/weight")


def _key(name: str) -> str:
    """A tensor name without dots, which torch does not allow in parameter names."""
    return name.replace(".", "/")


def _initial_value(
    name: str, shape: tuple[int, ...], tensors: Mapping[str, NDArray[np.float32]]
) -> Tensor:
    """Of two new low-rank matrices, one is random and the other zero: no difference yet."""
    if name in tensors:
        return torch.from_numpy(tensors[name].copy())
    if name.endswith(".down.weight"):
        return torch.randn(shape).mul_((2 / shape[1]) ** 0.5)
    if name.endswith(".up.weight"):
        return torch.zeros(shape)
    return torch.from_numpy(tensors[name.removeprefix("adapter.")].copy())


@dataclass(frozen=True, slots=True)
class WindowFormat:
    """The special tokens and the lengths of a window."""

    cls_id: int
    sep_id: int
    marker: int = 1
    max_length: int = 384
    max_title: int = 48
    max_question: int = 126


@dataclass(frozen=True, slots=True, eq=False)
class WindowBatch:
    """Windows end to end, and the sentences in them, all on one device."""

    packed: PackedBatch
    sentence_of: Tensor  # (tokens,) the sentence a token belongs to; `sentences` for no sentence
    sentences: int
    sizes: Tensor  # (sentences,) tokens, the marker included
    windows: Tensor  # (sentences,) the window of each
    starts: NDArray[
        np.int64
    ]  # (sentences,) the packed position of its first token after the marker

    @classmethod
    def of(
        cls,
        examples: ContextExamples,
        windows: Sequence[Window],
        form: WindowFormat,
        device: torch.device | str = "cpu",
    ) -> WindowBatch:
        """Build token sequences. A window must fit; `fit_window` sees to it."""
        pieces: list[NDArray[np.int32]] = []
        kinds: list[int] = []  # token types, per piece
        owners: list[int] = []  # the sentence of each piece, -1 for none
        counts: list[int] = []
        sentence_windows: list[int] = []
        starts: list[int] = []
        position = 0
        begin, end = np.array([form.cls_id], np.int32), np.array([form.sep_id], np.int32)
        marker = np.array([form.marker], np.int32)

        def add(piece: NDArray[np.int32], kind: int, owner: int) -> None:
            nonlocal position
            pieces.append(piece)
            kinds.append(kind)
            owners.append(owner)
            position += len(piece)

        for number, window in enumerate(windows):
            first = position
            question = examples.text(int(examples.question_texts[window.question]))
            add(begin, 0, -1)
            add(question[: form.max_question], 0, -1)
            add(end, 0, -1)
            title = int(examples.passage_titles[window.passage])
            if window.has_title and title >= 0:
                add(examples.text(title)[: form.max_title], 1, -1)
            base = int(examples.passage_texts[window.passage])
            for sentence in range(window.first, window.last):
                owner = len(sentence_windows)
                sentence_windows.append(number)
                add(marker, 1, owner)
                starts.append(position)
                room = form.max_length - 1 - (position - first)
                add(examples.text(base + sentence)[: max(0, room)], 1, owner)
            add(end, 1, -1)
            counts.append(position - first)
        sizes = np.array([len(piece) for piece in pieces])
        tokens = np.concatenate(pieces).astype(np.int64)
        totals = np.array(counts)
        ends = np.cumsum(totals)
        rows = np.repeat(np.arange(len(windows)), totals)
        owned = np.repeat(np.array(owners), sizes)
        sentences = len(sentence_windows)
        is_marker = (tokens == form.marker) & (owned >= 0)
        arrays = (
            tokens,
            np.repeat(np.array(kinds), sizes),
            np.arange(len(tokens)) - (ends - totals)[rows],
            rows,
            np.where(owned < 0, sentences, owned),
            np.array(sentence_windows),
        )
        on = [torch.from_numpy(each.astype(np.int64)).to(device) for each in arrays]
        packed = PackedBatch(
            on[0],
            on[1],
            on[2],
            on[3],
            torch.from_numpy(np.concatenate([[0], ends]).astype(np.int32)).to(device),
            torch.zeros(len(windows), dtype=torch.int64, device=device),
            torch.from_numpy((owned >= 0) & ~is_marker).to(device),
            int(totals.max()),
            0,
            True,
        )
        lengths = np.bincount(owned[owned >= 0], minlength=sentences)
        return cls(
            packed,
            on[4],
            sentences,
            torch.from_numpy(lengths).to(device),
            on[5],
            np.array(starts, np.int64),
        )


class ContextOutput(NamedTuple):
    """The result of one forward pass."""

    scores: Tensor
    """(depths, sentences): the logit of "this sentence answers the question"."""
    ends: Tensor | None
    """(tokens, 2): logits of the answer starting and ending at each token."""


class SentenceClassifier(nn.Module):
    """The mean state of a sentence → its logit, by one hidden layer with tanh."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, mean: Tensor) -> Tensor:
        """(sentences, width) in float32 → (sentences,)"""
        hidden = F.dropout(torch.tanh(self.dense(mean)), _HEAD_DROPOUT, self.training)
        scores: Tensor = self.out(hidden)
        return scores[:, 0]


class ContextNetwork(AdapterReader):
    """Scores every sentence of packed windows at every depth, and reads."""

    def __init__(
        self,
        config: CascadeConfig,
        tensors: Mapping[str, NDArray[np.float32]],
        depths: Sequence[int],
    ) -> None:
        """As `AdapterReader`; classifiers that are not among the tensors start anew."""
        super().__init__(config, tensors)
        self.depths = tuple(depths)
        width = config.encoder.width
        self.classifiers = nn.ModuleDict()
        for depth in self.depths:
            own = SentenceClassifier(width)
            for name, value in own.state_dict().items():
                known = tensors.get(f"context.{depth}.{name}")
                if known is not None:
                    value.copy_(torch.from_numpy(known))
            self.classifiers[str(depth)] = own

    def score(self, batch: WindowBatch, *, deepest: int | None = None) -> ContextOutput:
        """Logits of all sentences at all depths up to `deepest`; the reader's only without it."""
        last = deepest or self.config.encoder.layers
        packed, scores = batch.packed, []
        states = self._embed(packed)
        for layer in range(last):
            dropout = ADAPTER_DROPOUT if layer >= self.adapter.first else 0.0
            states = bert_layer(self._layer(layer, dropout=dropout), states, packed)
            if str(layer + 1) in self.classifiers:
                scores.append(self._classify(str(layer + 1), states, batch))
        ends = None
        if deepest is None:
            ends = F.linear(states.float(), self.own["reader/weight"], self.own["reader/bias"])
        return ContextOutput(torch.stack(scores), ends)

    def _classify(self, depth: str, states: Tensor, batch: WindowBatch) -> Tensor:
        total = states.new_zeros(batch.sentences + 1, states.shape[1], dtype=torch.float32)
        total = total.index_add(0, batch.sentence_of, states.float())[:-1]
        scores: Tensor = self.classifiers[depth](total / batch.sizes.unsqueeze(1))
        return scores

    def classifier_parameters(self) -> list[nn.Parameter]:
        return list(self.classifiers.parameters())

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The trained tensors by the names of the model folder."""
        made = super().tensors()
        for depth, own in self.classifiers.items():
            for name, value in own.state_dict().items():
                made[f"context.{depth}.{name}"] = value.float().cpu().numpy().copy()
        return made


def widen_adapter(
    tensors: Mapping[str, NDArray[np.float32]], rank: int, seed: int
) -> dict[str, NDArray[np.float32]]:
    """
    The same adapter with more rows in its low-rank matrices.

    The new rows of `up` are zero, so that nothing changes yet; those of `down` are random.
    """
    random = np.random.default_rng(seed)
    made = dict(tensors)
    for name, value in tensors.items():
        more = rank - len(value)
        if not name.endswith((".up.weight", ".down.weight")) or more <= 0:
            continue
        new = np.zeros((more, value.shape[1]), np.float32)
        if name.endswith(".down.weight"):
            scale = (2 / value.shape[1]) ** 0.5
            new = (random.standard_normal(new.shape) * scale).astype(np.float32)
        made[name] = np.concatenate([value, new])
    return made
