"""
Windows with their candidates and with which of them answer each question.

How the siamese encoder learns: to tell a candidate from the others, here and elsewhere.
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
from .phrase_examples import Asked, Material, Spans, answer_spans, like_lengths, pad
from .phrase_extractor import BARRED, Candidates
from .phrase_network import PhraseCodes, PhraseNetwork, QuestionCodes
from .phrase_teacher import Reading, TeacherTables
from .phrase_training import OnStep, PhraseRecipe, device_of, fit

__all__ = [
    "Lesson",
    "LessonBatch",
    "PhraseLoss",
    "collate",
    "make_lesson",
    "score_batch",
    "train_phrases",
]

Normalise = Callable[[str], str]


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """One window. Arrays with a row for each question have a column for each candidate."""

    window: TokenWindow
    spans: NDArray[np.int32]  # (candidates, 2)
    chances: NDArray[np.float32]  # (candidates,): the extractor's log-probabilities
    questions: tuple[Asked, ...]
    right: NDArray[np.bool_]
    unsure: NDArray[np.bool_]
    """The answer's words at another place: neither right nor wrong."""
    taught: NDArray[np.float32] | None
    """A reader's scores."""

    def readings(self) -> list[Reading]:
        """What a reader takes to teach this."""
        return [Reading(asked.tokens, self.window, asked.spans) for asked in self.questions]


def make_lesson(
    material: Material,
    candidates: Candidates,
    text: str,
    *,
    normalise: Normalise,
    limit: int = 80,
    teacher: TeacherTables | None = None,
) -> Lesson:
    """
    A window's lesson; spans that answer are added where the extractor missed them.

    A candidate is right where it says the same as an answer, as measures compare phrases, and
    overlaps it.
    """
    spans, chances = _with_answers(material, candidates, limit)
    window = material.window
    says = [normalise(text[window.starts[a] : window.ends[b]]) for a, b in spans]
    right = np.zeros((len(material.questions), len(spans)), bool)
    unsure = np.zeros_like(right)
    for row, asked in enumerate(material.questions):
        answers = {normalise(text[window.starts[a] : window.ends[b]]) for a, b in asked.spans}
        same = np.array([said in answers for said in says])
        near = (
            (spans[:, None, 0] <= asked.spans[:, 1]) & (spans[:, None, 1] >= asked.spans[:, 0])
        ).any(1)
        exact = (spans[:, None] == asked.spans).all(-1).any(1)
        right[row] = exact | (same & near)
        unsure[row] = same & ~right[row]
    taught = None
    if teacher is not None:
        taught = np.stack([first[spans[:, 0]] + last[spans[:, 1]] for first, last in teacher])
    return Lesson(window, spans, chances, material.questions, right, unsure, taught)


