"""
What readers teach: scores of candidates, and answers in sentences that come without them.

A reader that has seen a question's answer is too sure of it to teach anything. So two readers are
trained, each on half of the paragraphs, and each teaches about the half that it has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.squad import Paragraph
from ...phrases.tokenization import LONGEST, Window, question_tokens
from ..recipe import Epoch
from .fitting import OnStep, PhraseRecipe
from .lessons import TeacherTables
from .material import Asked, Material, make_material
from .reader import Reader, Reading, read, readings, train_reader

__all__ = ["Labelled", "PairText", "cross_read", "join_pairs", "label_pairs"]

Floats = NDArray[np.float32]
_PIECE = 800  # characters of a made-up paragraph, as long as SQuAD's


def cross_read(
    start: Callable[[], Reader],
    material: Sequence[Material],
    recipe: PhraseRecipe,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: OnStep | None = None,
) -> tuple[list[Reader], list[TeacherTables]]:
    """Both readers, and for each window what the one that has not seen it says of its questions."""
    readers, tables = [], dict[int, TeacherTables]()
    for half in (0, 1):
        reader = start()
        known = [one for one in material if one.paragraph % 2 == half]
        train_reader(reader, readings(known), recipe, on_epoch=on_epoch, on_step=on_step)
        unseen = [at for at, one in enumerate(material) if one.paragraph % 2 != half]
        found = iter(read(reader, readings(material[at] for at in unseen)))
        tables |= {at: [next(found) for _ in material[at].questions] for at in unseen}
        readers.append(reader)
    return readers, [tables[at] for at in range(len(material))]


@dataclass(frozen=True, slots=True)
class PairText:
    """A made-up paragraph of sentences, and for each question the sentence that answers it."""

    text: str
    questions: tuple[tuple[str, str, tuple[int, int]], ...]
    """Id, question, first character and end of the sentence."""


def join_pairs(pairs: Iterable[tuple[str, str]]) -> list[PairText]:
    """(question, sentence) pairs as paragraphs: sentences that follow each other stand together."""
    found: list[PairText] = []
    text, places, asked = "", dict[str, tuple[int, int]](), list[Any]()
    for number, (question, sentence) in enumerate(pairs):
        if sentence not in places:
            if text and len(text) + len(sentence) > _PIECE:
                found.append(PairText(text, tuple(asked)))
                text, places, asked = "", {}, []
            text += " " * bool(text)
            places[sentence] = (len(text), len(text) + len(sentence))
            text += sentence
        asked.append((f"pair-{number}", question, places[sentence]))
    return [*found, PairText(text, tuple(asked))] if asked else found


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """A window of a made-up paragraph, with the answers that readers marked in it."""

    text: str
    material: Material
    tables: TeacherTables


def label_pairs(
    readers: Sequence[Reader],
    texts: Sequence[PairText],
    tokeniser: Any,
    *,
    sure: float = 0.35,
    size: int = 384,
    overlap: int = 128,
) -> list[Labelled]:
    """
    Windows with the questions whose answer the readers mark with at least this probability.

    It is the probability of one span among all of its sentence, by the mean of the readers.
    """
    paragraphs = [Paragraph(f"pairs#{at}", "", one.text, ()) for at, one in enumerate(texts)]
    windows = make_material(paragraphs, tokeniser, size=size, overlap=overlap)
    asked = [
        (place, name, question_tokens(question, tokeniser), sentence)
        for place, one in enumerate(windows)
        for name, question, sentence in texts[one.paragraph].questions
    ]
    nothing = np.zeros((0, 2), np.int32)
    every = [Reading(tokens, windows[place].window, nothing) for place, _, tokens, _ in asked]
    said = [read(reader, every) for reader in readers]
    kept: dict[int, list[tuple[Asked, tuple[Floats, Floats]]]] = {}
    for at, (place, name, tokens, sentence) in enumerate(asked):
        tables = _mean([one[at][0] for one in said]), _mean([one[at][1] for one in said])
        span = _surest(windows[place].window, tables, sentence, sure)
        if span is not None:
            kept.setdefault(place, []).append((Asked(name, tokens, span), tables))
    return [
        Labelled(
            texts[windows[place].paragraph].text,
            Material(
                windows[place].paragraph, windows[place].window, tuple(one for one, _ in rows)
            ),
            [tables for _, tables in rows],
        )
        for place, rows in kept.items()
    ]


def _mean(scores: Sequence[Floats]) -> Floats:
    """Of probabilities given as logarithms."""
    found: Floats = np.logaddexp.reduce(np.stack(scores)) - np.float32(np.log(len(scores)))
    return found


def _surest(
    window: Window, tables: tuple[Floats, Floats], sentence: tuple[int, int], sure: float
) -> NDArray[np.int32] | None:
    within = (window.starts >= sentence[0]) & (window.ends <= sentence[1])
    starts = np.where(within & window.opens, tables[0], -np.inf)
    ends = np.where(within & window.closes, tables[1], -np.inf)
    length = np.arange(len(window)) - np.arange(len(window))[:, None]
    joint = np.where((length >= 0) & (length < LONGEST), starts[:, None] + ends, -np.inf)
    best = np.unravel_index(np.argmax(joint), joint.shape)
    top = joint[best]
    if not np.isfinite(top) or np.exp(joint - top).sum() * sure > 1:
        return None
    return np.array([best], np.int32)
