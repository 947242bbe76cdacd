"""
Contrastive training of the phrase encoder: the right candidate against all others.

An example is a window with its candidates and which of them answer each question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ...phrases.tokenization import TokenWindow
from ..checkpoint import Epoch
from .phrase_networks import MASKED, Candidates, PhraseCodes, PhraseNetwork, QuestionCodes
from .phrase_teacher import TeacherTables
from .phrase_training import (
    AnswerWindow,
    PhraseRecipe,
    Spans,
    TrainingCallbacks,
    WindowQuestion,
    answer_spans,
    batches_of_similar_length,
    device_of,
    pad,
    train_phrase_network,
)

__all__ = [
    "PhraseBatch",
    "PhraseExample",
    "PhraseLoss",
    "collate",
    "make_example",
    "score_batch",
    "train_phrases",
]

Normalize = Callable[[str], str]


@dataclass(frozen=True, slots=True, eq=False)
class PhraseExample:
    """One window. Two-dimensional arrays are (questions, candidates)."""

    window: TokenWindow
    spans: NDArray[np.int32]  # (candidates, 2)
    log_probabilities: NDArray[np.float32]  # (candidates,): the extractor's log-probabilities
    questions: tuple[WindowQuestion, ...]
    correct: NDArray[np.bool_]
    ambiguous: NDArray[np.bool_]
    """The words of the answer at another position: neither correct nor wrong."""
    teacher_scores: NDArray[np.float32] | None
    """Scores of a teacher."""


def make_example(
    answer_window: AnswerWindow,
    candidates: Candidates,
    text: str,
    *,
    normalize: Normalize,
    limit: int = 80,
    teacher: TeacherTables | None = None,
) -> PhraseExample:
    """
    The example of a window; answer spans that the extractor missed are added.

    A candidate is correct if it overlaps an answer and is equal to it after `normalize`.
    """
    spans, log_probabilities = _with_answers(answer_window, candidates, limit)
    window = answer_window.window
    says = [normalize(text[window.starts[a] : window.ends[b]]) for a, b in spans]
    correct = np.zeros((len(answer_window.questions), len(spans)), bool)
    ambiguous = np.zeros_like(correct)
    for row, asked in enumerate(answer_window.questions):
        answers = {normalize(text[window.starts[a] : window.ends[b]]) for a, b in asked.spans}
        same = np.array([said in answers for said in says])
        near = (
            (spans[:, None, 0] <= asked.spans[:, 1]) & (spans[:, None, 1] >= asked.spans[:, 0])
        ).any(1)
        exact = (spans[:, None] == asked.spans).all(-1).any(1)
        correct[row] = exact | (same & near)
        ambiguous[row] = same & ~correct[row]
    teacher_scores = None
    if teacher is not None:
        teacher_scores = np.stack(
            [first[spans[:, 0]] + last[spans[:, 1]] for first, last in teacher]
        )
    return PhraseExample(
        window,
        spans,
        log_probabilities,
        answer_window.questions,
        correct,
        ambiguous,
        teacher_scores,
    )


def _with_answers(answer_window: AnswerWindow, candidates: Candidates, limit: int) -> Candidates:
    """All answer spans, and the most probable others up to the limit."""
    spans, log_probabilities = candidates
    wanted = {tuple(span) for asked in answer_window.questions for span in asked.spans.tolist()}
    found = [tuple(span) for span in spans.tolist()]
    is_answer = np.array([span in wanted for span in found], bool)
    others = np.flatnonzero(~is_answer)[: max(0, limit - len(wanted))]
    kept = np.sort(np.concatenate([np.flatnonzero(is_answer), others]))
    missing = sorted(wanted.difference(found))
    lowest = float(log_probabilities.min()) if len(log_probabilities) else -10.0
    return (
        np.concatenate([spans[kept], np.array(missing, np.int32).reshape(-1, 2)]),
        np.concatenate([log_probabilities[kept], np.full(len(missing), lowest, np.float32)]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PhraseBatch:
    """A batch of P windows with at most A candidates each, and Q questions in all."""

    tokens: Tensor  # (P, tokens)
    mask: Tensor
    spans: Tensor  # (P, A, 2)
    filled: Tensor  # (P, A): whether there is a candidate
    log_probabilities: Tensor  # (P, A)
    questions: Tensor  # (Q, tokens)
    asked: Tensor  # (Q, tokens): whether there is a token
    home: Tensor  # (Q,): each question's window
    correct: Tensor  # (Q, A)
    ambiguous: Tensor  # (Q, A)
    windows: tuple[TokenWindow, ...]
    answers: tuple[tuple[Spans, NDArray[np.float32]], ...]
    """The spans of each window that the extractor learns, and their shares."""
    teacher_scores: (
        Tensor  # (Q, A): log-probabilities over the candidates; rows without a teacher are nan
    )


def collate(
    examples: Sequence[PhraseExample],
    device: torch.device | str,
    *,
    rng: np.random.Generator | None = None,
    questions: int | None = None,
    candidates: int | None = None,
) -> PhraseBatch:
    """
    A batch; with `rng`, at most `questions` and `candidates` of each window, drawn at random.

    Candidates that answer a question are always included.
    """
    if rng is not None and candidates is not None:
        examples = [_sample_candidates(example, candidates, rng) for example in examples]
    tokens, mask = pad([example.window.tokens for example in examples], device)
    most = max(len(example.spans) for example in examples)
    spans = np.zeros((len(examples), most, 2), np.int64)
    filled = np.zeros((len(examples), most), bool)
    log_probabilities = np.zeros((len(examples), most), np.float32)
    home, correct, ambiguous, teacher_scores, rows = [], [], [], [], []
    for place, example in enumerate(examples):
        size = len(example.spans)
        spans[place, :size], filled[place, :size] = example.spans, True
        log_probabilities[place, :size] = example.log_probabilities
        wide = (0, most - size)
        for at in _sample_questions(len(example.questions), questions, rng):
            home.append(place)
            rows.append(example.questions[at].tokens)
            correct.append(np.pad(example.correct[at], wide))
            ambiguous.append(np.pad(example.ambiguous[at], wide))
            teacher_scores.append(_padded_teacher_scores(example, at, wide))
    asked_tokens, asked = pad(rows, device)
    arrays = {
        "spans": spans,
        "filled": filled,
        "log_probabilities": log_probabilities,
        "home": np.array(home),
        "correct": np.stack(correct),
        "ambiguous": np.stack(ambiguous),
        "teacher_scores": np.stack(teacher_scores),
    }
    return PhraseBatch(
        tokens=tokens,
        mask=mask,
        questions=asked_tokens,
        asked=asked,
        windows=tuple(example.window for example in examples),
        answers=tuple(answer_spans(example.questions) for example in examples),
        **{name: torch.from_numpy(array).to(device) for name, array in arrays.items()},
    )


def _sample_candidates(
    example: PhraseExample, count: int, rng: np.random.Generator
) -> PhraseExample:
    """The example with `count` candidates; probable ones are more likely to be kept."""
    answers = example.correct.any(0)
    count = max(count, int(answers.sum()))
    if len(example.spans) <= count:
        return example
    keys = example.log_probabilities / 2 + rng.gumbel(size=len(example.spans))
    keys[answers] = np.inf
    kept = np.sort(np.argsort(-keys, kind="stable")[:count])
    return replace(
        example,
        spans=example.spans[kept],
        log_probabilities=example.log_probabilities[kept],
        correct=example.correct[:, kept],
        ambiguous=example.ambiguous[:, kept],
        teacher_scores=None if example.teacher_scores is None else example.teacher_scores[:, kept],
    )


def _sample_questions(
    count: int, most: int | None, rng: np.random.Generator | None
) -> Sequence[int]:
    if rng is None or most is None or count <= most:
        return range(count)
    return [int(at) for at in rng.permutation(count)[:most]]


def _padded_teacher_scores(
    example: PhraseExample, at: int, wide: tuple[int, int]
) -> NDArray[np.float32]:
    if example.teacher_scores is None:
        return np.full(len(example.spans) + wide[1], np.nan, np.float32)
    return np.pad(example.teacher_scores[at], wide, constant_values=-1e4).astype(np.float32)


@dataclass(frozen=True, slots=True)
class PhraseLoss:
    """Weights of the losses; the softmax over the candidates of the window has 1."""

    elsewhere: float = 0.5
    """Softmax over all candidates of the batch, as in search over many texts."""
    dense: float = 0.5
    """Both without the lexical part, so that dense search alone finds the phrase."""
    teacher_scores: float = 1.0
    """KL divergence from the teacher's softmax over the candidates of the window."""
    temperature: float = 1.0
    """Of the softmax in distillation."""
    spans: float = 0.3
    """The extractor's loss on the same states, so that one encoder does both."""


