"""
How a cascade is trained, apart from what it is and on what.

One training step: lists and paragraphs as one packed batch, and its loss.

Transfer and adapt a cascade, resumable after each epoch.

Each `Phase` is a set with a recipe of its own; the weights go on from one to the next, the
optimiser does not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import InputError
from ..checkpoint import Checkpoint, Epoch
from ..losses import CascadeObjective, Lists
from ..optimizer import slanted_triangular
from ..packing import Packed, PairTemplate, Rows, TokenTable, Window, pack
from .cascade_examples import LIMIT, Drawn, ListSource
from .cascade_network import CascadeNetwork, Dev, measure, score_pairs
from .span_reading import Reading, ReadingSet, reading_loss, room_beside

__all__ = [
    "ADAPT",
    "FIT",
    "TRANSFER",
    "CascadeRecipe",
    "Phase",
    "Piece",
    "Texts",
    "add_mined",
    "anchored",
    "piece_loss",
    "pieces",
    "train_cascade",
]


@dataclass(frozen=True, slots=True)
class CascadeRecipe:
    """AdamW under a triangular rate; research/notes/cascade.md has what chose the values."""

    objective: CascadeObjective = field(default_factory=CascadeObjective)
    epochs: int = 2
    rate: float = 8e-5
    """The peak of the learning rate."""
    head_rate: float = 2.0
    """How many times as much the classifiers and the reader take."""
    batch: int = 48
    """Lists a step."""
    paragraphs: int = 48
    """Paragraphs a step, for the reader."""
    seconds: float = math.inf
    """Of training, when the rate is at its lowest and the phase ends, whatever is left of it."""
    tokens: int = 65_536
    """Held at once; a step of more is split and its gradients are added up."""
    frozen: bool = False
    """Whether only the classifiers and the reader learn, and the encoder stays as it is."""
    dropout: bool = True
    """Whether the encoder's states are dropped out while it learns; classifiers' always are."""
    keep_last: bool = False
    """Whether the last classifier stays as the start has it."""
    decay: float = 0.01
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "rate", "head_rate", "seconds", "tokens", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}.")
        for name in ("decay", "seed", "paragraphs"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}.")


FIT = CascadeRecipe(epochs=1, rate=1e-3, batch=192, paragraphs=96, frozen=True)
"""Before the transfer: new classifiers learn what the encoder already tells them."""
TRANSFER = CascadeRecipe()
ADAPT = CascadeRecipe(
    CascadeObjective(point=1.0, teach=0.0, from_teacher=0.0, reading=0.0),
    epochs=3,
    rate=3e-5,
    head_rate=1.0,
    batch=16,
    paragraphs=0,
)
"""Lists as they stand; no teacher, which knows less of the new set than its labels do."""


def anchored(recipe: CascadeRecipe) -> CascadeRecipe:
    """
    The same with full depth held to what the start, which teaches, makes of a pair.

    The start's own classifier stays. What it reads is learnt from the teacher, and nothing that
    would draw it elsewhere: no label at the last depth, no dropout, no reader.
    """
    objective = replace(recipe.objective, teach=1.0, anchor=100.0, reading=0.0)
    return replace(recipe, objective=objective, dropout=False, keep_last=True, paragraphs=0)


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


_SMALLEST_BUDGET = 512
_FINE = 10**6  # parts of the whole that progress is counted in


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What to learn from and how."""

    lists: ListSource
    recipe: CascadeRecipe
    reading: ReadingSet | None = None
    """Its text numbers go on after those of the lists."""
    teacher: CascadeNetwork | None = None
    """A fixed network whose last classifier teaches."""

    @property
    def texts(self) -> Texts:
        """Of lists and paragraphs together."""
        table = self.lists.table
        return Texts(
            table if self.reading is None else table + self.reading.table, self.lists.template
        )


