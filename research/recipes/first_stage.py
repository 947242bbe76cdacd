"""
Train the first stage that ships with askline, from openly licensed sets.

    python -m research.recipes.first_stage --data DIR --out DIR

The network and its training are in `askline.training.light.first_stage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import torch

from askline import data
from askline.models.folder import write_folder
from askline.models.light_config import FEATURES, FirstStageConfig
from askline.models.word_vectors import WordVectors
from askline.training.light.first_stage import (
    FirstStageExample,
    FirstStageRecipe,
    Vocabulary,
    first_stage_examples,
    train_first_stage,
)
from askline.training.light.light_training import tensors_of
from askline.types import QuestionSet

__all__ = ["card"]


def card(
    layout: FirstStageConfig, recipe: FirstStageRecipe, *, questions: int, sets: Sequence[str]
) -> str:
    """What the model is, what it was made of, and how to make it again; measures are added."""
    settings = (
        f"epochs {recipe.epochs}, rate {recipe.learning_rate}, batch {recipe.batch_size}, "
        f"dropout {recipe.dropout}, decay {recipe.weight_decay}, seed {recipe.seed}"
    )
    return f"""# cosinet: the first stage shipped with askline

A fast first stage for English. It ranks the sentence that answers a question among the first of up
to thousands of candidates, in any order, so that a slower ranker can choose from the best ones.

- Cosinet's two convolutions (Bonadiman & Moschitti, 2020) with {layout.filters} filters of width
  {layout.width} over frozen {layout.dimensions}-dimensional word vectors, [q*c ; q-c];
- learned weights of the question's words, times the best match of each word in the candidate;
- {len(FEATURES)} lexical features, among them BM25 and bigrams;
- feedback: similarity to the best candidates, with a weight that grows with the list's length.

A score depends on the whole list, because word frequencies are counted in it, but not on its order.

## Data and licenses

Trained on {questions:,} questions of {", ".join(f"`{name}`" for name in sets)}: SQuADShifts (CC BY
4.0) and SQuAD 1.1 (CC BY-SA 4.0), each question with the sentences of its paragraph, alone or among
up to 300 others of the same source. No WikiQA, no TrecQA, no SQuAD dev.

Word vectors: distilled from `sentence-transformers/all-MiniLM-L6-v2` (Apache-2.0), which encoded
each of the 80,000 most frequent words of GloVe 6B's list (PDDL) by itself; reduced by principal
components, in int8. An unknown word gets a pseudo-random vector derived from its characters, which
is similar only to itself.

## Recipe

Softmax over the list, {settings}. To train it again:

    python -m research.recipes.first_stage --data DIR --out DIR
"""


GROUPS = (
    ("squadshifts:new_wiki", "squadshifts:reddit"),
    ("squadshifts:amazon", "squad1:train", "squad-pairs:train"),
)
"""Openly licensed, and none of them a test set. A group's number is the seed of its lists."""


def _part(questions: QuestionSet) -> QuestionSet:
    """Half of the lone pairs: they are many, and have no paragraph to be chosen from."""
    if questions.name != "squad-pairs:train":
        return questions
    return replace(questions, questions=questions.questions[::2])


@click.command()
@click.option("--data", "root", type=click.Path(exists=True, file_okay=False), required=True)
@click.option("--out", type=click.Path(file_okay=False), required=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--seed", default=0, show_default=True, help="The shipped one has 0.")
def main(root: str, out: str, threads: int, seed: int) -> None:
    """Train the first stage on openly licensed sets and write its folder."""
    torch.set_num_threads(threads)
    vectors, vocabulary, recipe = WordVectors.load(), Vocabulary(), FirstStageRecipe(seed=seed)
    lists: list[FirstStageExample] = []
    for number, group in enumerate(GROUPS):
        sets = [_part(data.load_dataset(name, root=root)) for name in group]
        drawn = first_stage_examples(sets, vectors, vocabulary, seed=number)
        with click.progressbar(drawn, sum(map(len, sets)), label=", ".join(group)) as bar:
            lists.extend(bar)
    layout = FirstStageConfig(dimensions=vectors.dimensions)
    with click.progressbar(length=100, label="Training") as bar:
        trained = train_first_stage(
            lists,
            vocabulary,
            vectors,
            layout,
            recipe,
            name=", ".join(name for group in GROUPS for name in group),
            on_step=lambda step: bar.update(100 * step.done // step.total - bar.pos),
        )
    names = [name for group in GROUPS for name in group]
    text = card(layout, recipe, questions=len(lists), sets=names)
    tensors = tensors_of(trained.network)
    folder = write_folder(
        Path(out), config=layout.to_config(), tensors=tensors, card=text, vectors=vectors
    )
    click.echo(f"Wrote {folder}.", err=True)


if __name__ == "__main__":
    main()