def _with_answers(material: Material, candidates: Candidates, limit: int) -> Candidates:
    """Every span that answers something, and the likeliest others up to the limit."""
    spans, chances = candidates
    answers, _ = material.spans()
    wanted = {tuple(span) for span in answers.tolist()}
    found = [tuple(span) for span in spans.tolist()]
    is_answer = np.array([span in wanted for span in found], bool)
    others = np.flatnonzero(~is_answer)[: max(0, limit - len(wanted))]
    kept = np.sort(np.concatenate([np.flatnonzero(is_answer), others]))
    missing = sorted(wanted.difference(found))
    lowest = float(chances.min()) if len(chances) else -10.0
    return (
        np.concatenate([spans[kept], np.array(missing, np.int32).reshape(-1, 2)]),
        np.concatenate([chances[kept], np.full(len(missing), lowest, np.float32)]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class LessonBatch:
    """Lessons side by side. P windows, A candidates of the longest, Q questions of all."""

    tokens: Tensor  # (P, tokens)
    inside: Tensor
    spans: Tensor  # (P, A, 2)
    filled: Tensor  # (P, A): whether there is a candidate
    chances: Tensor  # (P, A)
    questions: Tensor  # (Q, tokens)
    asked: Tensor  # (Q, tokens): whether there is a token
    home: Tensor  # (Q,): each question's window
    right: Tensor  # (Q, A)
    unsure: Tensor  # (Q, A)
    windows: tuple[TokenWindow, ...]
    answers: tuple[tuple[Spans, NDArray[np.float32]], ...]
    """Of each window the spans that answer something, and their shares."""
    taught: Tensor  # (Q, A): log-probabilities over the candidates; nan rows are untaught


def collate(
    lessons: Sequence[Lesson],
    device: torch.device | str,
    *,
    rng: np.random.Generator | None = None,
    questions: int | None = None,
    candidates: int | None = None,
) -> LessonBatch:
    """
    A batch; with `rng`, at most so many `questions` and `candidates` of each window.

    They are drawn anew each time, and candidates that answer something are always among them.
    """
    if rng is not None and candidates is not None:
        lessons = [_thinned(lesson, candidates, rng) for lesson in lessons]
    tokens, inside = pad([lesson.window.tokens for lesson in lessons], device)
    most = max(len(lesson.spans) for lesson in lessons)
    spans = np.zeros((len(lessons), most, 2), np.int64)
    filled = np.zeros((len(lessons), most), bool)
    chances = np.zeros((len(lessons), most), np.float32)
    home, right, unsure, taught, rows = [], [], [], [], []
    for place, lesson in enumerate(lessons):
        size = len(lesson.spans)
        spans[place, :size], filled[place, :size] = lesson.spans, True
        chances[place, :size] = lesson.chances
        wide = (0, most - size)
        for at in _drawn(len(lesson.questions), questions, rng):
            home.append(place)
            rows.append(lesson.questions[at].tokens)
            right.append(np.pad(lesson.right[at], wide))
            unsure.append(np.pad(lesson.unsure[at], wide))
            taught.append(_taught(lesson, at, wide))
    asked_tokens, asked = pad(rows, device)
    arrays = {
        "spans": spans,
        "filled": filled,
        "chances": chances,
        "home": np.array(home),
        "right": np.stack(right),
        "unsure": np.stack(unsure),
        "taught": np.stack(taught),
    }
    return LessonBatch(
        tokens=tokens,
        inside=inside,
        questions=asked_tokens,
        asked=asked,
        windows=tuple(lesson.window for lesson in lessons),
        answers=tuple(answer_spans(lesson.questions) for lesson in lessons),
        **{name: torch.from_numpy(array).to(device) for name, array in arrays.items()},
    )


def _thinned(lesson: Lesson, count: int, rng: np.random.Generator) -> Lesson:
    """The lesson with so many of its candidates; of the wrong ones, likely ones rather stay."""
    answers = lesson.right.any(0)
    count = max(count, int(answers.sum()))
    if len(lesson.spans) <= count:
        return lesson
    luck = lesson.chances / 2 + rng.gumbel(size=len(lesson.spans))
    luck[answers] = np.inf
    kept = np.sort(np.argsort(-luck, kind="stable")[:count])
    return replace(
        lesson,
        spans=lesson.spans[kept],
        chances=lesson.chances[kept],
        right=lesson.right[:, kept],
        unsure=lesson.unsure[:, kept],
        taught=None if lesson.taught is None else lesson.taught[:, kept],
    )


def _drawn(count: int, most: int | None, rng: np.random.Generator | None) -> Sequence[int]:
    if rng is None or most is None or count <= most:
        return range(count)
    return [int(at) for at in rng.permutation(count)[:most]]


def _taught(lesson: Lesson, at: int, wide: tuple[int, int]) -> NDArray[np.float32]:
    if lesson.taught is None:
        return np.full(len(lesson.spans) + wide[1], np.nan, np.float32)
    return np.pad(lesson.taught[at], wide, constant_values=-1e4).astype(np.float32)


@dataclass(frozen=True, slots=True)
class PhraseLoss:
    """Shares of the parts in the sum; the softmax over the window's own candidates counts 1."""

    elsewhere: float = 0.5
    """Softmax over all candidates of the batch: what an index over many texts asks."""
    dense: float = 0.5
    """The same without the lexical part, so that nearest neighbours alone find the phrase."""
    taught: float = 1.0
    """Divergence from the reader's softmax over the window's own candidates."""
    warmth: float = 1.0
    """Above 1, the reader's second and third thoughts count more."""
    spans: float = 0.3
    """The extractor's loss on the same states: one encoder then does both."""


def score_batch(
    network: PhraseNetwork, batch: LessonBatch, phrases: PhraseCodes, questions: QuestionCodes
) -> tuple[Tensor, Tensor]:
    """Scores (Q, P, A) of every question with every candidate: the dense part, and all of it."""
    dense = torch.einsum("qd,pad->qpa", questions.dense, phrases.dense).float()
    dense = dense + questions.trust[:, None, None] * batch.chances
    barred = ~batch.filled
    if network.lexical is None or phrases.words is None:
        found = dense.masked_fill(barred, BARRED)
        return found, found
    assert questions.seeks is not None
    assert questions.own is not None
    words, places = torch.unique(batch.tokens, return_inverse=True)  # (words,), (P, tokens)
    table = network.encoder.get_input_embeddings().weight[words]
    wanted = network.lexical.wanted(
        questions.seeks, questions.own, batch.questions, words, table
    )  # (Q, words)
    lexical = torch.einsum("qpt,pat->qpa", wanted[:, places], phrases.words.to(wanted.dtype))
    return dense.masked_fill(barred, BARRED), (dense + lexical).masked_fill(barred, BARRED)


def phrase_loss(network: PhraseNetwork, batch: LessonBatch, how: PhraseLoss) -> Tensor:
    """The mean over the batch's questions."""
    phrases = network.encode_phrases(batch.tokens, batch.inside, batch.spans)
    questions = network.encode_questions(batch.questions, batch.asked)
    dense, whole = score_batch(network, batch, phrases, questions)
    total = _choices(whole, batch, how.elsewhere)
    if dense is not whole and how.dense:
        total = total + how.dense * _choices(dense, batch, how.elsewhere)
    if how.taught:
        total = total + how.taught * _divergence(whole, batch, how.warmth)
        if dense is not whole and how.dense:
            total = total + how.taught * how.dense * _divergence(dense, batch, how.warmth)
    if how.spans and network.spans is not None and phrases.states is not None:
        found = network.spans.loss(phrases.states, batch.windows, batch.answers)
        total = total + how.spans * found
    return total


def _choices(scores: Tensor, batch: LessonBatch, elsewhere: float) -> Tensor:
    rows = torch.arange(len(scores), device=scores.device)
    own = scores[rows, batch.home].masked_fill(batch.unsure, BARRED)  # (Q, A)
    right = own.masked_fill(~batch.right, BARRED).logsumexp(-1)
    here = own.logsumexp(-1)
    loss = here - right
    if elsewhere:
        every = scores.clone()
        every[rows, batch.home] = own
        loss = loss + elsewhere * (every.flatten(1).logsumexp(-1) - right)
    known = batch.right.any(-1)  # a question without a right candidate has nothing to say
    return (loss * known).sum() / known.sum().clamp(min=1)


def _divergence(scores: Tensor, batch: LessonBatch, warmth: float) -> Tensor:
    rows = torch.arange(len(scores), device=scores.device)
    own = functional.log_softmax(scores[rows, batch.home] / warmth, -1)
    taught = ~batch.taught.isnan().any(-1)
    if not taught.any():
        return own.sum() * 0
    target = functional.log_softmax(batch.taught[taught] / warmth, -1)
    return functional.kl_div(own[taught], target, log_target=True, reduction="batchmean")


def train_phrases(
    network: PhraseNetwork,
    lessons: Sequence[Lesson],
    recipe: PhraseRecipe,
    *,
    how: PhraseLoss | None = None,
    questions: int = 8,
    candidates: int = 48,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: OnStep | None = None,
) -> list[Epoch]:
    """Train in place; at most so many `questions` and `candidates` of a window count in a step."""
    how = how or PhraseLoss()
    useful = [lesson for lesson in lessons if lesson.questions]
    device = device_of(network)

    def batches(rng: np.random.Generator) -> Iterable[LessonBatch]:
        for places in like_lengths([len(one.window) for one in useful], recipe.batch, rng):
            some = [useful[place] for place in places]
            yield collate(some, device, rng=rng, questions=questions, candidates=candidates)

    def loss(batch: LessonBatch) -> Tensor:
        return phrase_loss(network, batch, how)

    steps = -(-len(useful) // recipe.batch)
    return fit(network, batches, loss, recipe, steps=steps, on_epoch=on_epoch, on_step=on_step)