def train_cascade(
    network: CascadeNetwork,
    phases: Sequence[Phase],
    *,
    dev: Dev | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[int, int], None] = lambda _done, _of: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train in place; the network ends with the weights of the last epoch.

    Epochs are numbered through all phases, and `dev` is measured at every depth after each. Where
    the file `checkpoint` exists, training goes on after the epochs it holds, and on a CPU it ends
    with the same weights as if it had not been broken off. When a GPU runs out of memory the step
    is tried again in smaller pieces; `on_note` says so. A recipe with a time limit is not the same
    twice.
    """
    if not phases:
        raise InputError("Expected at least one set to train on, got none.")
    device = next(network.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        loop = _Loop(network, phases, dev, on_note)
        if checkpoint is not None and checkpoint.exists():
            loop.restore(checkpoint)
        while loop.at < loop.total:
            loop.epoch(on_step)
            if checkpoint is not None:
                loop.state().save(checkpoint)
            on_epoch(loop.history[-1])
    network.requires_grad_(True).eval()
    return tuple(loop.history)


class _Loop:
    """What changes from epoch to epoch."""

    def __init__(
        self,
        network: CascadeNetwork,
        phases: Sequence[Phase],
        dev: Dev | None,
        on_note: Callable[[str], None],
    ) -> None:
        self.network, self.phases, self.dev, self.on_note = network, phases, dev, on_note
        self.total = sum(phase.recipe.epochs for phase in phases)
        self.history: list[Epoch] = []
        self.budget = min(phase.recipe.tokens for phase in phases)
        self.optimiser = self._new_optimiser(phases[0].recipe)
        self.texts = phases[0].texts

    @property
    def at(self) -> int:
        """Epochs done."""
        return len(self.history)

    def epoch(self, on_step: Callable[[int, int], None]) -> None:
        """One pass over the set of the phase at hand, in an order of its own, then dev."""
        phase, within = self._place(self.at)
        recipe = phase.recipe
        self.texts = phase.texts
        if within == 0 and self.at:
            self.optimiser = self._new_optimiser(recipe)
        # Seeded here, not once for all: see Checkpoint.
        random = np.random.default_rng((recipe.seed, self.at))
        order = random.permutation(len(phase.lists))
        torch.manual_seed(int(random.integers(2**63)))
        start = time.perf_counter()
        self._wake(recipe)
        steps = [order[at : at + recipe.batch] for at in range(0, len(order), recipe.batch)]
        total = recipe.epochs * len(steps)
        losses: list[Tensor] = []
        spent = sum(epoch.seconds for epoch in self.history[self.at - within :])
        for number, chosen in enumerate(steps, within * len(steps)):
            clock = (spent + time.perf_counter() - start) / recipe.seconds
            if clock >= 1 and losses:
                break
            done = min(1.0, max(number / total, clock))
            self._set_rate(recipe, slanted_triangular(round(done * _FINE), _FINE))
            losses.append(self._step(phase, chosen, random))
            on_step(number + 1, total)
        mean = float(torch.stack(losses).mean())  # read once: reading each would wait for the GPU
        seconds = time.perf_counter() - start
        measured = measure(self.network, self.dev) if self.dev else {}
        self.history.append(Epoch(self.at + 1, mean, seconds, measured))

    def _step(self, phase: Phase, chosen: NDArray[np.int64], random: np.random.Generator) -> Tensor:
        recipe = phase.recipe
        drawn = [phase.lists.draw(place, random) for place in chosen.tolist()]
        # Another classifier's hard texts in every step, so that each meets its own.
        depth = int(random.choice(self.network.shape.depths))
        drawn = add_mined(self.network, self.texts, drawn, depth=depth)
        reading = _reading(phase, random)
        while True:
            try:
                loss = self._gradients(phase, drawn, reading)
                break
            except torch.cuda.OutOfMemoryError:
                if self.budget // 2 < _SMALLEST_BUDGET:
                    raise
                self.budget //= 2
                torch.cuda.empty_cache()
                self.on_note(f"Out of memory: going on with {self.budget} tokens at once.")
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), recipe.clip)
        self.optimiser.step()
        return loss

    def _gradients(self, phase: Phase, drawn: Sequence[Drawn], reading: Reading | None) -> Tensor:
        """The gradients of a whole step, added up over its pieces."""
        self.optimiser.zero_grad()
        losses = []
        for piece in pieces(self.texts.table, drawn, reading, self.budget):
            part = piece_loss(
                self.network, self.texts, piece, phase.recipe.objective, phase.teacher
            )
            part.backward()  # type: ignore[no-untyped-call]
            losses.append(part.detach())
        return torch.stack(losses).sum()

    def _wake(self, recipe: CascadeRecipe) -> None:
        """Into training, all of the network or all but its encoder."""
        self.network.train()
        self.network.encoder.train(recipe.dropout and not recipe.frozen)
        self.network.encoder.requires_grad_(not recipe.frozen)
        last = self.network.classifiers[str(self.network.shape.depths[-1])]
        last.train(not recipe.keep_last).requires_grad_(not recipe.keep_last)

    def _set_rate(self, recipe: CascadeRecipe, share: float) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = recipe.rate * share * group["times"]

    def _place(self, number: int) -> tuple[Phase, int]:
        """The phase of an epoch, both counted from 0, and the epoch's place in it."""
        for phase in self.phases:
            if number < phase.recipe.epochs:
                return phase, number
            number -= phase.recipe.epochs
        raise AssertionError("no epoch is left")  # pragma: no cover

    def _new_optimiser(self, recipe: CascadeRecipe) -> torch.optim.Optimizer:
        groups = []
        for matrix in (True, False):  # biases and norms are not decayed
            for head in (True, False):
                chosen = [
                    weight
                    for name, weight in self.network.named_parameters()
                    if (weight.ndim > 1) == matrix and name.startswith("encoder.") != head
                    if head or not recipe.frozen
                ]
                decay = recipe.decay if matrix else 0.0
                times = recipe.head_rate if head else 1.0
                groups.append({"params": chosen, "weight_decay": decay, "times": times})
        fused = next(self.network.parameters()).device.type == "cuda"
        return torch.optim.AdamW(groups, lr=recipe.rate, eps=1e-6, fused=fused)

    def _settings(self) -> str:
        return f"{self.network.shape}; " + "; ".join(
            f"{phase.recipe} on {len(phase.lists)} questions of {phase.lists.name}"
            for phase in self.phases
        )

    def state(self) -> Checkpoint:
        """All that the next epoch depends on."""
        return Checkpoint(
            self._settings(),
            self.network.state_dict(),
            self.optimiser.state_dict(),
            tuple(self.history),
            None,
        )

    def restore(self, path: Path) -> None:
        """Go back to where `state` was taken."""
        found = Checkpoint.load(path, settings=self._settings())
        self.network.load_state_dict(dict(found.network))
        self.history = list(found.history)
        if self.at < self.total and self._place(self.at)[1] > 0:
            self.optimiser.load_state_dict(dict(found.optimiser))


def _reading(phase: Phase, random: np.random.Generator) -> Reading | None:
    if phase.reading is None or not phase.recipe.paragraphs:
        return None
    rows = random.integers(len(phase.reading), size=phase.recipe.paragraphs)
    return phase.reading.draw(rows, random).after(len(phase.lists.table))