def score_batch(
    network: PhraseNetwork, batch: PhraseBatch, phrases: PhraseCodes, questions: QuestionCodes
) -> tuple[Tensor, Tensor]:
    """Scores (Q, P, A) of all questions and candidates: the dense part, and the sum."""
    dense = torch.einsum("qd,pad->qpa", questions.dense, phrases.dense).float()
    dense = dense + questions.trust[:, None, None] * batch.log_probabilities
    barred = ~batch.filled
    if network.lexical is None or phrases.words is None:
        found = dense.masked_fill(barred, MASKED)
        return found, found
    assert questions.seeks is not None
    assert questions.own is not None
    words, places = torch.unique(batch.tokens, return_inverse=True)  # (words,), (P, tokens)
    table = network.encoder.get_input_embeddings().weight[words]
    wanted = network.lexical.wanted(
        questions.seeks, questions.own, batch.questions, words, table
    )  # (Q, words)
    lexical = torch.einsum("qpt,pat->qpa", wanted[:, places], phrases.words.to(wanted.dtype))
    return dense.masked_fill(barred, MASKED), (dense + lexical).masked_fill(barred, MASKED)


def phrase_loss(network: PhraseNetwork, batch: PhraseBatch, weights: PhraseLoss) -> Tensor:
    """The weighted sum of the losses, each a mean over the questions of the batch."""
    phrases = network.encode_phrases(batch.tokens, batch.mask, batch.spans)
    questions = network.encode_questions(batch.questions, batch.asked)
    dense, whole = score_batch(network, batch, phrases, questions)
    total = _choices(whole, batch, weights.elsewhere)
    if dense is not whole and weights.dense:
        total = total + weights.dense * _choices(dense, batch, weights.elsewhere)
    if weights.teacher_scores:
        total = total + weights.teacher_scores * _divergence(whole, batch, weights.temperature)
        if dense is not whole and weights.dense:
            total = total + weights.teacher_scores * weights.dense * _divergence(
                dense, batch, weights.temperature
            )
    if weights.spans:
        found = network.spans.loss(phrases.states, batch.windows, batch.answers)
        total = total + weights.spans * found
    return total


