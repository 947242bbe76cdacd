"""The card of the shipped filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ...models.light_config import FEATURES, FilterLayout
from .fit import FilterRecipe

__all__ = ["card"]


def card(layout: FilterLayout, recipe: FilterRecipe, *, questions: int, sets: Sequence[str]) -> str:
    """What the model is, what it was made of, and how to make it again; measures are added."""
    settings = ", ".join(f"{name} {value}" for name, value in asdict(recipe).items())
    return f"""# cosinet: the first stage that comes with askline

A fast filter: it puts the sentence that answers a question among the first of up to thousands of
candidates, whatever order they come in, for a dearer ranker to choose from. English.

- Cosinet's two convolutions (Bonadiman & Moschitti, 2020) with {layout.filters} filters of width
  {layout.width} over frozen {layout.dimensions}-dimensional word vectors, [q*c ; q-c];
- learned weights for the question's words, over the best match that a candidate has for each;
- {len(FEATURES)} direct features, among them BM25 and neighbouring words;
- a second look: nearness to what the best candidates say, the more the longer the list.

A score depends on the whole list, for rarity is counted in it, and not on its order.

## Data and licences

Trained on {questions:,} questions of {", ".join(f"`{name}`" for name in sets)}: SQuADShifts (CC BY
4.0) and SQuAD 1.1 (CC BY-SA 4.0), each question with the sentences of its paragraph, alone or among
up to 300 others of the same source. No WikiQA, no TrecQA, no SQuAD dev.

Word vectors: distilled from `sentence-transformers/all-MiniLM-L6-v2` (Apache-2.0), which encoded
each of the 80,000 most frequent words of GloVe 6B's list (PDDL) by itself; reduced by principal
components, 8 bits a number. A word without a vector gets one made from its letters: it equals
itself and is close to nothing else.

## Recipe

Softmax over the list, {settings}. Make it again:

    python -m askline.training.first_stage --data DIR --out DIR
"""
