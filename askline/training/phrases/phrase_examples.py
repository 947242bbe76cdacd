"""
Token arrays side by side, padded, on the device.

Paragraphs and their questions as token windows with the spans that answer.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data.squad import Paragraph, SpanQuestion
from ...phrases.tokenization import MAX_PHRASE_TOKENS, TokenWindow, cut_windows, tokenize_question

__all__ = [
    "AnswerWindow",
    "Spans",
    "WindowQuestion",
    "answer_spans",
    "answer_windows",
    "batches_of_similar_length",
    "pad",
    "prefetch",
]

_Item = TypeVar("_Item")


def pad(
    rows: Sequence[NDArray[np.int32]], device: torch.device | str, *, padding: int = 0
) -> tuple[Tensor, Tensor]:
    """
    Token numbers (rows, tokens), and whether there is a token: (rows, tokens), bool.

    Lengths are rounded up. Batches then come in few sizes, and a GPU's memory is not asked for anew
    at almost every step of the first epoch.
    """
    longest = max(map(len, rows))
    step = 8 if longest <= 64 else 32
    longest = -(-longest // step) * step
    tokens = np.full((len(rows), longest), padding, np.int64)
    inside = np.zeros((len(rows), longest), bool)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = row
        inside[place, : len(row)] = True
    return torch.from_numpy(tokens).to(device), torch.from_numpy(inside).to(device)


def batches_of_similar_length(
    lengths: Sequence[int], size: int, rng: np.random.Generator, *, pool: int = 16
) -> Iterator[NDArray[np.int64]]:
    """
    Places in a random order, `size` at a time, of like length within a pool of `pool` batches.

    Every place comes once. The batches of a pool come in a random order too.
    """
    order = rng.permutation(len(lengths))
    sizes = np.asarray(lengths)
    for start in range(0, len(order), size * pool):
        some = order[start : start + size * pool]
        some = some[np.argsort(sizes[some], kind="stable")]
        batches = [some[at : at + size] for at in range(0, len(some), size)]
        yield from (batches[at] for at in rng.permutation(len(batches)))


def prefetch(items: Iterable[_Item], *, count: int = 3) -> Iterator[_Item]:
    """The same items, the next few made by a thread while one is worked on."""
    done = object()
    source = iter(items)
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(next, source, done) for _ in range(count))
        while (item := waiting.popleft().result()) is not done:
            waiting.append(pool.submit(next, source, done))
            yield item  # type: ignore[misc]


Spans = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class WindowQuestion:
    """A question, and the spans of its window that answer it: first and last token, (n, 2)."""

    id: str
    tokens: NDArray[np.int32]
    spans: Spans


@dataclass(frozen=True, slots=True, eq=False)
class AnswerWindow:
    """A window of a paragraph with the questions that are answered in it."""

    paragraph: int
    """The place of its paragraph in what the material was made of."""
    window: TokenWindow
    questions: tuple[WindowQuestion, ...]

    def spans(self) -> tuple[Spans, NDArray[np.float32]]:
        """Every span that answers something, once, and how many answers it is, as shares of 1."""
        return answer_spans(self.questions)


def answer_spans(questions: Sequence[WindowQuestion]) -> tuple[Spans, NDArray[np.float32]]:
    """Every span that answers one of them, once, and how many answers it is, as shares of 1."""
    counts = Counter(tuple(span) for asked in questions for span in asked.spans.tolist())
    found = sorted(counts)
    shares = np.array([counts[span] for span in found], np.float32)
    return np.array(found, np.int32).reshape(-1, 2), shares / max(1.0, shares.sum())


def answer_windows(
    paragraphs: Iterable[Paragraph], tokenizer: Any, *, size: int = 384, overlap: int = 128
) -> list[AnswerWindow]:
    """
    The windows of all paragraphs, those without questions too.

    An answer that no window can give is left out: one that begins inside a word or is longer than
    the longest phrase. A question without any other answer goes with it.
    """
    found = []
    for place, paragraph in enumerate(paragraphs):
        tokens = [tokenize_question(question.text, tokenizer) for question in paragraph.questions]
        for window in cut_windows(paragraph.text, tokenizer, size=size, overlap=overlap):
            asked = (
                WindowQuestion(question.id, ids, _spans(window, question))
                for question, ids in zip(paragraph.questions, tokens, strict=True)
            )
            found.append(AnswerWindow(place, window, tuple(one for one in asked if len(one.spans))))
    return found


def _spans(window: TokenWindow, question: SpanQuestion) -> Spans:
    """One row for each answer that the window can give; equal answers repeat."""
    spans = [_span(window, answer.start, answer.end) for answer in question.answers]
    return np.array([span for span in spans if span], np.int32).reshape(-1, 2)


def _span(window: TokenWindow, start: int, end: int) -> tuple[int, int] | None:
    real: Sequence[int] | NDArray[np.int64] = np.flatnonzero(window.ends > window.starts)
    if not len(real):
        return None
    first = int(np.searchsorted(window.ends[real], start, side="right"))
    last = int(np.searchsorted(window.starts[real], end, side="left")) - 1
    if not first <= last < min(len(real), first + MAX_PHRASE_TOKENS):
        return None
    one, other = int(real[first]), int(real[last])
    fits = window.may_start[one] and window.may_end[other] and window.ends[other] >= end
    return (one, other) if fits else None
