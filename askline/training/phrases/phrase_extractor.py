"""
The extractor: which phrases of a text could be an answer, before there is a question.

With `conditional` ends (EfficientQA), the end is scored given the encoding of its start. A single
layer over both would add the same number to every end of a start, so there is a hidden layer. With
`classic` ends, they are scored alone, as in readers with a question; it is kept for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ...errors import UnknownNameError
from ...phrases.extraction import Decoding, decode_spans
from ...phrases.tokenization import MAX_PHRASE_TOKENS, TokenWindow
from ..checkpoint import Epoch
from ..transformer.pair_network import autocast
from .phrase_training import (
    AnswerWindow,
    PhraseRecipe,
    Spans,
    TrainingCallbacks,
    batches_of_similar_length,
    device_of,
    pad,
    train_phrase_network,
)

__all__ = [
    "MASKED",
    "SPAN_ENDS",
    "Candidates",
    "Extractor",
    "SpanEnds",
    "SpanHead",
    "train_extractor",
]

SpanEnds = Literal["conditional", "classic"]
SPAN_ENDS: tuple[str, ...] = get_args(SpanEnds)
Candidates = tuple[NDArray[np.int32], NDArray[np.float32]]
MASKED = -1e4
"""Used instead of -inf, so that a softmax over masked values only is not nan."""
_HIDDEN = 128


class SpanHead(nn.Module):
    """Scores of starts, and of ends given a start, from an encoder's states."""

    def __init__(self, width: int, ends: SpanEnds = "conditional") -> None:
        super().__init__()
        if ends not in SPAN_ENDS:
            raise UnknownNameError("architecture of ends", ends, SPAN_ENDS)
        self.ends = ends
        self.start = nn.Linear(width, 1)
        if ends == "classic":
            self.end = nn.Linear(width, 1)
            return
        self.first = nn.Linear(width, _HIDDEN)
        self.last = nn.Linear(width, _HIDDEN, bias=False)
        self.length = nn.Embedding(MAX_PHRASE_TOKENS, _HIDDEN)
        self.join = nn.Linear(_HIDDEN, 1)

    def score_starts(self, states: Tensor, opens: Tensor) -> Tensor:
        """Log P(start) (windows, tokens)."""
        scores = self.start(states)[..., 0].float().masked_fill(~opens, MASKED)
        return functional.log_softmax(scores, -1)

    def score_ends(self, states: Tensor, closes: Tensor, rows: Tensor, starts: Tensor) -> Tensor:
        """Log P(end | start) (n, lengths) for starts (n,) in windows `rows` (n,)."""
        places = starts[:, None] + torch.arange(
            MAX_PHRASE_TOKENS, device=states.device
        )  # (n, MAX_PHRASE_TOKENS)
        beyond = places >= states.shape[1]
        places = places.clamp(max=states.shape[1] - 1)
        barred = beyond | ~closes[rows[:, None], places]
        if self.ends == "classic":
            alone = self.end(states)[..., 0].float().masked_fill(~closes, MASKED)
            alone = functional.log_softmax(alone, -1)
            return alone[rows[:, None], places].masked_fill(barred, MASKED)
        last = self.last(states)[rows[:, None], places]
        joined = self.first(states[rows, starts])[:, None] + last  # (n, MAX_PHRASE_TOKENS, hidden)
        scores = self.join(functional.relu(joined + self.length.weight))[..., 0].float()
        return functional.log_softmax(scores.masked_fill(barred, MASKED), -1)

    def loss(
        self,
        states: Tensor,
        windows: Sequence[TokenWindow],
        answers: Sequence[tuple[Spans, NDArray[np.float32]]],
    ) -> Tensor:
        """Cross-entropy to the answer spans, weighted by their shares."""
        opens, closes = _edges(windows, states)
        rows = np.repeat(np.arange(len(windows)), [len(spans) for spans, _ in answers])
        spans = torch.from_numpy(np.concatenate([spans for spans, _ in answers])).to(states.device)
        shares = torch.from_numpy(np.concatenate([part for _, part in answers])).to(states.device)
        where = torch.from_numpy(rows).to(states.device)
        first, last = spans[:, 0].long(), spans[:, 1].long()
        starts = self.score_starts(states, opens)[where, first]
        ends = self.score_ends(states, closes, where, first)
        right = starts + ends[torch.arange(len(first), device=states.device), last - first]
        return -(shares * right).sum() / len(windows)

    @torch.no_grad()
    def decode(
        self,
        states: Tensor,
        windows: Sequence[TokenWindow],
        *,
        limit: int = 100,
        how: Decoding = "joint",
        minor: NDArray[np.bool_] | None = None,
    ) -> list[Candidates]:
        """
        The candidate spans of each window and their log-probabilities, best first.

        Candidates that differ only by tokens of which `minor` (vocabulary,) is true count as one.
        """
        opens, closes = _edges(windows, states)
        starts = self.score_starts(states, opens)
        found = []
        for row, window in enumerate(windows):
            every = torch.arange(len(window), device=states.device)
            ends = self.score_ends(states, closes, torch.full_like(every, row), every)
            tables = starts[row, : len(window)].cpu().numpy(), ends.cpu().numpy()
            own = None if minor is None else minor[window.tokens]
            possible = map(_possible, tables)
            found.append(decode_spans(*possible, limit=limit, decoding=how, minor=own))
        return found


