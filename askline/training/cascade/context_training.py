"""
Training of the context pass: an adapter, a sentence classifier per depth, and the reader.

A step has some questions. Each has its own passage, whole or cropped, two passages that share words
with it and a random one. The encoder of the cascade does not change, so lists of independent
candidates rank as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..checkpoint import Epoch
from ..loop import TrainingRecipe, TrainingStep, TrainingTask, check_positive, run_training
from ..losses import segment_log_softmax
from ..optimizer import AdamW, Optimizer, ParameterGroup, slanted_triangular
from ..packing import Rows
from .adapter_networks import ContextNetwork, ContextOutput, WindowBatch, WindowFormat
from .context_examples import ContextExamples, Window
from .span_reading import LONGEST_ANSWER, span_distillation_loss, span_loss

__all__ = [
    "ContextRecipe",
    "draw_passages",
    "fit_window",
    "measure_context",
    "score_passages",
    "train_context",
]

Teacher = Callable[[WindowBatch], ContextOutput]
_WHOLE, _RUN = 0.5, 0.35  # shares of windows that are whole passages, and runs of sentences
_SCORING_TOKENS = 65_536
_MEASURED = 3_000  # examples, for the figures of a dev set
_UNMARKED, _UNANSWERED = 0.05, 0.4
"""Weights of the reader's loss in windows without an answer: other passages, the own passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecipe(TrainingRecipe):
    """AdamW with a slanted triangular learning rate that falls to 0."""

    epochs: int = 3
    learning_rate: float = 1e-3
    """The peak for the low-rank matrices."""
    small_rate: float = 1e-4
    """The peak for biases, norms and the reader's output layer."""
    head_rate: float = 1e-3
    """The peak for the sentence classifiers."""
    batch_size: int = 64
    """Questions per step."""
    near: int = 2
    """Passages per question that share words with it."""
    nearest: int = 24
    """Drawn from this many that share most, at most 24. Fewer are harder to tell from the own."""
    random: int = 1
    """Random passages per question."""
    titles: float = 0.8
    """The share of windows that keep their title."""
    depth_weights: tuple[float, ...] = (0.3, 0.3, 0.4, 0.5, 0.7, 1.0)
    """Of the losses of the classifiers, shallowest first."""
    point: float = 0.3
    """Weight of the binary cross-entropy over sentences."""
    no_answer: float = 0.3
    """Weight of the list loss with "no answer" among the sentences, as the logit 0."""
    teach: float = 0.5
    """The share of the last classifier's probabilities in the loss of the others."""
    teacher_share: float = 0.7
    """The share of the teacher's probabilities in the losses of sentences, with a teacher."""
    teacher_reading: float = 0.35
    """The same in the reader's loss."""
    reading: float = 0.5
    """Weight of the reader's loss."""
    rise: float = 0.06
    """The share of the steps in which the learning rate rises."""
    max_gradient_norm: float = 1.0

    def __post_init__(self) -> None:
        TrainingRecipe.__post_init__(self)
        check_positive(self, "small_rate", "head_rate", "rise", "nearest")


class _Drawn(NamedTuple):
    """The windows of a step, question by question."""

    questions: Rows
    windows: list[list[Window]]
    spans: list[tuple[int, int, int]]
    """Per question one of its answer spans, as sentence, first and last token; -1 without one."""
    share: float = 1.0


class _Labels(NamedTuple):
    """What the loss needs besides the network's output."""

    labels: Tensor  # (sentences,)
    questions: Tensor  # (sentences,) the question of the step
    asked: int  # the number of questions
    spans: Tensor  # (windows, 2) packed positions relative to the window; -1 for no answer
    span_weights: Tensor  # (windows,)


