"""The README of the general model's folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .fit import GeneralRecipe
from .sets import PLANS, SETS, TALK

__all__ = ["card"]


def card(init: str, recipe: GeneralRecipe, plan: str = "chosen") -> str:
    """Markdown: what it was made of, under which licences, and how to make it again."""
    lines = [
        "# general",
        "",
        "Scores a candidate sentence as the answer to a question: one number, higher is better,",
        "and its sigmoid is a chance. A sentence-transformers CrossEncoder folder.",
        "",
        f"- Started from: {Path(init).name}",
        f"- Trained on: {', '.join(SETS)}",
        "- Licences of that data: SQuADShifts CC BY 4.0, SQuAD CC BY-SA 4.0",
        f"- Lists: {PLANS[plan]}; for reviews and forum posts {TALK}",
        f"- Each run: {recipe.transfer}",
        f"- Weights: the mean of {len(recipe.seeds)} runs (seeds {_listed(recipe.seeds)}), "
        f"{recipe.share} of the way from the start",
        "- No question of WikiQA, TrecQA, SelQA or SQuAD dev was trained on.",
        "",
        "```",
        f"python -m askline.training.general --data DATA --init {Path(init).name} "
        f"--plan {plan} --share {recipe.share:g} --out DIR",
        "```",
        "",
    ]
    return "\n".join(lines)


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
