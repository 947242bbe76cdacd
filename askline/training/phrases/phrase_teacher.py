"""
Teachers of the phrase encoder: readers that see question and paragraph together.

They score the candidates of a paragraph for a question, and mark answers in sentences that come
with a question but without an answer span. They are not part of any exported model. A reader that
was trained on a question is too sure of its answer to teach anything, so two are trained, each on
half of the paragraphs, and each scores the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ...data.squad import Paragraph
from ...phrases.tokenization import MAX_PHRASE_TOKENS, TokenWindow, tokenize_question
from ..checkpoint import Epoch
from ..transformer.pair_network import autocast
from .phrase_networks import MASKED, accepted_inputs, second_token_type
from .phrase_training import (
    AnswerWindow,
    PhraseRecipe,
    TrainingCallbacks,
    WindowQuestion,
    answer_windows,
    batches_of_similar_length,
    device_of,
    pad,
    train_phrase_network,
)

__all__ = [
    "LabeledWindow",
    "PairText",
    "PhraseTeacher",
    "TeacherInput",
    "TeacherTables",
    "cross_tables",
    "cross_train_teachers",
    "join_pairs",
    "mark_answers",
    "soften_answers",
    "teacher_tables",
    "train_on_half",
    "train_teacher",
]


TeacherTables = Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]
"""For each question of a window, log-probabilities of the answer's first and last token."""


@dataclass(frozen=True, slots=True, eq=False)
class TeacherInput:
    """A question and a window, with the answer spans if they are known."""

    question: NDArray[np.int32]
    window: TokenWindow
    spans: NDArray[np.int32]


class PhraseTeacher(nn.Module):
    """Log-probabilities of each token being the first and the last of the answer."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.ends = nn.Linear(encoder.config.hidden_size, 2)

    def forward(self, teacher_inputs: Sequence[TeacherInput]) -> tuple[Tensor, Tensor]:
        """Two tables (inputs, tokens of the longest window)."""
        device = device_of(self)
        # The window's first special token is dropped: the question ends with the one between.
        rows = [np.concatenate([one.question, one.window.tokens[1:]]) for one in teacher_inputs]
        tokens, mask = pad(rows, device)
        shifts = torch.tensor([len(one.question) - 1 for one in teacher_inputs], device=device)
        later = torch.arange(tokens.shape[1], device=device) > shifts[:, None]
        batch = {"input_ids": tokens, "attention_mask": mask.long()}
        batch["token_type_ids"] = (later & mask).long() * second_token_type(self.encoder)
        states = self.encoder(**accepted_inputs(self.encoder, batch)).last_hidden_state
        logits = self.ends(states).float()  # (readings, tokens, 2)
        flags = [(one.window.ends > one.window.starts).astype(np.int32) for one in teacher_inputs]
        real, _ = pad(flags, device)  # (readings, tokens of the longest window)
        places = torch.arange(real.shape[1], device=device) + shifts[:, None]
        places = places.clamp(max=tokens.shape[1] - 1)
        logits = logits.gather(1, places[..., None].expand(-1, -1, 2))
        logits = logits.masked_fill(real[..., None] == 0, MASKED)
        scores = functional.log_softmax(logits, 1)
        return scores[..., 0], scores[..., 1]

    def loss(self, batch: Sequence[TeacherInput]) -> Tensor:
        """Cross-entropy of first and last tokens to the answer spans."""
        firsts, lasts = self(batch)
        target = np.zeros((2, *firsts.shape), np.float32)
        for row, one in enumerate(batch):
            for span in one.spans:
                target[[0, 1], row, span] += 1 / len(one.spans)
        first, last = torch.from_numpy(target).to(firsts.device)
        likely: Tensor = (first * firsts + last * lasts).sum()
        return -likely / len(batch)


def teacher_inputs(windows: Iterable[AnswerWindow]) -> list[TeacherInput]:
    """Every question with its window."""
    return [
        TeacherInput(asked.tokens, one.window, asked.spans)
        for one in windows
        for asked in one.questions
    ]


def train_teacher(
    network: PhraseTeacher,
    inputs: Sequence[TeacherInput],
    recipe: PhraseRecipe,
    *,
    callbacks: TrainingCallbacks | None = None,
) -> tuple[Epoch, ...]:
    """Train in place."""
    lengths = [len(one.question) + len(one.window) for one in inputs]

    def batches(rng: np.random.Generator) -> Iterable[list[TeacherInput]]:
        for places in batches_of_similar_length(lengths, recipe.batch_size, rng):
            yield [inputs[place] for place in places]

    return train_phrase_network(
        network,
        batches,
        network.loss,
        recipe,
        steps=-(-len(inputs) // recipe.batch_size),
        settings=f"teacher on {len(inputs)} questions",
        callbacks=callbacks,
    )


@torch.no_grad()
def teacher_tables(
    network: PhraseTeacher, inputs: Sequence[TeacherInput], *, batch: int = 128
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Log-probabilities of first and last tokens, two arrays per input."""
    network.eval()
    found: list[Any] = [None] * len(inputs)
    order = np.argsort([len(one.question) + len(one.window) for one in inputs], kind="stable")
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        with autocast(device_of(network)):
            firsts, lasts = network([inputs[place] for place in places])
        tables = firsts.float().cpu().numpy(), lasts.float().cpu().numpy()
        for row, place in enumerate(places):
            size = len(inputs[place].window)
            found[place] = (tables[0][row, :size].copy(), tables[1][row, :size].copy())
    return found


