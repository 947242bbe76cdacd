"""
The networks of the light rankers: Cosinet, Compare-Aggregate and Rel-CNN.

Cosinet (Bonadiman & Moschitti, 2020) has one convolution per text over word vectors with their
relatedness to the other text. Compare-Aggregate (Wang & Jiang, 2016) is rebuilt as by the authors
of Cosinet, with frozen vectors. Rel-CNN (Severyn & Moschitti, 2015 and 2016) marks the words that
both texts share; it has vectors of 300 dimensions instead of 50, and four counts: the shares of
words and of idf that the texts have in common, from the side of the question and of the candidate.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ...models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    RelationalCNNConfig,
)
from .encoded_questions import PaddedTexts, QuestionBatch
from .light_layers import Dropout, ListLayer, PooledConvolution

__all__ = [
    "TorchCompareAggregate",
    "TorchCosinet",
    "TorchRelationalCNN",
    "build_network",
    "parameter_count",
]


class TorchCosinet(nn.Module):
    """Convolutions over words with match channels; a pair is product and difference."""

    def __init__(self, config: CosinetConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        shape = config.dimensions, len(config.channels), config.filters, config.width
        self.question = PooledConvolution(*shape)
        self.candidate = PooledConvolution(*shape)
        self.list = ListLayer(config.list_layer, config.pair_size, config.list_hidden)
        self.score = nn.Linear(self.list.outputs, 1)
        self.dropout = Dropout(dropout)

    def forward(self, batch: QuestionBatch) -> Tensor:
        """One score per pair."""
        question = self.question(
            batch.questions, batch.question_channels, batch.owner
        )  # (pairs, filters)
        candidate = self.candidate(batch.candidates, batch.candidate_channels)  # (pairs, filters)
        pairs = torch.cat(
            [question * candidate, question - candidate], dim=1
        )  # (pairs, 2 * filters)
        read = self.list(self.dropout(pairs, batch.random), batch.sizes)  # (pairs, hidden)
        scores: Tensor = self.score(read).squeeze(1)
        return scores


class TorchCompareAggregate(nn.Module):
    """Each word times its attention over the other text; convolutions of several widths."""

    def __init__(self, config: CompareAggregateConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.gate = nn.Linear(config.dimensions, config.gate)
        self.content = nn.Linear(config.dimensions, config.gate)
        self.question = _Convolutions(config)
        self.candidate = _Convolutions(config)
        self.list = ListLayer(config.list_layer, config.pair_size, config.list_hidden)
        self.score = nn.Linear(self.list.outputs, 1)
        self.dropout = Dropout(dropout)

    def forward(self, batch: QuestionBatch) -> Tensor:
        """One score per pair."""
        question = self._gated(batch.questions)[batch.owner]  # (pairs, question words, gate)
        candidate = self._gated(batch.candidates)  # (pairs, candidate words, gate)
        in_question = batch.questions.mask[batch.owner]
        in_candidate = batch.candidates.mask
        similarity = question @ candidate.transpose(
            1, 2
        )  # (pairs, question words, candidate words)
        to_candidate = similarity.masked_fill(~in_candidate[:, None], -torch.inf).softmax(2)
        to_question = similarity.masked_fill(~in_question[..., None], -torch.inf).softmax(1)
        pairs = [
            self.question(question * (to_candidate @ candidate), in_question),
            self.candidate(candidate * (to_question.transpose(1, 2) @ question), in_candidate),
        ]
        joined = self.dropout(torch.cat(pairs, dim=1), batch.random)
        read = self.list(joined, batch.sizes)
        scores: Tensor = self.score(read).squeeze(1)
        return scores

    def _gated(self, texts: PaddedTexts) -> Tensor:
        """Gated word vectors, computed once per distinct word."""
        passed = self.gate(texts.vectors).sigmoid() * self.content(texts.vectors).tanh()
        words: Tensor = passed[texts.words]
        return words


class _Convolutions(nn.ModuleList):
    """One convolution for each width, each with tanh and its maximum over positions, joined."""

    def __init__(self, config: CompareAggregateConfig) -> None:
        super().__init__(nn.Conv1d(config.gate, config.filters, width) for width in config.widths)
        self.before = max(config.widths) // 2  # of a window, the greater half

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """
        (pairs, words, gate) → (pairs, widths * filters).

        Texts are in one row with zeros between them, so that padding is not computed. Narrow
        filters have zeros at their ends, so that one matrix product serves all widths: on a GPU
        a step takes a fraction of what a convolution for each width takes.
        """
        there = mask.flatten().nonzero().squeeze(1)  # the words that there are
        pair = there // mask.shape[1]
        at = torch.arange(len(pair), device=pair.device) + self.before * (pair + 1)
        line = words.new_zeros(len(there) + self.before * (len(mask) + 1), words.shape[2])
        line = line.index_copy(0, at, words.flatten(0, 1).index_select(0, there))
        windows = line.unfold(0, 2 * self.before + 1, 1).flatten(1)  # (windows, gate * width)
        values = windows @ self._weight().T  # (windows, widths * filters)
        # Between the windows of two texts there are those of the gap.
        lengths = F.pad(mask.sum(1, keepdim=True), (0, 1), value=self.before).flatten()[:-1]
        highest: Tensor = _Highest.apply(values, lengths)  # type: ignore[no-untyped-call]
        return (highest[::2] + torch.cat([one.get_parameter("bias") for one in self])).tanh()

    def _weight(self) -> Tensor:
        """(widths * filters, gate * greatest width), with the filters centered."""
        widened = []
        for one in self:
            weight = one.get_parameter("weight")
            left = self.before - weight.shape[2] // 2
            right = 2 * self.before + 1 - weight.shape[2] - left
            widened.append(F.pad(weight, (left, right)))
        return torch.cat(widened).flatten(1)


class _Highest(torch.autograd.Function):
    """
    (rows, columns) and the lengths of segments → (segments, columns), the highest of each.

    As `torch.segment_reduce`, whose gradient is wrong where values are equal: here they share it.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, lengths: Tensor) -> Tensor:
        """A segment without rows has minus infinity."""
        highest = torch.segment_reduce(values, "max", lengths=lengths, unsafe=True)
        ctx.save_for_backward(values, lengths, highest)
        return highest

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """The gradient goes to the rows with the highest value."""
        values, lengths, highest = ctx.saved_tensors
        segments = torch.arange(len(lengths), device=lengths.device)
        segment = segments.repeat_interleave(lengths, output_size=len(values))
        wins = (values == highest.index_select(0, segment)).to(values.dtype)
        count = torch.segment_reduce(wins, "sum", lengths=lengths, unsafe=True)
        return wins.mul_((gradient / count.clamp(min=1)).index_select(0, segment)), None


