"""How the siamese encoder learns: to tell a candidate from the others, here and elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..recipe import Epoch
from .batches import like_lengths
from .extractor import BARRED
from .fitting import OnStep, PhraseRecipe, device_of, fit
from .lessons import Lesson, LessonBatch, collate
from .network import PhraseCodes, PhraseNetwork, QuestionCodes

__all__ = ["PhraseLoss", "score_batch", "train_phrases"]


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
