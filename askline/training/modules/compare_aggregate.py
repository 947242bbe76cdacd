"""Compare-Aggregate (Wang & Jiang, 2016) as Cosinet's authors rebuilt it, with frozen vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...models.layouts import CompareAggregateLayout
from ..batches import Batch, Texts
from .list_layer import ListLayer

__all__ = ["CompareAggregate"]


class CompareAggregate(nn.Module):
    """Each word times what it attends to in the other text; convolutions of several widths."""

    def __init__(self, layout: CompareAggregateLayout, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.gate = nn.Linear(layout.dimensions, layout.gate)
        self.content = nn.Linear(layout.dimensions, layout.gate)
        self.question = _Convolutions(layout)
        self.candidate = _Convolutions(layout)
        self.list = ListLayer(layout.list_layer, layout.pair, layout.list_hidden)
        self.score = nn.Linear(self.list.outputs, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        """One score a pair."""
        asked = self._gated(batch.questions)[batch.owner]  # (pairs, question words, gate)
        said = self._gated(batch.candidates)  # (pairs, candidate words, gate)
        in_question = batch.questions.inside[batch.owner]
        in_candidate = batch.candidates.inside
        likeness = asked @ said.transpose(1, 2)  # (pairs, question words, candidate words)
        to_said = likeness.masked_fill(~in_candidate[:, None], -torch.inf).softmax(2)
        to_asked = likeness.masked_fill(~in_question[..., None], -torch.inf).softmax(1)
        pairs = [
            self.question(asked * (to_said @ said), in_question),
            self.candidate(said * (to_asked.transpose(1, 2) @ asked), in_candidate),
        ]
        read = self.list(self.dropout(torch.cat(pairs, dim=1)), batch.sizes)
        scores: Tensor = self.score(read).squeeze(1)
        return scores

    def _gated(self, texts: Texts) -> Tensor:
        """Content let through by the gate, computed once for each distinct word."""
        passed = self.gate(texts.vectors).sigmoid() * self.content(texts.vectors).tanh()
        words: Tensor = passed[texts.words]
        return words


class _Convolutions(nn.ModuleList):
    """One convolution for each width, each with tanh and its maximum over positions, joined."""

    def __init__(self, layout: CompareAggregateLayout) -> None:
        super().__init__(nn.Conv1d(layout.gate, layout.filters, width) for width in layout.widths)
        self.widths, self.gap = layout.widths, max(layout.widths) - 1

    def forward(self, words: Tensor, inside: Tensor) -> Tensor:
        """
        (pairs, words, gate) → (pairs, widths * filters).

        Texts stand in one line with zeros between them, so that no work goes into padding.
        """
        pair, _ = inside.nonzero(as_tuple=True)  # of each word that there is
        at = torch.arange(len(pair), device=pair.device) + self.gap * (pair + 1)
        line = words.new_zeros(int(at[-1]) + 1 + self.gap, words.shape[2])
        line = line.index_copy(0, at, words[inside]).T[None]  # (1, gate, line)
        pooled = []
        for width, convolution in zip(self.widths, self, strict=True):
            # One window a word, with the greater half before it: (words that there are, filters).
            values = convolution(line)[0].T[at - width // 2]
            padded = values.new_full((*inside.shape, values.shape[1]), -torch.inf)
            pooled.append(padded.masked_scatter(inside[..., None], values).amax(1))
        return torch.cat(pooled, dim=1).tanh()
