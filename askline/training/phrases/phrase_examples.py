"""Training examples of the phrase models: token windows of paragraphs with answer spans."""

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
    Token ids and the boolean attention mask, both (rows, tokens).

    Lengths are rounded up, so that batches have few different sizes and GPU memory is reused.
    """
    longest = max(map(len, rows))
    step = 8 if longest <= 64 else 32
    longest = -(-longest // step) * step
    tokens = np.full((len(rows), longest), padding, np.int64)
    mask = np.zeros((len(rows), longest), bool)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = row
        mask[place, : len(row)] = True
    return torch.from_numpy(tokens).to(device), torch.from_numpy(mask).to(device)


def batches_of_similar_length(
    lengths: Sequence[int], size: int, rng: np.random.Generator, *, pool: int = 16
) -> Iterator[NDArray[np.int64]]:
    """
    Batches of `size` rows in random order, of similar length within each pool of `pool` batches.

    Every row is in one batch. The batches of a pool are in random order as well.
    """
    order = rng.permutation(len(lengths))
    sizes = np.asarray(lengths)
    for start in range(0, len(order), size * pool):
        some = order[start : start + size * pool]
        some = some[np.argsort(sizes[some], kind="stable")]
        batches = [some[at : at + size] for at in range(0, len(some), size)]
        yield from (batches[at] for at in rng.permutation(len(batches)))


def prefetch(items: Iterable[_Item], *, count: int = 3) -> Iterator[_Item]:
    """The same items; a thread prepares the next ones."""
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
    """A question and its answer spans in a window: first and last token, (n, 2)."""

    id: str
    tokens: NDArray[np.int32]
    spans: Spans


@dataclass(frozen=True, slots=True, eq=False)
class AnswerWindow:
    """A window of a paragraph with the questions that are answered in it."""

    paragraph: int
    """The index of its paragraph."""
    window: TokenWindow
    questions: tuple[WindowQuestion, ...]

    def spans(self) -> tuple[Spans, NDArray[np.float32]]:
        """The distinct answer spans of all questions, and their shares, which sum to 1."""
        return answer_spans(self.questions)


def answer_spans(questions: Sequence[WindowQuestion]) -> tuple[Spans, NDArray[np.float32]]:
    """The distinct answer spans of these questions, and their shares, which sum to 1."""
    counts = Counter(tuple(span) for asked in questions for span in asked.spans.tolist())
    found = sorted(counts)
    shares = np.array([counts[span] for span in found], np.float32)
    return np.array(found, np.int32).reshape(-1, 2), shares / max(1.0, shares.sum())


def answer_windows(
    paragraphs: Iterable[Paragraph], tokenizer: Any, *, size: int = 384, overlap: int = 128
) -> list[AnswerWindow]:
    """
    The windows of all paragraphs, with or without questions.

    Answers that start inside a word or are longer than the longest phrase are left out, and so are
    questions without any other answer.
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
    """One row per answer inside the window; equal answers repeat."""
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
