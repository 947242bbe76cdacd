"""Make the shipped filter again: data folder in, model folder out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import torch

from ... import data
from ...models.folder import write_folder
from ...models.light_config import FilterLayout
from ...models.word_vectors import WordVectors
from ...types import QuestionSet
from .card import card
from .fit import FilterRecipe, fit, tensors_of
from .lists import Example, Vocabulary, examples

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
    """Train the first-stage filter on openly licensed sets and write its folder."""
    torch.set_num_threads(threads)
    vectors, vocabulary, recipe = WordVectors.load(), Vocabulary(), FilterRecipe(seed=seed)
    lists: list[Example] = []
    for number, group in enumerate(GROUPS):
        sets = [_part(data.load(name, root=root)) for name in group]
        drawn = examples(sets, vectors, vocabulary, seed=number)
        with click.progressbar(drawn, sum(map(len, sets)), label=", ".join(group)) as bar:
            lists.extend(bar)
    layout = FilterLayout(dimensions=vectors.dimensions)
    with click.progressbar(length=100, label="Training") as bar:
        tell = lambda step, steps, _: bar.update(100 * step // steps - bar.pos)  # noqa: E731
        network = fit(lists, vocabulary.table(vectors), layout, recipe, tell=tell)
    names = [name for group in GROUPS for name in group]
    text = card(layout, recipe, questions=len(lists), sets=names)
    tensors = tensors_of(network)
    folder = write_folder(
        Path(out), config=layout.as_config(), tensors=tensors, card=text, vectors=vectors
    )
    click.echo(f"Wrote {folder}.", err=True)


if __name__ == "__main__":
    main()
