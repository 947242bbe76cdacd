"""One training step: lists and paragraphs as one packed batch, and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..packed.packing import Packed, Rows, TokenTable, Window, pack
from ..packed.templates import PairTemplate
from .lists import LIMIT, Drawn
from .network import CascadeNetwork
from .objectives import CascadeObjective, Lists
from .reading import Reading, reading_loss
from .scoring import score_pairs
from .windows import room_beside

__all__ = ["Piece", "Texts", "add_mined", "piece_loss", "pieces"]

SENTENCE, NOTHING = 0.5, 0.05
"""What an answer sentence and one without an answer weigh for the reader; a paragraph has 1."""


_UNLIMITED = 1 << 20


class Texts(NamedTuple):
    """What text numbers stand for."""

    table: TokenTable
    template: PairTemplate


class Piece(NamedTuple):
    """A part of a step that is held in memory at once."""

    lists: Sequence[Drawn]
    reading: Reading | None
    share: float
    """Of the step."""


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    packed: Packed
    pairs: int
    """The first sequences are the lists' pairs, the others paragraphs."""
    lists: Lists
    spans: Tensor
    weights: Tensor


def add_mined(
    network: CascadeNetwork, texts: Texts, drawn: Sequence[Drawn], *, depth: int
) -> list[Drawn]:
    """Each list with the texts of its pools that the classifier at `depth` scores highest."""
    pools = [(each.question, *pool) for each in drawn for pool in each.pools]
    if not any(len(own) for _, own, _ in pools):
        return list(drawn)
    sizes = [len(own) for _, own, _ in pools]
    first = np.repeat([question for question, _, _ in pools], sizes)
    second = np.concatenate([own for _, own, _ in pools])
    scores = score_pairs(
        network, texts.table, texts.template, first, second, limit=LIMIT, deepest=depth
    )[-1]
    hardest = (
        own[np.argsort(-part, kind="stable")[:keep]]
        for (_, own, keep), part in zip(pools, np.split(scores, np.cumsum(sizes)[:-1]), strict=True)
    )
    return [
        each.plus(np.concatenate([next(hardest) for _ in each.pools])) if each.pools else each
        for each in drawn
    ]


def pieces(
    table: TokenTable, drawn: Sequence[Drawn], reading: Reading | None, budget: int
) -> list[Piece]:
    """A step in parts of whole lists whose tokens fit the budget, at least one list in each."""
    cost = [
        len(each.candidates) * int(table.lengths(np.array([each.question]))[0])
        + int(table.lengths(each.candidates).sum())
        for each in drawn
    ]
    total = sum(cost) + (0 if reading is None else int(reading.window.length.sum()))
    count = min(len(drawn), -(-total // budget))
    cuts = np.linspace(0, len(drawn), count + 1).astype(int)
    examples = 0 if reading is None else len(reading.questions)
    marks = np.linspace(0, examples, count + 1).astype(int)
    return [
        Piece(
            drawn[cuts[at] : cuts[at + 1]],
            _part(reading, slice(marks[at], marks[at + 1])) if reading is not None else None,
            (cuts[at + 1] - cuts[at]) / len(drawn),
        )
        for at in range(count)
    ]


def piece_loss(
    network: CascadeNetwork,
    texts: Texts,
    piece: Piece,
    objective: CascadeObjective,
    teacher: CascadeNetwork | None = None,
) -> Tensor:
    """The part of the step's loss that a piece has."""
    device = next(network.parameters()).device
    batch = _batch(texts, piece, device)
    lists, known = batch.lists, None
    if teacher is not None:
        only = torch.arange(batch.pairs, device=device)
        with torch.no_grad():
            known = teacher(batch.packed.keep(only)[0])
        lists = lists._replace(teacher=known.scores[-1].float())
    found = network(batch.packed)
    loss = objective(found.scores[:, : batch.pairs].float(), lists)
    if known is not None and objective.anchor:
        loss = loss + objective.apart(found.first[: batch.pairs], known.first)
    if found.ends is not None and objective.reading:
        told = reading_loss(found.ends, batch.packed, batch.spans, batch.weights)
        loss = loss + objective.reading * told
    return loss * piece.share


def _batch(texts: Texts, piece: Piece, device: torch.device) -> _Batch:
    drawn, reading = piece.lists, piece.reading
    sizes = [len(each.candidates) for each in drawn]
    pairs = sum(sizes)
    first = np.repeat([each.question for each in drawn], sizes)
    second = np.concatenate([each.candidates for each in drawn])
    labels = np.concatenate([each.labels for each in drawn])
    spans = np.concatenate([each.spans for each in drawn])
    window = _whole(texts, first, second)
    weights = np.where(spans[:, 0] >= 0, SENTENCE, np.where(labels > 0, 0.0, NOTHING))
    weights[spans[:, 1] >= window.length] = 0.0  # the answer was cut off
    spans[spans[:, 1] >= window.length] = -1
    limit = LIMIT
    if reading is not None:
        first = np.concatenate([first, reading.questions])
        second = np.concatenate([second, reading.paragraphs])
        spans = np.concatenate([spans, reading.spans])
        weights = np.concatenate([weights, np.ones(len(reading.questions))])
        window = Window(
            np.concatenate([window.start, reading.window.start]),
            np.concatenate([window.length, reading.window.length]),
        )
        limit = _UNLIMITED  # the windows are within theirs
    packed = pack(
        texts.table, first, second, texts.template, limit=limit, window=window, device=device
    )
    owners = np.repeat(np.arange(len(drawn)), sizes)
    told, whose, where, weigh = (
        torch.from_numpy(array).to(device, non_blocking=True)
        for array in (labels, owners, spans, weights.astype(np.float32))
    )
    return _Batch(packed, pairs, Lists(told, whose, len(drawn)), where, weigh)


def _whole(texts: Texts, first: Rows, second: Rows) -> Window:
    """The whole of each candidate, as far as it fits."""
    room = room_beside(texts.table, first, texts.template, LIMIT)
    return Window(np.zeros(len(second), np.int64), np.minimum(texts.table.lengths(second), room))


def _part(reading: Reading, part: slice) -> Reading:
    window = Window(reading.window.start[part], reading.window.length[part])
    return Reading(reading.questions[part], reading.paragraphs[part], window, reading.spans[part])