Floats = NDArray[np.float32]
_PARAGRAPH_CHARACTERS = 800  # about the length of SQuAD's paragraphs


def cross_train_teachers(
    start: Callable[[], PhraseTeacher],
    windows: Sequence[AnswerWindow],
    recipe: PhraseRecipe,
    *,
    callbacks: Callable[[str], TrainingCallbacks] = lambda _: TrainingCallbacks(),
) -> tuple[list[PhraseTeacher], list[TeacherTables]]:
    """Both teachers, and for each window the tables of the one that was not trained on it."""
    teachers = [
        train_on_half(start(), half, windows, recipe, callbacks=callbacks(f"teacher {half + 1}"))
        for half in (0, 1)
    ]
    return teachers, cross_tables(teachers, windows)


def train_on_half(
    teacher: PhraseTeacher,
    half: int,
    windows: Sequence[AnswerWindow],
    recipe: PhraseRecipe,
    *,
    callbacks: TrainingCallbacks | None = None,
) -> PhraseTeacher:
    """The teacher, trained in place on the paragraphs of even (half 0) or odd (1) index."""
    known = [one for one in windows if one.paragraph % 2 == half]
    train_teacher(teacher, teacher_inputs(known), recipe, callbacks=callbacks)
    return teacher


def cross_tables(
    teachers: Sequence[PhraseTeacher], windows: Sequence[AnswerWindow]
) -> list[TeacherTables]:
    """For each window the tables of the teacher that was trained on the other half."""
    tables = dict[int, TeacherTables]()
    for half, teacher in enumerate(teachers):
        unseen = [at for at, one in enumerate(windows) if one.paragraph % 2 != half]
        found = iter(teacher_tables(teacher, teacher_inputs(windows[at] for at in unseen)))
        tables |= {at: [next(found) for _ in windows[at].questions] for at in unseen}
    return [tables[at] for at in range(len(windows))]


@dataclass(frozen=True, slots=True)
class PairText:
    """Sentences joined to a paragraph, and for each question the sentence that answers it."""

    text: str
    questions: tuple[tuple[str, str, tuple[int, int]], ...]
    """Id, question, and the character range of the sentence."""


def join_pairs(pairs: Iterable[tuple[str, str]]) -> list[PairText]:
    """Join the sentences of (question, sentence) pairs to paragraphs, in their order."""
    found: list[PairText] = []
    text, places, asked = "", dict[str, tuple[int, int]](), list[Any]()
    for number, (question, sentence) in enumerate(pairs):
        if sentence not in places:
            if text and len(text) + len(sentence) > _PARAGRAPH_CHARACTERS:
                found.append(PairText(text, tuple(asked)))
                text, places, asked = "", {}, []
            text += " " * bool(text)
            places[sentence] = (len(text), len(text) + len(sentence))
            text += sentence
        asked.append((f"pair-{number}", question, places[sentence]))
    return [*found, PairText(text, tuple(asked))] if asked else found


@dataclass(frozen=True, slots=True, eq=False)
class LabeledWindow:
    """A window of joined sentences with the answers that the teachers marked."""

    text: str
    window: AnswerWindow
    tables: TeacherTables


