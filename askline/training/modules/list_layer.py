"""A recurrent layer over a question's candidates, in the order they came: the document's."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ...models.light_config import ListLayerKind
from .recurrence import read_lists

__all__ = ["ListLayer"]


class ListLayer(nn.Module):
    """Pairs read as lists. `hidden` is the size of both directions together."""

    def __init__(self, kind: ListLayerKind, inputs: int, hidden: int) -> None:
        super().__init__()
        self.outputs = inputs if kind == "none" else hidden
        self.reader: nn.RNNBase | None = None
        if kind != "none":
            both = kind.startswith("bi")
            cell = nn.LSTM if kind.endswith("lstm") else nn.RNN
            own = hidden // 2 if both else hidden
            self.reader = cell(inputs, own, batch_first=True, bidirectional=both)

    def forward(self, pairs: Tensor, sizes: Sequence[int]) -> Tensor:
        """(pairs, inputs) of several questions in a row → (pairs, outputs)."""
        if self.reader is None:
            return pairs
        if isinstance(self.reader, nn.RNN) and not pairs.is_cuda:
            return read_lists(self.reader, pairs, sizes)
        lengths = torch.tensor(sizes)
        inside = torch.arange(max(sizes)) < lengths[:, None]  # (questions, longest list)
        at = torch.zeros(inside.shape, dtype=torch.long)
        at[inside] = torch.arange(len(pairs))
        lists = pairs[at.to(pairs.device)]  # (questions, longest list, inputs)
        packed = pack_padded_sequence(lists, lengths, batch_first=True, enforce_sorted=False)
        read, _ = pad_packed_sequence(self.reader(packed)[0], batch_first=True)
        return read.flatten(0, 1)[inside.flatten().nonzero().squeeze(1).to(pairs.device)]
