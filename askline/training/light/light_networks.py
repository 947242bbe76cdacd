"""
The networks of the light rankers, and their layers with fast paths for a CPU.

Cosinet (Bonadiman & Moschitti, 2020) has one convolution per text over word vectors with their
relatedness to the other text. Compare-Aggregate (Wang & Jiang, 2016) is rebuilt as by the authors
of Cosinet, with frozen vectors. Rel-CNN (Severyn & Moschitti, 2015 and 2016) marks the words that
both texts share; it has vectors of 300 dimensions instead of 50, and four counts: the shares of
words and of idf that the texts have in common, from the side of the question and of the candidate.

Torch turns a small recurrent layer into hundreds of operations per list. In `ListLayer` both
directions take their steps together, and the gradient of the weights is one product over all steps.

A pooled convolution is a convolution followed by the maximum over positions. Words repeat, so the
product of each tap with a distinct word is computed once, and the value at a position is a sum of
looked-up rows. The gradient of a maximum flows only to the position that has it, so the gradient of
a filter is a weighted sum of the word vectors at its maxima. Values and gradients are those of
`torch.nn.RNN` and of `Conv1d` with a maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # noqa: N812
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ...models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    ListLayerKind,
    RelationalCNNConfig,
)
from .encoded_questions import PaddedTexts, QuestionBatch

__all__ = [
    "Dropout",
    "ListLayer",
    "PooledConvolution",
    "TorchCompareAggregate",
    "TorchCosinet",
    "TorchRelationalCNN",
    "build_network",
    "parameter_count",
    "read_lists",
]


class Dropout(nn.Module):
    """Dropout with a generator per thread; `torch.nn.Dropout` shares one, in no fixed order."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, values: Tensor, random: torch.Generator | None) -> Tensor:
        """`random` may be None for torch's own generator."""
        if not self.training or not self.share:
            return values
        kept = torch.empty_like(values).bernoulli_(1 - self.share, generator=random)
        return values * kept.div_(1 - self.share)


def read_lists(reader: nn.RNNBase, pairs: Tensor, sizes: Sequence[int]) -> Tensor:
    """(pairs, inputs) of several lists, end to end → (pairs, directions * hidden)."""
    ends = ("", "_reverse")[: 2 if reader.bidirectional else 1]
    into, again, bias, other = (
        torch.stack([reader.get_parameter(f"{name}_l0{end}") for end in ends])
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )  # (directions, …) each
    given = torch.addmm((bias + other).flatten(), pairs, into.flatten(0, 1).T)
    at, where = _places(sizes, len(ends))
    read: Tensor = _Recurrence.apply(  # type: ignore[no-untyped-call]
        given.view(-1, reader.hidden_size), again, at, where
    )
    return read.view(len(pairs), -1)


def _places(sizes: Sequence[int], directions: int) -> tuple[Tensor, Tensor]:
    """
    Which row of (pairs * directions) each list reads at each step, and where each row is read.

    (steps, directions, lists) and (pairs * directions,). After its end a list reads row 0; nothing
    depends on what comes of it.
    """
    lengths = torch.tensor(sizes)
    starts = lengths.cumsum(0) - lengths
    step = torch.arange(max(sizes))[:, None]  # (steps, 1)
    mask = step < lengths  # (steps, lists)
    ways = [starts + step, starts + lengths - 1 - step][:directions]
    rows = torch.stack([way * directions + which for which, way in enumerate(ways)], 1)
    mask = mask[:, None].expand_as(rows)
    where = torch.empty(sum(sizes) * directions, dtype=torch.long)
    where[rows[mask]] = mask.flatten().nonzero().squeeze(1)
    return torch.where(mask, rows, 0), where


