"""
The siamese encoder: a vector for each candidate phrase, a vector for a question, one dot product.

Three forms of a phrase's vector:

- `pair`, EfficientQA's: the encoder reads (paragraph, phrase) and the vector is the mean over all
  tokens. One pass of the encoder for each phrase.
- `span`: the encodings of the phrase's first and last token, out of one pass over the paragraph.
- `markers`: one pass too, but each phrase has two tokens of its own in it, copies of its first and
  last at their positions, which look at the paragraph and at each other and which nothing looks
  at. Every layer can thus gather for the phrase what it needs, at twice the cost of `span`.

A second, lexical part of the vector is sparse: weights for the words around the phrase, against the
words that the question has or expects there (`LexicalHead`). It is a dot product as well, over the
vocabulary. The extractor's log-probability is one more dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from .encoders import accepted, attention, first_position, second_type
from .extractor import SpanHead
from .lexical import LexicalHead

__all__ = ["FORMS", "Form", "PhraseCodes", "PhraseNetwork", "QuestionCodes"]

Form = Literal["pair", "span", "markers"]
FORMS: tuple[str, ...] = get_args(Form)


@dataclass(frozen=True, slots=True, eq=False)
class PhraseCodes:
    """Of windows' candidates."""

    dense: Tensor  # (windows, candidates, size)
    words: Tensor | None  # (windows, candidates, tokens of the window): weights of the words
    states: Tensor | None  # (windows, tokens, width): of the text alone; None for `pair`


@dataclass(frozen=True, slots=True, eq=False)
class QuestionCodes:
    """Of questions."""

    dense: Tensor  # (questions, size)
    trust: Tensor  # (questions,): what the extractor's log-probability counts
    seeks: Tensor | None  # (questions, tokens, width): what `LexicalHead.wanted` makes weights of
    own: Tensor | None  # (questions, tokens): weights of the question's own tokens


class PhraseNetwork(nn.Module):
    """One encoder for phrases and questions, with the layers that make vectors of its states."""

    def __init__(
        self, encoder: Any, form: Form = "markers", *, size: int = 384, lexical: bool = True
    ) -> None:
        super().__init__()
        width: int = encoder.config.hidden_size
        self.encoder, self.form = encoder, form
        joined = width if form == "pair" else 2 * width
        self.phrase = nn.Linear(joined, size)
        self.question = nn.Linear(joined, size) if form != "pair" else self.phrase
        self.trust = nn.Linear(width, 1)
        self.lexical = LexicalHead(width) if lexical and form != "pair" else None
        # The text is encoded without its phrases, so the extractor can read the same states.
        self.spans = SpanHead(width) if form != "pair" else None

    def encode_questions(self, tokens: Tensor, inside: Tensor) -> QuestionCodes:
        """Tokens (questions, tokens), and where there are any."""
        states = self._states(tokens, inside)
        mean = _mean(states, inside)
        joined = mean if self.form == "pair" else torch.cat([states[:, 0], mean], -1)
        dense = self.question(joined)
        trust = self.trust(mean)[:, 0].float()
        if self.lexical is None:
            return QuestionCodes(dense, trust, None, None)
        return QuestionCodes(dense, trust, *self.lexical.question(states, inside))

    def encode_phrases(self, tokens: Tensor, inside: Tensor, spans: Tensor) -> PhraseCodes:
        """Windows (windows, tokens) and candidates (windows, candidates, 2), padded with 0, 0."""
        if self.form == "pair":
            return PhraseCodes(self._pairs(tokens, inside, spans), None, None)
        states, joined = self._marked(tokens, inside, spans)
        words = None if self.lexical is None else self.lexical.phrase(joined, states, inside)
        return PhraseCodes(self.phrase(joined), words, states)

    def _states(self, tokens: Tensor, inside: Tensor, **more: Tensor) -> Tensor:
        batch = {"input_ids": tokens, "attention_mask": inside.long(), **more}
        states: Tensor = self.encoder(**accepted(self.encoder, batch)).last_hidden_state
        return states

    def _marked(self, tokens: Tensor, inside: Tensor, spans: Tensor) -> tuple[Tensor, Tensor]:
        """States of the window, and of each span's two ends joined."""
        if self.form == "span":
            states = self._states(tokens, inside)
            ends = _at(states, spans)  # (windows, candidates, 2, width)
            return states, ends.flatten(2)
        count, length = tokens.shape
        places = spans.flatten(1)  # (windows, 2 · candidates)
        base = torch.arange(length, device=tokens.device).expand(count, -1)
        types = torch.cat([torch.zeros_like(base), torch.ones_like(places)], 1)
        batch = {
            "input_ids": torch.cat([tokens, tokens.gather(1, places)], 1),
            "position_ids": torch.cat([base, places], 1) + first_position(self.encoder),
            "token_type_ids": types * second_type(self.encoder),
            "attention_mask": attention(_sight(inside, places.shape[1])),
        }
        states = self.encoder(**accepted(self.encoder, batch)).last_hidden_state
        markers = states[:, length:]
        return states[:, :length], markers.reshape(count, -1, 2 * markers.shape[-1])

    def _pairs(self, tokens: Tensor, inside: Tensor, spans: Tensor) -> Tensor:
        """(windows, candidates, size), the paper's way."""
        windows, candidates = spans.shape[:2]
        length = inside.sum(1)[:, None].expand(-1, candidates).flatten()  # tokens of each window
        rows = torch.arange(windows, device=tokens.device).repeat_interleave(candidates)
        first, last = spans.flatten(0, 1).unbind(-1)
        widths = last - first + 1
        reach = torch.arange(int((length + widths).max()) + 1, device=tokens.device)
        behind = reach - length[:, None]  # place in the phrase, below 0 inside the window
        source = torch.where(behind < 0, reach, first[:, None] + behind)
        source = torch.where(behind == widths[:, None], length[:, None] - 1, source)  # separator
        within = behind <= widths[:, None]
        ids = tokens[rows[:, None], source.clamp(0, tokens.shape[1] - 1)] * within
        types = (behind >= 0).long() * within * second_type(self.encoder)
        states = self._states(ids, within, token_type_ids=types)
        vectors: Tensor = self.phrase(_mean(states, within))
        return vectors.view(windows, candidates, -1)


def _mean(states: Tensor, inside: Tensor) -> Tensor:
    weights = inside[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def _at(states: Tensor, spans: Tensor) -> Tensor:
    """States (windows, tokens, width) at spans (windows, candidates, 2)."""
    rows = torch.arange(len(states), device=states.device)[:, None, None]
    return states[rows, spans]


def _sight(inside: Tensor, markers: int) -> Tensor:
    """Who looks at whom: all at the text, a marker at itself and its twin too."""
    count, length = inside.shape
    may = inside[:, None].expand(-1, length + markers, -1)  # (windows, all, tokens)
    twins = torch.arange(markers, device=inside.device) // 2
    beside = torch.zeros(length + markers, markers, dtype=torch.bool, device=inside.device)
    beside[length:] = twins[:, None] == twins
    return torch.cat([may, beside.expand(count, -1, -1)], 2)
