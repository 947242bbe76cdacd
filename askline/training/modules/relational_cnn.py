"""
Rel-CNN (Severyn & Moschitti, 2015 and 2016): words marked where the texts overlap.

Their network with word vectors of 300 dimensions instead of 50. The four counts are the shares of
words and of idf that the texts have in common, each as seen from the question and the candidate.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...models.light_config import RelationalCNNLayout
from ..batches import Batch
from .dropout import Dropout
from .pooled_convolution import PooledConvolution

__all__ = ["RelationalCNN"]


class RelationalCNN(nn.Module):
    """Needs the channels `exact` and `exact_idf`, in this order."""

    def __init__(self, layout: RelationalCNNLayout, *, dropout: float = 0.0) -> None:
        super().__init__()
        shape = layout.dimensions, layout.mark, layout.filters, layout.width
        self.mark = nn.Embedding(2, layout.mark)  # not in the other text, in it
        self.question = PooledConvolution(*shape)
        self.candidate = PooledConvolution(*shape)
        self.likeness = nn.Linear(layout.filters, layout.filters, bias=False)
        self.hidden = nn.Linear(layout.pair, layout.pair)
        self.score = nn.Linear(layout.pair, 1)
        self.dropout = Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        """One score a pair."""
        in_question = batch.questions.inside[batch.owner]
        marks = self._marks(batch.asked, in_question)
        asked = self.question(batch.questions, marks, batch.owner).tanh()  # (pairs, filters)
        marks = self._marks(batch.said, batch.candidates.inside)
        said = self.candidate(batch.candidates, marks).tanh()  # (pairs, filters)
        like = (self.likeness(asked) * said).sum(1, keepdim=True)  # (pairs, 1)
        counts = [
            batch.asked.sum(1) / in_question.sum(1, keepdim=True),  # (pairs, 2)
            batch.said.sum(1) / batch.candidates.lengths[:, None],  # (pairs, 2)
        ]
        pairs = self.dropout(torch.cat([asked, like, said, *counts], dim=1), batch.random)
        scores: Tensor = self.score(self.dropout(self.hidden(pairs).tanh(), batch.random)).squeeze(
            1
        )
        return scores

    def _marks(self, channels: Tensor, inside: Tensor) -> Tensor:
        """(pairs, words, mark), zero after the end of a text."""
        marks: Tensor = self.mark(channels[..., 0].long()) * inside[..., None]
        return marks
