"""
What the trainings of the extractor, the teachers and the phrase encoder share.

The training examples, which are token windows of paragraphs with answer spans; the recipe; and the
training task.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...data.squad import Paragraph, SpanQuestion
from ...phrases.tokenization import MAX_PHRASE_TOKENS, TokenWindow, cut_windows, tokenize_question
from ..checkpoint import Epoch
from ..loop import SeededOnceTask, TrainingRecipe, TrainingStep, check_not_negative, run_training
from ..optimizer import AdamW, Optimizer, ParameterGroup, slanted_triangular
from ..transformer.pair_network import autocast

__all__ = [
    "AnswerWindow",
    "PhraseRecipe",
    "Spans",
    "TrainingCallbacks",
    "WindowQuestion",
    "answer_spans",
    "answer_windows",
    "batches_of_similar_length",
    "device_of",
    "pad",
    "prefetch",
    "train_phrase_network",
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
    soft: tuple[Spans, NDArray[np.float32]] | None = None
    """Spans and their shares, which sum to 1, that the extractor learns instead of `spans`."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerWindow:
    """A window of a paragraph with the questions that are answered in it."""

    paragraph: int
    """The index of its paragraph."""
    window: TokenWindow
    questions: tuple[WindowQuestion, ...]

    def spans(self) -> tuple[Spans, NDArray[np.float32]]:
        """The distinct spans that the extractor learns, and their shares, which sum to 1."""
        return answer_spans(self.questions)


def answer_spans(questions: Sequence[WindowQuestion]) -> tuple[Spans, NDArray[np.float32]]:
    """The distinct spans that the extractor learns, and their shares, which sum to 1."""
    counts = defaultdict[tuple[int, ...], float](float)
    for asked in questions:
        spans, weights = asked.spans, np.ones(len(asked.spans), np.float32)
        if asked.soft is not None:
            spans, shares = asked.soft
            weights = shares * np.float32(len(asked.spans))
        for span, weight in zip(spans.tolist(), weights.tolist(), strict=True):
            counts[tuple(span)] += weight
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


_Batch = TypeVar("_Batch")

_NEW_LAYER_FACTOR = 5
_SCHEDULE_RESOLUTION = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseRecipe(TrainingRecipe):
    """AdamW with a slanted triangular learning rate that falls to 0."""

    epochs: int = 6
    learning_rate: float = 1e-4
    """The peak for the encoder; new layers have five times as much."""
    batch_size: int = 32
    """Windows per step (for teachers: questions), with everything that belongs to them."""
    weight_decay: float = 0.01
    max_gradient_norm: float = 1.0

    def __post_init__(self) -> None:
        TrainingRecipe.__post_init__(self)
        check_not_negative(self, "weight_decay")


@dataclass(frozen=True, slots=True)
class TrainingCallbacks:
    """Functions that the loop calls, and the file to resume from."""

    on_epoch: Callable[[Epoch], None] = lambda _: None
    on_step: Callable[[TrainingStep], None] = lambda _: None
    checkpoint: Path | None = None


class _PhraseTask(SeededOnceTask[_Batch]):
    """Batches of similar length; the next ones are prepared by a thread during a step."""

    recipe: PhraseRecipe

    def __init__(
        self,
        network: nn.Module,
        batches: Callable[[np.random.Generator], Iterable[_Batch]],
        loss: Callable[[_Batch], Tensor],
        recipe: PhraseRecipe,
        steps: int,
    ) -> None:
        self.network, self.recipe = network, recipe
        self._batches, self._loss, self._steps = batches, loss, steps

    @property
    def steps_per_epoch(self) -> int:
        return self._steps

    def new_optimizer(self) -> Optimizer:
        """The encoder, and new layers with a higher rate; vectors have no weight decay."""
        recipe, groups = self.recipe, []
        for is_new in (False, True):
            for is_vector in (False, True):
                chosen = [
                    value
                    for name, value in self.network.named_parameters()
                    if name.startswith("encoder.") != is_new and (value.dim() < 2) == is_vector
                ]
                rate = recipe.learning_rate * (_NEW_LAYER_FACTOR if is_new else 1)
                decay = 0.0 if is_vector else recipe.weight_decay
                groups.append(ParameterGroup(chosen, rate, decay))
        return AdamW(
            self.network,
            groups,
            max_gradient_norm=recipe.max_gradient_norm,
            betas=(0.9, 0.98),
        )

    def schedule(self, progress: float) -> float:
        rounded = int(progress * _SCHEDULE_RESOLUTION) / _SCHEDULE_RESOLUTION
        return slanted_triangular(rounded, lowest=0.0)

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[_Batch]:  # noqa: ARG002
        yield from prefetch(self._batches(random))

    def loss(self, part: _Batch) -> Tensor:
        with autocast(device_of(self.network)):
            return self._loss(part)


def train_phrase_network(
    network: nn.Module,
    batches: Callable[[np.random.Generator], Iterable[_Batch]],
    loss: Callable[[_Batch], Tensor],
    recipe: PhraseRecipe,
    *,
    steps: int,
    settings: str,
    callbacks: TrainingCallbacks | None = None,
) -> tuple[Epoch, ...]:
    """
    Train in place. `batches` gives those of one epoch, of which there are `steps`.

    `settings` describes network and data, for the checkpoint.
    """
    calls = callbacks or TrainingCallbacks()
    return run_training(
        [_PhraseTask(network, batches, loss, recipe, steps)],
        settings=f"{settings}; {recipe}",
        checkpoint=calls.checkpoint,
        on_epoch=calls.on_epoch,
        on_step=calls.on_step,
    )


def device_of(network: nn.Module) -> torch.device:
    """The device of a network's weights."""
    return next(network.parameters()).device
