"""
The reader of a cascade: which tokens of a text are the answer, or that it has no answer.

It is trained on (question, paragraph) pairs with a span, together with the candidate lists, whose
answer sentences have spans as well. No answer is encoded as the first token, as in SQuAD 2.0.
Paragraphs that are longer than the encoder's maximum are read in overlapping windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..losses import segment_log_softmax
from ..packing import PackedBatch, PairTemplate, Rows, TokenRange, TokenTable, pack
from .cascade_network import SCORING_TOKENS, CascadeNetwork, split_by_tokens

__all__ = [
    "QUESTION_LIMIT",
    "SpanBatch",
    "SpanExamples",
    "best_spans",
    "read_spans",
    "room_beside",
    "span_distillation_loss",
    "span_loss",
    "text_windows",
]

QUESTION_LIMIT = 64
"""Longer questions are truncated to this number of tokens."""


def room_beside(table: TokenTable, questions: Rows, template: PairTemplate, limit: int) -> Rows:
    """The number of tokens of a second text that fit after each question."""
    asked = np.minimum(table.lengths(questions), QUESTION_LIMIT)
    found: Rows = limit - template.extra - asked
    return found


def text_windows(
    table: TokenTable,
    questions: Rows,
    texts: Rows,
    template: PairTemplate,
    *,
    limit: int,
    overlap: int = 128,
) -> tuple[Rows, Rows, Rows]:
    """
    The text of each window (an index into `texts`), its first token and its length.

    A text that fits is one window, and so is an empty text.
    """
    counts = table.lengths(texts)
    room = room_beside(table, questions, template, limit)
    shared = np.minimum(overlap, room // 2)
    rows = [
        (place, start, min(size, count - start))
        for place, (count, size, both) in enumerate(
            zip(counts.tolist(), room.tolist(), shared.tolist(), strict=True)
        )
        for start in range(0, max(1, count - both), size - both)
    ]
    owners, starts, lengths = np.array(rows, np.int64).reshape(-1, 3).T
    return owners, starts, lengths


_MARKS = 8  # special tokens of a pair: three in BERT, four in RoBERTa
LONGEST_ANSWER = 30
"""In tokens; 0.3 % of the answers in the training sets are longer."""


class SpanBatch(NamedTuple):
    """Examples of one step: text numbers, a window of each paragraph, and the span in it."""

    questions: Rows
    paragraphs: Rows
    window: TokenRange
    spans: NDArray[np.int64]  # (examples, 2) within the window, -1 for no answer

    def shifted(self, texts: int) -> SpanBatch:
        """The same with `texts` added to all text numbers."""
        return self._replace(questions=self.questions + texts, paragraphs=self.paragraphs + texts)

    def part(self, rows: slice) -> SpanBatch:
        """Some of the examples."""
        window = TokenRange(self.window.start[rows], self.window.length[rows])
        return SpanBatch(self.questions[rows], self.paragraphs[rows], window, self.spans[rows])


@dataclass(frozen=True, slots=True, eq=False)
class SpanExamples:
    """Questions about paragraphs, with answer spans."""

    table: TokenTable
    questions: Rows
    paragraphs: Rows
    spans: NDArray[np.int64]  # (examples, 2): first and last token of the answer
    others: Rows
    """A paragraph that does not answer the question; -1 if none is known."""
    limit: int = 384
    """Tokens per sequence; of a longer paragraph, a window that contains the answer is used."""

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.questions)

    def draw(self, rows: Rows, random: np.random.Generator, *, wrong: float = 0.1) -> SpanBatch:
        """Some examples; a share `wrong` of them get a paragraph without the answer."""
        swapped = (random.random(len(rows)) < wrong) & (self.others[rows] >= 0)
        paragraphs = np.where(swapped, self.others[rows], self.paragraphs[rows])
        spans = np.where(swapped[:, None], -1, self.spans[rows])
        counts = self.table.lengths(paragraphs)
        asked = np.minimum(self.table.lengths(self.questions[rows]), QUESTION_LIMIT)
        room = self.limit - _MARKS - asked
        length = np.minimum(counts, room)
        # A random window that contains the answer.
        low = np.maximum(0, spans[:, 1] + 1 - length)
        high = np.minimum(np.maximum(spans[:, 0], 0), counts - length)
        start = random.integers(low, np.maximum(high, low) + 1)
        inside = np.where(spans >= 0, spans - start[:, None], -1)
        return SpanBatch(self.questions[rows], paragraphs, TokenRange(start, length), inside)


def span_log_probabilities(ends: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
    """
    The log-probability of each token to start and to end the answer: (2, tokens).

    Only tokens of the second text can, and the first token, which means no answer.
    """
    shut = ~batch.in_second
    shut[batch.starts[:-1].long()] = False
    open_ends = ends.masked_fill(shut.unsqueeze(1), -1e4)
    return segment_log_softmax(open_ends.T.contiguous(), batch.owners, len(batch))


def span_distillation_loss(
    ends: torch.Tensor,
    batch: PackedBatch,
    teachers: Sequence[torch.Tensor],
    weights: torch.Tensor | None = None,
) -> torch.Tensor:
    """
    Cross-entropy to the mean of the teachers' probabilities, averaged over sequences.

    `weights` (sequences,) are those of the average; all are equal without them.
    """
    probabilities = torch.stack(
        [span_log_probabilities(one, batch).exp() for one in teachers]
    ).mean(0)
    losses = -(span_log_probabilities(ends, batch) * probabilities).sum(0) / 2  # (tokens,)
    if weights is None:
        return losses.sum() / len(batch)
    return (losses * weights[batch.owners]).sum() / weights.sum()


def span_loss(
    ends: torch.Tensor, batch: PackedBatch, spans: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """
    Cross-entropy of the true start and end, the weighted mean over sequences.

    `spans` (sequences, 2) are first and last token of the answer within the second text, -1 for no
    answer; `weights` (sequences,).
    """
    begin = batch.starts[:-1].long().unsqueeze(1)
    targets = torch.where(spans < 0, begin, begin + batch.second.unsqueeze(1) + spans)
    taken = span_log_probabilities(ends, batch).gather(1, targets.T)  # (2, sequences)
    return -(taken.mean(0) * weights).sum() / weights.sum().clamp(min=1e-9)


def best_spans(ends: torch.Tensor, batch: PackedBatch) -> NDArray[np.float64]:
    """
    The best span of each sequence: (sequences, 4).

    First and last token, counted from the start of the second text, the sum of their logits, and
    the same sum for no answer. If the second text is empty, the span is -1, -1.
    """
    count, width = len(batch), batch.longest
    where = (batch.owners[batch.in_second], batch.positions[batch.in_second])
    grid = ends.new_full((2, count, width), -1e9)
    for side in (0, 1):
        grid[side][where] = ends[batch.in_second, side]
    best = ends.new_full((count,), -2e9)
    first = torch.zeros(count, dtype=torch.long, device=ends.device)
    last = first.clone()
    for longer in range(min(LONGEST_ANSWER, width)):
        score, place = (grid[0][:, : width - longer] + grid[1][:, longer:]).max(1)
        better = score > best
        best = torch.where(better, score, best)
        first = torch.where(better, place, first)
        last = torch.where(better, place + longer, last)
    empty = best < -1e8
    none = ends[batch.starts[:-1].long()].sum(1)
    columns = [
        torch.where(empty, -1, first - batch.second),
        torch.where(empty, -1, last - batch.second),
        best,
        none,
    ]
    found: NDArray[np.float64] = torch.stack([each.double() for each in columns], 1).cpu().numpy()
    return found


@torch.inference_mode()
def read_spans(
    network: CascadeNetwork,
    table: TokenTable,
    template: PairTemplate,
    questions: Rows,
    paragraphs: Rows,
    *,
    limit: int = 384,
    stride: int = 128,
) -> NDArray[np.float64]:
    """
    `best_spans` of every (question, paragraph), with tokens counted from the paragraph's start.

    A paragraph over the limit is read in windows that overlap by `stride` tokens. The best window
    counts; there is no answer only if no window has one.
    """
    network.eval()
    device = next(network.parameters()).device
    owners, starts, lengths = text_windows(
        table, questions, paragraphs, template, limit=limit, overlap=stride
    )
    found = np.empty((len(owners), 4))
    sizes = lengths + np.minimum(table.lengths(questions[owners]), QUESTION_LIMIT)
    for part in split_by_tokens(sizes, SCORING_TOKENS):
        rows = owners[part]
        window = TokenRange(starts[part], lengths[part])
        batch = pack(
            table, questions[rows], paragraphs[rows], template,
            limit=limit, window=window, device=device,
        )  # fmt: skip
        ends = network(batch).ends
        assert ends is not None  # the network has a reader
        found[part] = best_spans(ends, batch)
    found[:, :2] += np.where(found[:, :2] >= 0, starts[:, None], 0)
    best = np.full((len(questions), 4), -np.inf)
    best[:, :2], best[:, 3] = -1, np.inf
    for row, values in zip(owners, found, strict=True):
        none = min(best[row, 3], values[3])
        if values[2] > best[row, 2]:
            best[row] = values
        best[row, 3] = none
    return best
