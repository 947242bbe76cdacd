"""Windows with their candidates and with which of them answer each question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...phrases.tokenization import Window
from .batches import pad
from .extractor import Candidates
from .material import Asked, Material, Spans, answer_spans
from .reader import Reading

__all__ = ["Lesson", "LessonBatch", "TeacherTables", "collate", "make_lesson"]

Normalise = Callable[[str], str]
TeacherTables = Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]
"""For each question of a window, a reader's log-probabilities of its first and last tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """One window. Arrays with a row for each question have a column for each candidate."""

    window: Window
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
    windows: tuple[Window, ...]
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