class Extractor(nn.Module):
    """An encoder with a span head."""

    def __init__(self, encoder: Any, ends: SpanEnds = "conditional") -> None:
        super().__init__()
        self.encoder = encoder
        self.spans = SpanHead(encoder.config.hidden_size, ends)

    @classmethod
    def sharing(cls, encoder: Any, spans: SpanHead) -> Extractor:
        """An extractor that shares the encoder and the head of another network."""
        network = cls(encoder, spans.ends)
        network.spans = spans
        return network

    def forward(self, windows: Sequence[TokenWindow]) -> Tensor:
        """States (windows, tokens, width)."""
        tokens, mask = pad([window.tokens for window in windows], device_of(self))
        found = self.encoder(input_ids=tokens, attention_mask=mask.long())
        states: Tensor = found.last_hidden_state
        return states

    def loss(self, batch: Sequence[AnswerWindow]) -> Tensor:
        """The loss of the span head."""
        windows = [one.window for one in batch]
        return self.spans.loss(self(windows), windows, [one.spans() for one in batch])

    @torch.no_grad()
    def extract(
        self,
        windows: Sequence[TokenWindow],
        *,
        limit: int = 100,
        how: Decoding = "joint",
        minor: NDArray[np.bool_] | None = None,
        batch: int = 64,
    ) -> list[Candidates]:
        """The candidates of each window as in `SpanHead.decode`, in batches of similar length."""
        self.eval()
        found: dict[int, Candidates] = {}
        order = np.argsort([len(window) for window in windows], kind="stable").tolist()
        for start in range(0, len(order), batch):
            places = order[start : start + batch]
            some = [windows[place] for place in places]
            with autocast(device_of(self)):
                decoded = self.spans.decode(self(some), some, limit=limit, how=how, minor=minor)
            found.update(zip(places, decoded, strict=True))
        return [found[place] for place in range(len(windows))]


def train_extractor(
    network: Extractor,
    windows: Sequence[AnswerWindow],
    recipe: PhraseRecipe,
    *,
    callbacks: TrainingCallbacks | None = None,
) -> tuple[Epoch, ...]:
    """Train in place on the windows with answers."""
    useful = [one for one in windows if one.questions]

    def batches(rng: np.random.Generator) -> Iterable[list[AnswerWindow]]:
        for places in batches_of_similar_length(
            [len(one.window) for one in useful], recipe.batch_size, rng
        ):
            yield [useful[place] for place in places]

    return train_phrase_network(
        network,
        batches,
        network.loss,
        recipe,
        steps=-(-len(useful) // recipe.batch_size),
        settings=f"extractor with {network.spans.ends} ends on {len(useful)} windows",
        callbacks=callbacks,
    )


def _edges(windows: Sequence[TokenWindow], states: Tensor) -> tuple[Tensor, Tensor]:
    """Whether a phrase may start and end at a token, both (windows, tokens)."""
    opens, _ = pad([window.may_start.astype(np.int32) for window in windows], states.device)
    closes, _ = pad([window.may_end.astype(np.int32) for window in windows], states.device)
    return opens.bool(), closes.bool()


def _possible(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.where(scores < MASKED / 2, -np.inf, scores).astype(np.float32)