class _Recurrence(torch.autograd.Function):
    """tanh(given + weight @ previous state), in both directions at once."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, weight: Tensor, at: Tensor, where: Tensor) -> Tensor:
        """(pairs * directions, hidden), (directions, hidden, hidden) → as `given`."""
        states = given.index_select(0, at.flatten()).view(*at.shape, -1)
        turned = weight.transpose(1, 2)
        before, *rest = states.unbind()  # (directions, lists, hidden) each
        before.tanh_()
        for state in rest:
            before = state.baddbmm_(before, turned).tanh_()
        ctx.save_for_backward(states, weight, where)
        return states.flatten(0, 2).index_select(0, where)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """From the last step to the first."""
        states, weight, where = ctx.saved_tensors
        back = torch.zeros_like(states)
        back.flatten(0, 2).index_copy_(0, where, gradient)
        slopes = (1 - states * states).unbind()
        steps = back.unbind()
        after = steps[-1].mul_(slopes[-1])
        for step, slope in zip(steps[-2::-1], slopes[-2::-1], strict=True):
            after = step.baddbmm_(after, weight).mul_(slope)
        hidden = back[1:].permute(1, 3, 0, 2).flatten(2)  # (directions, hidden, steps * lists)
        before = states[:-1].transpose(0, 1).flatten(1, 2)  # (directions, steps * lists, hidden)
        return back.flatten(0, 2).index_select(0, where), hidden @ before, None, None


class ListLayer(nn.Module):
    """A recurrent layer over the candidates of a question, in their original order.

    `hidden` is the size of both directions together.
    """

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
        mask = torch.arange(max(sizes)) < lengths[:, None]  # (questions, longest list)
        at = torch.zeros(mask.shape, dtype=torch.long)
        at[mask] = torch.arange(len(pairs))
        lists = pairs[at.to(pairs.device)]  # (questions, longest list, inputs)
        packed = pack_padded_sequence(lists, lengths, batch_first=True, enforce_sorted=False)
        read, _ = pad_packed_sequence(self.reader(packed)[0], batch_first=True)
        return read.flatten(0, 1)[mask.flatten().nonzero().squeeze(1).to(pairs.device)]


_POSITIONS_AT_ONCE = 1024  # on a CPU: what stays in cache, short texts apart from long ones


class PooledConvolution(nn.Module):
    """
    (dimensions + channels) → filters over an odd width, zeros beyond both ends of a text.

    The weights are kept tap by tap, as the products take them, for copying them takes as long as
    some of those; `state_dict` has them as `Conv1d` would: "weight", (filters, inputs, width).
    """

    def __init__(self, dimensions: int, channels: int, filters: int, width: int) -> None:
        super().__init__()
        inputs = dimensions + channels
        start = (inputs * width) ** -0.5  # as Conv1d starts
        weight = torch.empty(filters, inputs, width).uniform_(-start, start)
        self.taps = nn.Parameter(weight.permute(2, 0, 1).contiguous())  # (width, filters, inputs)
        self.bias = nn.Parameter(torch.empty(filters).uniform_(-start, start))

    def forward(self, texts: PaddedTexts, channels: Tensor, owner: Tensor | None = None) -> Tensor:
        """
        Pairs' channels (pairs, longest, channels) → (pairs, filters).

        `owner` says which text each pair has; without it there is one text a pair.
        """
        width = len(self.taps)
        ends = 2 * (width // 2,)
        around = F.pad(texts.words, ends).unfold(1, width, 1)  # (texts, longest, width)
        beside = F.pad(channels.transpose(1, 2), ends).unfold(2, width, 1)
        beside = beside.transpose(1, 2)  # (pairs, longest, channels, width)
        if owner is None:
            owner = torch.arange(len(channels), device=channels.device)
        given = (texts.vectors, around, owner, texts.lengths[owner])
        highest: Tensor = _HighestInPairs.apply(self.taps, beside, *given)  # type: ignore[no-untyped-call]
        return highest + self.bias

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = destination.pop(f"{prefix}taps").permute(1, 2, 0)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        weight = state.pop(f"{prefix}weight", None)
        if weight is not None:
            state[f"{prefix}taps"] = weight.permute(2, 0, 1)
        super()._load_from_state_dict(state, prefix, *rest)


class _HighestInPairs(torch.autograd.Function):
    """The highest value that each filter has in each pair."""

    @staticmethod
    def forward(
        ctx: Any,
        taps: Tensor,  # (width, filters, dimensions + channels)
        beside: Tensor,  # (pairs, longest, channels, width)
        vectors: Tensor,  # (distinct, dimensions)
        around: Tensor,  # (texts, longest, width) rows of `vectors`
        owner: Tensor,  # (pairs,) which text
        lengths: Tensor,  # (pairs,)
    ) -> Tensor:
        """→ (pairs, filters)."""
        width, filters, _ = taps.shape
        dimensions = vectors.shape[1]
        by_word = taps.flatten(0, 1)[:, :dimensions]  # (width * filters, dimensions)
        table = (vectors @ by_word.T).view(-1, filters)  # what each tap makes of each word
        shared = taps[..., dimensions:].permute(2, 0, 1).flatten(0, 1)  # (channels * width, …)
        highest = beside.new_empty(len(beside), filters)
        chosen = lengths.new_empty(highest.shape)  # the position of each
        longest = around.shape[1]
        rows = (around * width + torch.arange(width, device=around.device)).flatten(0, 1)
        # Pairs that share a text share its sums.
        shares = len(around) < len(beside)
        whole = F.embedding_bag(rows, table, mode="sum") if shares else None
        for pairs, place in _by_length(lengths):
            at = (place + owner[pairs, None] * longest).flatten()
            if whole is None:
                sums = F.embedding_bag(rows.index_select(0, at), table, mode="sum")
            else:
                sums = whole.index_select(0, at)
            sums.addmm_(beside[pairs[:, None], place].reshape(len(sums), -1), shared)
            highest[pairs], at = _first_maximum(sums.view(*place.shape, -1))
            # A repeated last position can have the maximum because of rounding.
            chosen[pairs] = at.minimum(place[:, -1:])
        ctx.save_for_backward(taps, beside, vectors, around, owner, chosen)
        return highest

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """For each filter and tap the inputs at its maxima, weighted by the gradients."""
        taps, beside, vectors, around, owner, chosen = ctx.saved_tensors
        longest, dimensions = around.shape[1], vectors.shape[1]
        words = around.flatten(0, 1)  # (texts * longest, width)
        at = chosen + owner[:, None] * longest  # (pairs, filters)
        found = torch.empty_like(taps)
        choose = _by_position if len(words) < 4 * len(chosen) else _by_choice
        found[..., :dimensions] = choose(gradient, at, words, vectors)
        # Filters by pairs, so that a filter's choices lie in one piece.
        pairs = torch.arange(len(chosen), device=chosen.device)[:, None]
        near = beside.permute(3, 2, 0, 1).reshape(-1, len(pairs) * longest)
        near = near.index_select(1, (chosen + pairs * longest).T.flatten())
        by_filter = gradient.T.contiguous()
        by_channels = (near.view(-1, *by_filter.shape) * by_filter).sum(2)
        found[..., dimensions:] = by_channels.view(len(taps), -1, len(by_filter)).transpose(1, 2)
        back = None
        if ctx.needs_input_grad[1]:
            each = gradient[..., None, None] * taps[..., dimensions:].permute(1, 2, 0)
            place = chosen[..., None, None].expand_as(each)
            back = gradient.new_zeros(beside.shape).scatter_add_(1, place, each)
        return found, back, None, None, None, None


def _by_choice(gradient: Tensor, at: Tensor, words: Tensor, vectors: Tensor) -> Tensor:
    """(width, filters, dimensions): the vectors of the words at the maxima, one by one."""
    width, filters = words.shape[1], gradient.shape[1]
    bags = words.T.index_select(1, at.T.flatten()).view(width * filters, -1)
    weights = gradient.T.repeat(width, 1)
    sums = F.embedding_bag(bags, vectors, per_sample_weights=weights, mode="sum")
    return sums.view(width, filters, -1)


def _by_position(gradient: Tensor, at: Tensor, words: Tensor, vectors: Tensor) -> Tensor:
    """As `_by_choice`, but sums gradients by position first: for positions shared by many pairs."""
    width, filters = words.shape[1], gradient.shape[1]
    sums = gradient.new_zeros(len(words), filters).scatter_add_(0, at, gradient)
    seen = vectors.index_select(0, words.flatten()).view(len(words), -1)  # (…, width * dimensions)
    return (sums.T @ seen).view(filters, width, -1).transpose(0, 1)


def _first_maximum(values: Tensor) -> tuple[Tensor, Tensor]:
    """As `values.max(1)`, whose index search takes most of its time on a CPU."""
    if values.is_cuda:
        return values.max(1)
    highest = values.amax(1, keepdim=True)
    count = values.shape[1]
    back = torch.arange(count, 0, -1, dtype=values.dtype)[:, None]  # the first counts most
    # Written as numbers: a comparison that makes booleans takes four times as long.
    wins = torch.eq(values, highest, out=torch.empty_like(values)).mul_(back)
    return highest.squeeze(1), count - wins.amax(1).long()


def _by_length(lengths: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """
    Some pairs and their positions (pairs, longest of them): beyond its end a text repeats its last.

    All pairs at once on a GPU; on a CPU in groups of about one length.
    """
    order, start = lengths.argsort(stable=True, descending=True), 0
    while start < len(order):
        longest = int(lengths[order[start]])
        size = len(order) if lengths.is_cuda else max(1, _POSITIONS_AT_ONCE // longest)
        pairs = order[start : start + size]
        last = lengths[pairs, None] - 1
        yield pairs, torch.arange(longest, device=last.device).minimum(last)
        start += size


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