def mark_answers(
    teachers: Sequence[PhraseTeacher],
    texts: Sequence[PairText],
    tokenizer: Any,
    *,
    min_probability: float = 0.35,
    size: int = 384,
    overlap: int = 128,
) -> list[LabeledWindow]:
    """
    Windows with the questions whose answer the teachers mark with probability `min_probability`.

    It is the probability of one span among all spans of its sentence, averaged over the teachers.
    """
    paragraphs = [Paragraph(f"pairs#{at}", "", one.text, ()) for at, one in enumerate(texts)]
    windows = answer_windows(paragraphs, tokenizer, size=size, overlap=overlap)
    asked = [
        (place, name, tokenize_question(question, tokenizer), sentence)
        for place, one in enumerate(windows)
        for name, question, sentence in texts[one.paragraph].questions
    ]
    nothing = np.zeros((0, 2), np.int32)
    every = [TeacherInput(tokens, windows[place].window, nothing) for place, _, tokens, _ in asked]
    found = [teacher_tables(teacher, every) for teacher in teachers]
    kept: dict[int, list[tuple[WindowQuestion, tuple[Floats, Floats]]]] = {}
    for at, (place, name, tokens, sentence) in enumerate(asked):
        tables = _mean([one[at][0] for one in found]), _mean([one[at][1] for one in found])
        span = _most_probable_span(windows[place].window, tables, sentence, min_probability)
        if span is not None:
            kept.setdefault(place, []).append((WindowQuestion(name, tokens, span), tables))
    return [
        LabeledWindow(
            texts[windows[place].paragraph].text,
            AnswerWindow(
                windows[place].paragraph, windows[place].window, tuple(one for one, _ in rows)
            ),
            [tables for _, tables in rows],
        )
        for place, rows in kept.items()
    ]


def _mean(scores: Sequence[Floats]) -> Floats:
    """The mean of probabilities, given and returned as logarithms."""
    found: Floats = np.logaddexp.reduce(np.stack(scores)) - np.float32(np.log(len(scores)))
    return found


def _most_probable_span(
    window: TokenWindow,
    tables: tuple[Floats, Floats],
    sentence: tuple[int, int],
    min_probability: float,
) -> NDArray[np.int32] | None:
    within = (window.starts >= sentence[0]) & (window.ends <= sentence[1])
    joint = _span_scores(window, tables, within)
    first, length = np.unravel_index(np.argmax(joint), joint.shape)
    top = joint[first, length]
    if not np.isfinite(top) or np.exp(joint - top).sum() * min_probability > 1:
        return None
    return np.array([[first, first + length]], np.int32)


def _span_scores(
    window: TokenWindow, tables: tuple[Floats, Floats], within: NDArray[np.bool_]
) -> Floats:
    """
    The sum of both tables for every span of tokens `within` (tokens,), -inf for impossible ones.

    A row is a first token, a column the number of tokens after it.
    """
    starts = np.where(within & window.may_start, tables[0], -np.inf).astype(np.float32)
    ends = np.where(within & window.may_end, tables[1], -np.inf).astype(np.float32)
    beyond = np.full(MAX_PHRASE_TOKENS - 1, -np.inf, np.float32)
    ends = np.concatenate([ends, beyond])
    scores: Floats = starts[:, None] + sliding_window_view(ends, MAX_PHRASE_TOKENS)
    return scores


def soften_answers(
    answer_window: AnswerWindow, tables: TeacherTables, weight: float, *, count: int = 8
) -> AnswerWindow:
    """
    The window with soft answers for the extractor, which otherwise learns one span per question.

    The answers of a question keep 1 - `weight`; `weight` goes to the `count` spans that the teacher
    finds most probable, by their probabilities.
    """
    window = answer_window.window
    everywhere = np.ones(len(window), bool)
    softened = []
    for asked, own in zip(answer_window.questions, tables, strict=True):
        flat = _span_scores(window, own, everywhere).ravel()
        best = np.argpartition(-flat, min(count, len(flat)) - 1)[:count]
        best = best[np.isfinite(flat[best])]
        likely = np.exp(flat[best] - flat[best].max(initial=-np.inf))
        first, length = np.divmod(best, MAX_PHRASE_TOKENS)
        spans = np.concatenate([asked.spans, np.stack([first, first + length], 1)])
        answers = np.full(len(asked.spans), (1 - weight) / len(asked.spans))
        shares = np.concatenate([answers, weight * likely / likely.sum()])
        soft = spans.astype(np.int32), shares.astype(np.float32)
        softened.append(replace(asked, soft=soft))
    return replace(answer_window, questions=tuple(softened))