class _ContextTask(TrainingTask[Rows, _Drawn, _Drawn]):
    """Questions with their passages, drawn anew in each epoch."""

    network: ContextNetwork
    recipe: ContextRecipe

    def __init__(
        self,
        network: ContextNetwork,
        examples: ContextExamples,
        form: WindowFormat,
        recipe: ContextRecipe,
        teacher: Teacher | None = None,
    ) -> None:
        self.network, self.recipe = network, recipe
        self._examples, self._form, self._teacher = examples, form, teacher
        self._answers, self._spans = examples.answer_lists(), examples.span_lists()
        self._device = next(network.parameters()).device

    @property
    def steps_per_epoch(self) -> int:
        return max(1, len(self._examples) // self.recipe.batch_size)

    def new_optimizer(self) -> Optimizer:
        recipe = self.recipe
        groups = [
            ParameterGroup(self.network.low_rank_parameters(), recipe.learning_rate),
            ParameterGroup(self.network.other_parameters(), recipe.small_rate),
            ParameterGroup(self.network.classifier_parameters(), recipe.head_rate, 0.01),
        ]
        limit = recipe.max_gradient_norm
        return AdamW(self.network, groups, max_gradient_norm=limit, epsilon=1e-6)

    def schedule(self, progress: float) -> float:
        return slanted_triangular(progress, rise=self.recipe.rise, lowest=0.0)

    def batches(self, epoch: int, random: np.random.Generator) -> Iterator[Rows]:  # noqa: ARG002
        order, size = random.permutation(len(self._examples)), self.recipe.batch_size
        torch.manual_seed(int(random.integers(2**63)))
        for step in range(self.steps_per_epoch):
            yield order[step * size : (step + 1) * size]

    def prepare(
        self,
        batch: Rows,
        random: np.random.Generator,
        max_tokens: float,  # noqa: ARG002
    ) -> _Drawn:
        rows = batch.tolist()
        spans = [
            known[int(random.integers(len(known)))] if (known := self._spans[at]) else (-1, -1, -1)
            for at in rows
        ]
        return _Drawn(batch, [self._draw(at, random) for at in rows], spans)

    def _draw(self, example: int, random: np.random.Generator) -> list[Window]:
        examples, recipe = self._examples, self.recipe
        own = int(examples.question_passages[example])
        passages = draw_passages(examples, example, recipe, random)
        drawn = []
        for passage in passages:
            must = self._answers[example] if passage == own else ()
            first, last = _crop(examples.sentence_count(passage), must, random)
            has_title = bool(random.random() < recipe.titles)
            window = Window(example, passage, first, last, has_title)
            drawn.append(fit_window(examples, window, self._form, must, random))
        return drawn

    def count_tokens(self, batch: _Drawn) -> int:
        return sum(
            _tokens(self._examples, window, self._form) for own in batch.windows for window in own
        )

    def split(self, batch: _Drawn, max_tokens: float) -> list[_Drawn]:
        size = len(batch.questions)
        count = min(size, max(1, math.ceil(self.count_tokens(batch) / max_tokens)))
        if count == 1:
            return [batch]
        ends = np.linspace(0, size, count + 1).astype(int)
        return [
            _Drawn(
                batch.questions[low:high],
                batch.windows[low:high],
                batch.spans[low:high],
                (high - low) / size,
            )
            for low, high in pairwise(ends.tolist())
        ]

    def loss(self, part: _Drawn) -> Tensor:
        windows = [window for own in part.windows for window in own]
        batch = WindowBatch.of(self._examples, windows, self._form, self._device)
        found = self.network.score(batch)
        labels = self._labels(part, windows, batch)
        taught = None
        if self._teacher is not None:
            with torch.no_grad():
                taught = self._teacher(batch)
        return _context_loss(found, batch, labels, self.recipe, taught) * part.share

    def _labels(self, part: _Drawn, windows: Sequence[Window], batch: WindowBatch) -> _Labels:
        examples = self._examples
        labels, questions = [], []
        spans = np.full((len(windows), 2), -1, np.int64)
        weights = np.zeros(len(windows), np.float32)
        firsts = batch.packed.starts.cpu().numpy()
        at = sentence = 0
        for number, own in enumerate(part.windows):
            for window in own:
                is_own = window.passage == examples.question_passages[window.question]
                gold = self._answers[window.question] if is_own else ()
                inside = range(window.first, window.last)
                labels += [float(each in gold) for each in inside]
                questions += [number] * len(inside)
                span = part.spans[number]
                if is_own and gold and span[0] in inside and span[1] >= 0:
                    begin = batch.starts[sentence + span[0] - window.first] - firsts[at]
                    spans[at] = begin + span[1], begin + span[2]
                    weights[at] = 1.0
                    if spans[at, 1] >= firsts[at + 1] - firsts[at] - 1:  # cut off
                        spans[at], weights[at] = -1, 0.0
                elif not gold:
                    weights[at] = _UNANSWERED if is_own else _UNMARKED
                at += 1
                sentence += len(inside)
        device = self._device
        return _Labels(
            torch.tensor(labels, device=device),
            torch.tensor(questions, device=device),
            len(part.windows),
            torch.from_numpy(spans).to(device),
            torch.from_numpy(weights).to(device),
        )


def draw_passages(
    examples: ContextExamples, example: int, recipe: ContextRecipe, random: np.random.Generator
) -> list[int]:
    """The own passage of an example, near ones, and random ones."""
    own = int(examples.question_passages[example])
    near = examples.near[example]
    near = near[near >= 0][: recipe.nearest]
    count = min(recipe.near, len(near))
    passages = [own, *random.choice(near, count, replace=False).tolist()]
    for _ in range(recipe.random):
        other = int(random.integers(examples.passages))
        if other != own:
            passages.append(other)
    return passages


def _crop(count: int, must: Sequence[int], random: np.random.Generator) -> tuple[int, int]:
    """The whole passage, a run of its sentences or a single one; with an answer if `must` is."""
    draw = float(random.random())
    if draw < _WHOLE or count < 2:
        return 0, count
    kept = int(random.choice(must)) if must else int(random.integers(count))
    if draw >= _WHOLE + _RUN:
        return kept, kept + 1
    first = int(random.integers(kept + 1))
    return first, int(random.integers(kept + 1, count + 1))


def _tokens(examples: ContextExamples, window: Window, form: WindowFormat) -> int:
    """The length of a window."""
    base = int(examples.passage_texts[window.passage])
    title = int(examples.passage_titles[window.passage])
    length = 3 + min(
        len(examples.text(int(examples.question_texts[window.question]))), form.max_question
    )
    if window.has_title and title >= 0:
        length += min(len(examples.text(title)), form.max_title)
    own = examples.offsets[base + window.last] - examples.offsets[base + window.first]
    return length + window.last - window.first + int(own)


def fit_window(
    examples: ContextExamples,
    window: Window,
    form: WindowFormat,
    must: Sequence[int] = (),
    random: np.random.Generator | None = None,
) -> Window:
    """The window without sentences at either end, as far as it is too long; answers stay."""
    while _tokens(examples, window, form) > form.max_length and window.last - window.first > 1:
        front_free = not must or window.first < min(must)
        back_free = not must or window.last - 1 > max(must)
        drop_front = front_free and (not back_free or bool(random and random.random() < 0.5))
        if drop_front:
            window = window._replace(first=window.first + 1)
        else:
            window = window._replace(last=window.last - 1)
    return window


def _context_loss(
    found: ContextOutput,
    batch: WindowBatch,
    known: _Labels,
    recipe: ContextRecipe,
    taught: ContextOutput | None,
) -> Tensor:
    scores, device = found.scores.float(), found.scores.device  # (depths, sentences)
    weights = torch.tensor(recipe.depth_weights[-len(scores) :], device=device)
    totals = torch.zeros(known.asked, device=device).index_add(0, known.questions, known.labels)
    target = known.labels / totals[known.questions].clamp(min=1)
    log_shares = segment_log_softmax(scores, known.questions, known.asked)
    answered = (totals > 0).sum().clamp(min=1)
    by_list = -(log_shares * target).sum(1) / answered
    # "No answer" takes part in the list as a sentence with the logit 0.
    with_none = torch.cat([scores, scores.new_zeros(len(scores), known.asked)], 1)
    owners = torch.cat([known.questions, torch.arange(known.asked, device=device)])
    none_target = torch.cat([target, (totals == 0).float()])
    log_none = segment_log_softmax(with_none, owners, known.asked)
    by_none = -(log_none * none_target).sum(1) / known.asked
    points = F.binary_cross_entropy_with_logits(
        scores, known.labels.expand_as(scores), reduction="none"
    ).mean(1)
    losses = by_list + recipe.no_answer * by_none + recipe.point * points
    if taught is not None:
        wanted = taught.scores[-1:].float()
        wanted_none = torch.cat([wanted, wanted.new_zeros(1, known.asked)], 1)
        shares = segment_log_softmax(wanted_none, owners, known.asked).exp()
        by_teacher = -(log_none * shares).sum(1) / known.asked
        by_teacher = by_teacher + recipe.point * F.binary_cross_entropy_with_logits(
            scores, wanted.sigmoid().expand_as(scores), reduction="none"
        ).mean(1)
        share = recipe.teacher_share
        losses = (1 - share) * losses + share * by_teacher
    last = log_none[-1].detach().exp()
    by_last = -(log_none[:-1] * last).sum(1) / known.asked
    early = (1 - recipe.teach) * losses[:-1] + recipe.teach * by_last
    loss = (weights * torch.cat([early, losses[-1:]])).sum()
    if found.ends is not None and recipe.reading:
        reading = span_loss(found.ends, batch.packed, known.spans, known.span_weights)
        if taught is not None and taught.ends is not None:
            share = recipe.teacher_reading
            reading = (1 - share) * reading + share * span_distillation_loss(
                found.ends,
                batch.packed,
                [taught.ends.float()],
                known.span_weights.clamp(min=_UNMARKED),
            )
        loss = loss + recipe.reading * reading
    return loss


def train_context(
    network: ContextNetwork,
    examples: ContextExamples,
    form: WindowFormat,
    recipe: ContextRecipe,
    *,
    teacher: Teacher | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[TrainingStep], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> ContextNetwork:
    """Train in place. What `teacher` returns for the same windows is learned beside the labels."""
    run_training(
        [_ContextTask(network, examples, form, recipe, teacher)],
        settings=f"{network.adapter}; {network.depths}; {recipe}; {len(examples)} examples",
        checkpoint=checkpoint,
        on_epoch=on_epoch,
        on_step=on_step,
        on_note=on_note,
    )
    return network


class PassageScores(NamedTuple):
    """Scores of whole passages, window by window."""

    windows: list[Window]
    logits: list[NDArray[np.float32]]
    """Per window: (depths, sentences)."""
    spans: NDArray[np.int64]
    """(windows, 3): sentence of the window, first and last token in it, of the best span."""
    no_answer: NDArray[np.float32]
    """(windows,): the reader's log odds of the best span against no answer."""


@torch.inference_mode()
def score_passages(
    network: ContextNetwork,
    examples: ContextExamples,
    form: WindowFormat,
    pairs: Sequence[tuple[int, int]],
) -> PassageScores:
    """Score whole passages for (example, passage) pairs; long ones are cut at the end."""
    network.eval()
    device = next(network.parameters()).device
    windows = [
        fit_window(examples, Window(at, passage, 0, examples.sentence_count(passage), True), form)
        for at, passage in pairs
    ]
    sizes = np.array([_tokens(examples, window, form) for window in windows])
    logits: list[NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * len(windows)
    spans = np.full((len(windows), 3), -1, np.int64)
    odds = np.zeros(len(windows), np.float32)
    order = np.argsort(-sizes, kind="stable")
    begin = 0
    while begin < len(order):
        end = begin + max(1, _SCORING_TOKENS // int(sizes[order[begin]]))
        part = order[begin:end]
        begin = end
        batch = WindowBatch.of(examples, [windows[at] for at in part.tolist()], form, device)
        found = network.score(batch)
        values = found.scores.float().cpu().numpy()
        owners = batch.windows.cpu().numpy()
        assert found.ends is not None
        ends = found.ends.float().cpu().numpy()
        sentence_of = batch.sentence_of.cpu().numpy()
        inside = batch.packed.in_second.cpu().numpy()
        firsts = batch.packed.starts.cpu().numpy()
        for row, at in enumerate(part.tolist()):
            logits[at] = values[:, owners == row]
            low, high = firsts[row], firsts[row + 1]
            allowed = np.flatnonzero(inside[low:high]) + low
            if not len(allowed):
                continue
            own = sentence_of[allowed]
            grid = ends[allowed, 0][:, None] + ends[allowed, 1][None, :]
            place = np.arange(len(allowed))
            length = place[None, :] - place[:, None]
            wrong = (length < 0) | (length >= LONGEST_ANSWER) | (own[None, :] != own[:, None])
            grid[wrong] = -np.inf
            start, stop = divmod(int(grid.argmax()), len(allowed))
            sentence = own[start]
            base = batch.starts[sentence]
            number = sentence - int(np.flatnonzero(owners == row)[0])
            spans[at] = number, allowed[start] - base, allowed[stop] - base
            odds[at] = grid[start, stop] - ends[low].sum()
    return PassageScores(windows, logits, spans, odds)


def measure_context(
    network: ContextNetwork, examples: ContextExamples, form: WindowFormat
) -> dict[str, float]:
    """
    P@1 of the sentences of the own passage at every depth, and the reader's exact match.

    At most 3,000 examples, at even steps. Exact match is of tokens, over those with a span.
    """
    chosen = np.unique(np.linspace(0, len(examples) - 1, min(_MEASURED, len(examples))).astype(int))
    answers, spans = examples.answer_lists(), examples.span_lists()
    rows = [at for at in chosen.tolist() if answers[at]]
    pairs = [(at, int(examples.question_passages[at])) for at in rows]
    found = score_passages(network, examples, form, pairs)
    right = np.zeros(len(network.depths))
    exact: list[bool] = []
    for number, (at, _) in enumerate(pairs):
        best = found.logits[number].argmax(1)
        right += [int(each) in answers[at] for each in best]
        if spans[at]:
            exact.append(tuple(found.spans[number].tolist()) in spans[at])
    shares = 100 * right / max(1, len(pairs))
    measured = {
        f"P@1 {depth}": float(share)
        for depth, share in zip(network.depths[::-1], shares[::-1], strict=True)
    }
    if exact:
        measured["EM"] = 100 * float(np.mean(exact))
    return measured
