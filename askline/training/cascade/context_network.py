"""
The context pass in torch: windows of several sentences through the adapted layers of a cascade.

A window is `[CLS] question [SEP] title (marker sentence)… [SEP]`. At several depths every sentence
gets a logit, from the mean of the states of its marker and its tokens. After the last layer every
token gets the logits of starting and ending the answer: that is the cascade's reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...models.cascade_config import CascadeConfig
from ..packing import PackedBatch, bert_layer
from .context_examples import ContextExamples, Window
from .reader_network import ADAPTER_DROPOUT, AdapterReader

__all__ = [
    "ContextNetwork",
    "ContextOutput",
    "WindowBatch",
    "WindowFormat",
    "widen_adapter",
]

_HEAD_DROPOUT = 0.1


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
