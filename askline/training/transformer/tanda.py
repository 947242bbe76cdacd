"""Transfer, then adapt, as one call over question sets: what `askline train transformer` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from ...data import select
from ...errors import InputError
from ...types import QuestionSet
from ..recipe import Epoch
from .averaging import blend
from .crew import Crew
from .journal import Step
from .loop import Dev, Phase, TransformerRecipe, train_transformer
from .negatives import Negatives
from .network import PairNetwork
from .objectives import Objective
from .sampling import Part, Plan, SampledLists
from .texts import encode_pairs

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
    plan: Plan = field(default_factory=Plan)
    """Of the transfer lists, where they get negatives from elsewhere."""

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
    negatives: Path | None = None,
    checkpoint: Path | None = None,
    crew: Crew | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    on_step: Callable[[Step], None] = lambda _: None,
    on_note: Callable[[str], None] = lambda _: None,
) -> tuple[Epoch, ...]:
    """
    Train the network in place on one set, or on several as if they were one, or on both steps.

    The transfer step takes questions with an answer, the adapt step all that have candidates. With
    `negatives`, a file that is made where it is not there yet, the transfer lists are drawn anew
    for every step, with sentences from elsewhere (`SampledLists`).
    """
    phases = []
    if transfer:
        joined = tuple(question for part in transfer for question in select(part, "answerable"))
        name = " + ".join(part.name for part in transfer)
        if negatives is None:
            own = QuestionSet(name, joined)
            phases.append(_phase(own, tokeniser, how.transfer, how.max_tokens))
        else:
            mined = Negatives.at(negatives, joined)
            lists = SampledLists(name, [Part(joined, how.plan)], mined, tokeniser)
            phases.append(Phase(lists, how.transfer))
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
        network,
        phases,
        dev=held,
        checkpoint=checkpoint,
        crew=crew,
        on_epoch=on_epoch,
        on_step=on_step,
        on_note=on_note,
    )
    if how.share < 1:
        network.load_state_dict(blend(start, network.state_dict(), how.share))
    return history


def _phase(
    questions: QuestionSet, tokeniser: Any, recipe: TransformerRecipe, max_tokens: int
) -> Phase:
    return Phase(encode_pairs(questions, tokeniser, max_tokens=max_tokens), recipe)
