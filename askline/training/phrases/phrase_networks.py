"""
The networks of a phrase model: an extractor of phrases, and vectors of phrases and of questions.

The extractor scores which phrases of a text could be an answer, before there is a question. With
`conditional` ends (EfficientQA), the end is scored given the encoding of its start. A single layer
over both would add the same number to every end of a start, so there is a hidden layer. With
`classic` ends, they are scored alone, as in readers with a question; it is kept for comparison.

The vectors are compared by a dot product. There are two forms of a phrase vector:

- `span`: the encodings of the first and last token of the phrase, from one pass over the paragraph.
- `markers`: one pass as well, but each phrase has two marker tokens of its own, copies of its first
  and last token at their positions. Markers attend to the paragraph and to each other, and nothing
  attends to them. Every layer can collect for the phrase what it needs, at twice the cost of
  `span`.

A second, lexical part of the vector is sparse. A dense vector of a few hundred numbers cannot hold
which words are near the phrase; names and years are lost first. So a phrase also weighs the words
of its paragraph (Lee et al., 2020, "Contextualized sparse representations"), and a question weighs
its own words and, through the word embeddings of the encoder, words that it expects (Formal et al.,
2021, SPLADE). The lexical score is a dot product over the vocabulary. The log-probability of the
extractor is one more dimension.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ...errors import InputError, UnknownNameError
from ...phrases.phrase_encoder import Decoding, decode_spans
from ...phrases.phrase_model import PhraseForm
from ...phrases.tokenization import MAX_PHRASE_TOKENS, TokenWindow
from ..checkpoint import Epoch
from ..transformer.pair_network import autocast, import_transformers
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
    "LexicalHead",
    "PhraseCodes",
    "PhraseNetwork",
    "QuestionCodes",
    "SpanEnds",
    "SpanHead",
    "accepted_inputs",
    "attend_within_blocks",
    "attention_mask",
    "check_window",
    "first_position",
    "second_token_type",
    "train_extractor",
]

SpanEnds = Literal["conditional", "classic"]
SPAN_ENDS: tuple[str, ...] = get_args(SpanEnds)
Candidates = tuple[NDArray[np.int32], NDArray[np.float32]]
MASKED = -1e4
"""Used instead of -inf, so that a softmax over masked values only is not nan."""
_HIDDEN = 128
_KEYS = 128


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


class LexicalHead(nn.Module):
    """Word weights, which are never negative."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.seek = nn.Linear(2 * width, _KEYS)
        self.key = nn.Linear(width, _KEYS)
        self.shift = nn.Parameter(torch.zeros(1))
        self.own = nn.Linear(width, 1)
        self.expand = nn.Linear(width, width)
        self.threshold = nn.Parameter(-torch.ones(1))  # few words are expected at first

    def phrase(self, joined: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Weights (windows, candidates, tokens) of the window's tokens for each phrase."""
        match = self.seek(joined) @ self.key(states).transpose(1, 2) / _KEYS**0.5
        weights = torch.log1p(functional.relu(match.float() + self.shift))
        inner = mask.clone()
        inner[:, 0] = False  # special tokens are not words
        inner[:, :-1] &= mask[:, 1:]
        inner[:, -1] = False
        return weights * inner[:, None]

    def question(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Expected-word queries (questions, tokens, width), and weights of the own tokens."""
        own = functional.softplus(self.own(states)[..., 0].float())
        inner = mask.clone()
        inner[:, 0] = False
        inner[:, :-1] &= mask[:, 1:]
        inner[:, -1] = False
        seeks = self.expand(states) * inner[..., None]
        return seeks, own * inner

    def wanted(
        self, seeks: Tensor, own: Tensor, tokens: Tensor, words: Tensor, embeddings: Tensor
    ) -> Tensor:
        """
        Weights (questions, words) of some words of the vocabulary.

        `tokens` (questions, tokens) are the questions' own; `embeddings` are those of `words`.
        """
        near = (seeks @ embeddings.to(seeks.dtype).T).amax(1).float()  # (questions, words)
        expected = torch.log1p(functional.relu(near + self.threshold))
        same = (tokens[..., None] == words).to(own.dtype)  # (questions, tokens, words)
        return expected + torch.einsum("qt,qtw->qw", own, same)


def accepted_inputs(encoder: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs that an encoder accepts; MPNet, for example, has no token types."""
    known = inspect.signature(encoder.forward).parameters
    return {name: value for name, value in batch.items() if name in known}


def second_token_type(encoder: Any) -> int:
    """The token type id of the second text: 1, or 0 if there is only one type (RoBERTa)."""
    return int(getattr(encoder.config, "type_vocab_size", 1) > 1)


def first_position(encoder: Any) -> int:
    """The position id of a text's first token: RoBERTa starts after its padding id."""
    places = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    padding = getattr(places, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def check_window(encoder: Any, window: int) -> None:
    """Raise InputError if a window has more tokens than the encoder has positions."""
    most = getattr(encoder.config, "max_position_embeddings", window) - first_position(encoder)
    if window > most:
        raise InputError(f"The encoder reads {most} tokens at a time, got a window of {window}.")


def attend_within_blocks(encoder: Any, block: int) -> None:
    """Make an encoder built like BERT attend as `EncoderConfig.block` says, by hooks."""

    def restrict(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        states, mask, *rest = (*args, kwargs.pop("attention_mask", None))[: max(2, len(args))]
        tokens = states.shape[1]
        size = -(-tokens // -(-tokens // block))
        place = torch.arange(tokens, device=states.device)
        same = (place[:, None] // size == place // size)[None, None]
        if mask is None:
            mask = same
        elif mask.dtype == torch.bool:  # padding attends to itself, so that no softmax is empty
            mask = mask & same | (place[:, None] == place)
        else:
            mask = mask.masked_fill(~same, torch.finfo(mask.dtype).min)
        return (states, mask, *rest), kwargs

    for layer in encoder.encoder.layer[::2]:
        layer.register_forward_pre_hook(restrict, with_kwargs=True)


def attention_mask(may: Tensor) -> Tensor:
    """An attention mask (batch, tokens, tokens) in the form of the installed transformers."""
    if int(import_transformers().__version__.partition(".")[0]) >= 5:
        return may[:, None]
    return may.to(torch.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PhraseCodes:
    """Encodings of the candidates of windows."""

    dense: Tensor  # (windows, candidates, size)
    words: Tensor | None  # (windows, candidates, tokens of the window): weights of the words
    states: Tensor  # (windows, tokens, width): of the text alone


@dataclass(frozen=True, slots=True, eq=False)
class QuestionCodes:
    """Encodings of questions."""

    dense: Tensor  # (questions, size)
    trust: Tensor  # (questions,): what the extractor's log-probability counts
    seeks: Tensor | None  # (questions, tokens, width): what `LexicalHead.wanted` makes weights of
    own: Tensor | None  # (questions, tokens): weights of the question's own tokens


class PhraseNetwork(nn.Module):
    """One encoder for phrases and questions, with layers that turn its states into vectors."""

    def __init__(
        self, encoder: Any, form: PhraseForm = "markers", *, size: int = 384, lexical: bool = True
    ) -> None:
        super().__init__()
        width: int = encoder.config.hidden_size
        self.encoder, self.form = encoder, form
        self.phrase = nn.Linear(2 * width, size)
        self.question = nn.Linear(2 * width, size)
        self.trust = nn.Linear(width, 1)
        self.lexical = LexicalHead(width) if lexical else None
        # The text is encoded without its phrases, so the extractor can read the same states.
        self.spans = SpanHead(width)

    def encode_questions(self, tokens: Tensor, mask: Tensor) -> QuestionCodes:
        """Token ids and mask, both (questions, tokens)."""
        states = self._states(tokens, mask)
        mean = _mean(states, mask)
        dense = self.question(torch.cat([states[:, 0], mean], -1))
        trust = self.trust(mean)[:, 0].float()
        if self.lexical is None:
            return QuestionCodes(dense, trust, None, None)
        return QuestionCodes(dense, trust, *self.lexical.question(states, mask))

    def encode_phrases(self, tokens: Tensor, mask: Tensor, spans: Tensor) -> PhraseCodes:
        """Windows (windows, tokens) and candidates (windows, candidates, 2), padded with 0, 0."""
        states, joined = self._marked(tokens, mask, spans)
        words = None if self.lexical is None else self.lexical.phrase(joined, states, mask)
        return PhraseCodes(self.phrase(joined), words, states)

    def _states(self, tokens: Tensor, mask: Tensor) -> Tensor:
        batch = {"input_ids": tokens, "attention_mask": mask.long()}
        states: Tensor = self.encoder(**accepted_inputs(self.encoder, batch)).last_hidden_state
        return states

    def _marked(self, tokens: Tensor, mask: Tensor, spans: Tensor) -> tuple[Tensor, Tensor]:
        """States of the window, and the joined states of both ends of each span."""
        if self.form == "span":
            states = self._states(tokens, mask)
            ends = _at(states, spans)  # (windows, candidates, 2, width)
            return states, ends.flatten(2)
        count, length = tokens.shape
        places = spans.flatten(1)  # (windows, 2 · candidates)
        base = torch.arange(length, device=tokens.device).expand(count, -1)
        types = torch.cat([torch.zeros_like(base), torch.ones_like(places)], 1)
        batch = {
            "input_ids": torch.cat([tokens, tokens.gather(1, places)], 1),
            "position_ids": torch.cat([base, places], 1) + first_position(self.encoder),
            "token_type_ids": types * second_token_type(self.encoder),
            "attention_mask": attention_mask(_marker_mask(mask, places.shape[1])),
        }
        states = self.encoder(**accepted_inputs(self.encoder, batch)).last_hidden_state
        markers = states[:, length:]
        return states[:, :length], markers.reshape(count, -1, 2 * markers.shape[-1])


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def _at(states: Tensor, spans: Tensor) -> Tensor:
    """States (windows, tokens, width) at spans (windows, candidates, 2)."""
    rows = torch.arange(len(states), device=states.device)[:, None, None]
    return states[rows, spans]


def _marker_mask(mask: Tensor, markers: int) -> Tensor:
    """All tokens attend to the text; a marker also to itself and the other marker of its phrase."""
    count, length = mask.shape
    may = mask[:, None].expand(-1, length + markers, -1)  # (windows, all, tokens)
    twins = torch.arange(markers, device=mask.device) // 2
    beside = torch.zeros(length + markers, markers, dtype=torch.bool, device=mask.device)
    beside[length:] = twins[:, None] == twins
    return torch.cat([may, beside.expand(count, -1, -1)], 2)