def _choices(scores: Tensor, batch: PhraseBatch, elsewhere: float) -> Tensor:
    rows = torch.arange(len(scores), device=scores.device)
    own = scores[rows, batch.home].masked_fill(batch.ambiguous, MASKED)  # (Q, A)
    correct = own.masked_fill(~batch.correct, MASKED).logsumexp(-1)
    here = own.logsumexp(-1)
    loss = here - correct
    if elsewhere:
        every = scores.clone()
        every[rows, batch.home] = own
        loss = loss + elsewhere * (every.flatten(1).logsumexp(-1) - correct)
    known = batch.correct.any(-1)  # a question without a right candidate has nothing to say
    return (loss * known).sum() / known.sum().clamp(min=1)


def _divergence(scores: Tensor, batch: PhraseBatch, temperature: float) -> Tensor:
    rows = torch.arange(len(scores), device=scores.device)
    own = functional.log_softmax(scores[rows, batch.home] / temperature, -1)
    teacher_scores = ~batch.teacher_scores.isnan().any(-1)
    if not teacher_scores.any():
        return own.sum() * 0
    target = functional.log_softmax(batch.teacher_scores[teacher_scores] / temperature, -1)
    return functional.kl_div(own[teacher_scores], target, log_target=True, reduction="batchmean")


def train_phrases(
    network: PhraseNetwork,
    examples: Sequence[PhraseExample],
    recipe: PhraseRecipe,
    *,
    weights: PhraseLoss | None = None,
    callbacks: TrainingCallbacks | None = None,
) -> tuple[Epoch, ...]:
    """Train in place, on at most 8 questions and 48 candidates of each window in a step."""
    loss_weights = weights or PhraseLoss()
    useful = [example for example in examples if example.questions]
    lengths = [len(example.window) for example in useful]
    device = device_of(network)

    def batches(rng: np.random.Generator) -> Iterable[PhraseBatch]:
        for places in batches_of_similar_length(lengths, recipe.batch_size, rng):
            some = [useful[place] for place in places]
            yield collate(some, device, rng=rng, questions=8, candidates=48)

    def loss(batch: PhraseBatch) -> Tensor:
        return phrase_loss(network, batch, loss_weights)

    return train_phrase_network(
        network,
        batches,
        loss,
        recipe,
        steps=-(-len(useful) // recipe.batch_size),
        settings=f"phrase encoder with {loss_weights} on {len(useful)} windows",
        callbacks=callbacks,
    )
