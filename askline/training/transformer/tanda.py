"""Transfer, then adapt, as one call over question sets: what `askline train transformer` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from ...data import select
from ...errors import InputError
from ...types import QuestionSet
from ..recipe import Epoch
from .averaging import blend
from .loop import Dev, Phase, TransformerRecipe, train_transformer
from .network import PairNetwork
from .objectives import Objective
from .pairs import encode_pairs

__all__ = ["ADAPT", "TRANSFER", "Tanda", "tanda"]

TRANSFER = TransformerRecipe()
ADAPT = TransformerRecipe(Objective(point=1.0, list=0.0), epochs=3, rate=3e-5, batch=16)
"""Points, so that WikiQA's 1,245 questions without an answer teach too: best on its dev set."""


@dataclass(frozen=True, slots=True)
class Tanda:
    """How to go through the sets."""

    transfer: TransformerRecipe = TRANSFER
    adapt: TransformerRecipe = ADAPT
    share: float = 1.0
    """How far to go from the start to what was trained; 0.8 did best where lists are long."""
    max_tokens: int = 256

    def with_seed(self, seed: int) -> Tanda:
        """The same with another seed in both steps."""
        return replace(
            self, transfer=replace(self.transfer, seed=seed), adapt=replace(self.adapt, seed=seed)
        )


def tanda(
    network: PairNetwork,
    tokeniser: Any,
    how: Tanda,
    *,
    transfer: Sequence[QuestionSet] = (),
    adapt: QuestionSet | None = None,
    dev: QuestionSet | None = None,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train the network in place on one set, or on several as if they were one, or on both steps.

    The transfer step takes questions with an answer, the adapt step all that have candidates.
    """
    phases = []
    if transfer:
        joined = tuple(question for part in transfer for question in select(part, "answerable"))
        name = " + ".join(part.name for part in transfer)
        phases.append(_phase(QuestionSet(name, joined), tokeniser, how.transfer, how.max_tokens))
    if adapt is not None:
        kept = tuple(question for question in adapt if question.candidates)
        phases.append(_phase(QuestionSet(adapt.name, kept), tokeniser, how.adapt, how.max_tokens))
    if not phases:
        raise InputError("Expected a set to transfer from or to adapt to, got neither.")
    held = None
    if dev is not None:
        answerable = select(dev, "answerable")
        held = Dev(answerable, encode_pairs(answerable, tokeniser, max_tokens=how.max_tokens))
    start: Mapping[str, Tensor] = deepcopy(network.state_dict()) if how.share < 1 else {}
    history = train_transformer(
        network, phases, dev=held, checkpoint=checkpoint, on_epoch=on_epoch, on_note=on_note
    )
    if how.share < 1:
        network.load_state_dict(blend(start, network.state_dict(), how.share))
    return history


def _phase(
    questions: QuestionSet, tokeniser: Any, recipe: TransformerRecipe, max_tokens: int
) -> Phase:
    return Phase(encode_pairs(questions, tokeniser, max_tokens=max_tokens), recipe)