class TorchRelationalCNN(nn.Module):
    """Needs the channels `exact` and `exact_idf`, in this order."""

    def __init__(self, config: RelationalCNNConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        shape = config.dimensions, config.mark, config.filters, config.width
        self.mark = nn.Embedding(2, config.mark)  # not in the other text, in it
        self.question = PooledConvolution(*shape)
        self.candidate = PooledConvolution(*shape)
        self.likeness = nn.Linear(config.filters, config.filters, bias=False)
        self.hidden = nn.Linear(config.pair_size, config.pair_size)
        self.score = nn.Linear(config.pair_size, 1)
        self.dropout = Dropout(dropout)

    def forward(self, batch: QuestionBatch) -> Tensor:
        """One score per pair."""
        in_question = batch.questions.mask[batch.owner]
        marks = self._marks(batch.question_channels, in_question)
        question = self.question(batch.questions, marks, batch.owner).tanh()  # (pairs, filters)
        marks = self._marks(batch.candidate_channels, batch.candidates.mask)
        candidate = self.candidate(batch.candidates, marks).tanh()  # (pairs, filters)
        like = (self.likeness(question) * candidate).sum(1, keepdim=True)  # (pairs, 1)
        counts = [
            batch.question_channels.sum(1) / in_question.sum(1, keepdim=True),  # (pairs, 2)
            batch.candidate_channels.sum(1) / batch.candidates.lengths[:, None],  # (pairs, 2)
        ]
        pairs = self.dropout(torch.cat([question, like, candidate, *counts], dim=1), batch.random)
        scores: Tensor = self.score(self.dropout(self.hidden(pairs).tanh(), batch.random)).squeeze(
            1
        )
        return scores

    def _marks(self, channels: Tensor, mask: Tensor) -> Tensor:
        """(pairs, words, mark), zero after the end of a text."""
        marks: Tensor = self.mark(channels[..., 0].long()) * mask[..., None]
        return marks


def build_network(config: LightConfig, *, dropout: float = 0.0) -> nn.Module:
    """The network of a config, with new weights."""
    if isinstance(config, CosinetConfig):
        return TorchCosinet(config, dropout=dropout)
    if isinstance(config, CompareAggregateConfig):
        return TorchCompareAggregate(config, dropout=dropout)
    if isinstance(config, RelationalCNNConfig):
        return TorchRelationalCNN(config, dropout=dropout)
    raise TypeError(f"No network for {type(config).__name__}.")


def parameter_count(network: nn.Module) -> int:
    """The number of trained parameters; word vectors are frozen and not part of a network."""
    return sum(parameter.numel() for parameter in network.parameters())
