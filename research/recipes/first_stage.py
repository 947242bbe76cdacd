"""
Train the first-stage filter that ships with askline, from openly licensed sets.

    python -m research.recipes.first_stage --data DIR --out DIR

`askline.engine.cosinet_network` runs the filter without torch. Its relevance feedback, which needs
the whole list, has no parameters and is not part of this network.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from askline import data
from askline.models.folder import write_folder
from askline.models.light_config import (
    COVERAGE_SCALE,
    FEATURES,
    FIRST_STAGE_CHANNELS,
    FirstStageConfig,
)
from askline.models.word_vectors import WordVectors
from askline.training.light.encoded_questions import PaddedTexts
from askline.training.light.light_layers import PooledConvolution
from askline.training.loop import SeededOnceTask, TrainingRecipe, TrainingStep, run_training
from askline.training.optimizer import AdamW, Optimizer, ParameterGroup
from askline.types import QuestionSet

from .first_stage_examples import Example, Vocabulary, examples

__all__ = [
    "Filter",
    "FilterBatch",
    "FilterRecipe",
    "card",
    "fit",
    "tensors_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class FilterBatch:
    """Examples, padded: questions to one length, lists to one size, candidates to one length."""

    features: Tensor  # (lists, candidates, features)
    present: Tensor  # (lists, candidates) bool
    answer: Tensor  # (lists, candidates) bool
    log_weight: Tensor  # (lists, candidates)
    asked: Tensor  # (lists, question words)
    in_question: Tensor  # (lists, question words) float
    scarcity: Tensor  # (lists, question words)
    best: Tensor  # (lists, candidates, question words)
    exact: Tensor  # (lists, candidates, question words)
    said: Tensor  # (lists, candidates, words)
    in_candidate: Tensor  # (lists, candidates, words) float
    related: Tensor  # (lists, candidates, words)

    @classmethod
    def of(cls, examples: Sequence[Example]) -> FilterBatch:
        """Pad with zeros."""
        lists = len(examples)
        most = max(len(one.features) for one in examples)
        asked = max(len(one.asked) for one in examples)
        said = max(len(words) for one in examples for words in one.said)
        wide = {
            "features": np.zeros((lists, most, len(FEATURES)), np.float32),
            "present": np.zeros((lists, most), np.bool_),
            "answer": np.zeros((lists, most), np.bool_),
            "log_weight": np.zeros((lists, most), np.float32),
            "asked": np.zeros((lists, asked), np.int64),
            "in_question": np.zeros((lists, asked), np.float32),
            "scarcity": np.zeros((lists, asked), np.float32),
            "best": np.zeros((lists, most, asked), np.float32),
            "exact": np.zeros((lists, most, asked), np.float32),
            "said": np.zeros((lists, most, said), np.int64),
            "in_candidate": np.zeros((lists, most, said), np.float32),
            "related": np.zeros((lists, most, said), np.float32),
        }
        for row, one in enumerate(examples):
            _fill(wide, row, one)
        return cls(**{name: torch.from_numpy(value) for name, value in wide.items()})


def _fill(wide: dict[str, np.ndarray], row: int, one: Example) -> None:
    size, asked = one.best.shape
    for name in ("features", "log_weight"):
        wide[name][row, :size] = getattr(one, name)
    wide["present"][row, :size] = True
    wide["answer"][row, : one.answers] = True
    for name in ("asked", "scarcity"):
        wide[name][row, :asked] = getattr(one, name)
    wide["in_question"][row, :asked] = 1
    for name in ("best", "exact"):
        wide[name][row, :size, :asked] = getattr(one, name)
    for place, (words, related) in enumerate(zip(one.said, one.related, strict=True)):
        wide["said"][row, place, : len(words)] = words
        wide["in_candidate"][row, place, : len(words)] = 1
        wide["related"][row, place, : len(words)] = related


class Filter(nn.Module):
    """Direct features, learned weights for question words, and Cosinet's two convolutions."""

    mean: Tensor
    scale: Tensor

    def __init__(self, layout: FirstStageConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        own, around = layout.dimensions, layout.width // 2
        self.register_buffer("mean", torch.zeros(len(FEATURES)))
        self.register_buffer("scale", torch.ones(len(FEATURES)))
        self.terms = nn.Conv1d(own + 2, layout.terms, 3, padding=1)
        self.weights = nn.Linear(layout.terms, 3)
        shape = layout.filters, layout.width
        self.candidate = PooledConvolution(own, FIRST_STAGE_CHANNELS, *shape)
        self.question = nn.Conv1d(own + 1, *shape, padding=around)
        self.hidden = nn.Linear(layout.inputs, layout.hidden)
        self.score = nn.Linear(layout.hidden, 1)
        self.direct = nn.Linear(len(FEATURES), 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: FilterBatch, vectors: Tensor, rarity: Tensor) -> Tensor:
        """(lists, candidates)."""
        direct = (batch.features - self.mean) / self.scale
        asked = vectors[batch.asked]  # (lists, question words, dimensions)
        rare = rarity[batch.asked]
        question = self._question(asked, rare, batch.in_question)[:, None]
        candidate = self._candidates(batch, vectors, rarity)
        pairs = torch.cat([question * candidate, question - candidate], 2)
        seen = [direct, self._coverages(batch, asked, rare), self.dropout(pairs)]
        hidden = self.hidden(torch.cat(seen, 2)).relu()
        scores: Tensor = self.score(hidden)[..., 0] + self.direct(direct)[..., 0]
        return scores

    def _coverages(self, batch: FilterBatch, asked: Tensor, rare: Tensor) -> Tensor:
        inputs = torch.cat([asked, rare[..., None], batch.scarcity[..., None]], 2)
        inside = batch.in_question[..., None]
        hidden = self.terms((inputs * inside).transpose(1, 2)).tanh().transpose(1, 2)
        weights = F.softplus(self.weights(hidden)) * inside  # (lists, question words, coverages)
        weights = weights / (weights.sum(1, keepdim=True) + 1e-3)
        squared = batch.best**2
        met = [
            (part @ weights[..., column : column + 1])[..., 0]
            for column, part in enumerate((squared, squared**2, batch.exact))
        ]
        return torch.stack(met, 2) * COVERAGE_SCALE

    def _question(self, asked: Tensor, rare: Tensor, inside: Tensor) -> Tensor:
        inputs = torch.cat([self.dropout(asked), rare[..., None]], 2) * inside[..., None]
        values = self.question(inputs.transpose(1, 2))  # (lists, filters, question words)
        pooled: Tensor = values.masked_fill(inside[:, None] == 0, -torch.inf).amax(2)
        return pooled

    def _candidates(self, batch: FilterBatch, vectors: Tensor, rarity: Tensor) -> Tensor:
        words, inside = batch.said[batch.present], batch.in_candidate[batch.present]
        related = batch.related[batch.present]  # (pairs, words)
        exact = (related > 0.995).float()  # no other word than the very one comes so near
        rare = rarity[words] * inside
        beside = torch.stack([related, exact, rare, exact * rare], 2)
        distinct, number = torch.unique(F.pad(words.flatten(), (1, 0)), return_inverse=True)
        texts = PaddedTexts(vectors[distinct], number[1:].view_as(words), inside.sum(1).long())
        found = self.candidate(texts, beside)  # (pairs, filters)
        pooled = vectors.new_zeros(*batch.present.shape, found.shape[1])
        pooled[batch.present] = found
        return pooled


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRecipe(TrainingRecipe):
    """The values that the shipped filter was trained with; chosen on dev sets."""

    epochs: int = 2
    learning_rate: float = 2e-3
    batch_size: int = 32
    dropout: float = 0.1
    weight_decay: float = 1e-4


class _FilterTask(SeededOnceTask[list[int]]):
    """Lists of similar size are batched together."""

    recipe: FilterRecipe
    network: Filter

    def __init__(
        self,
        network: Filter,
        lists: Sequence[Example],
        table: tuple[NDArray[np.float32], NDArray[np.float32]],
        recipe: FilterRecipe,
    ) -> None:
        self.network, self.recipe, self._lists = network, recipe, lists
        self._vectors, self._rarity = (torch.from_numpy(part) for part in table)
        self._draw = random.Random(recipe.seed)

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self._lists) // self.recipe.batch_size)

    def seed_run(self) -> np.random.Generator:
        """Torch was seeded before the network was created."""
        return np.random.default_rng(self.recipe.seed)

    def new_optimizer(self) -> Optimizer:
        rate, decay = self.recipe.learning_rate, self.recipe.weight_decay
        return AdamW(self.network, [ParameterGroup(list(self.network.parameters()), rate, decay)])

    def batches(self, epoch: int, random: np.random.Generator) -> list[list[int]]:  # noqa: ARG002
        return _batches(self._lists, self.recipe.batch_size, self._draw)

    def loss(self, part: list[int]) -> Tensor:
        batch = FilterBatch.of([self._lists[place] for place in part])
        return _loss(self.network(batch, self._vectors, self._rarity), batch)


def fit(
    lists: Sequence[Example],
    table: tuple[NDArray[np.float32], NDArray[np.float32]],
    layout: FirstStageConfig,
    recipe: FilterRecipe,
    *,
    on_step: Callable[[TrainingStep], None] = lambda _: None,
) -> Filter:
    """
    Minimize the negative log of the share of a list's softmax that its answers have.

    `table` holds the vectors and rarities of the lists' vocabulary. One CPU thread is enough.
    """
    torch.manual_seed(recipe.seed)
    network = Filter(layout, dropout=recipe.dropout)
    _initialize(network, lists)
    run_training([_FilterTask(network, lists, table, recipe)], on_step=on_step)
    return network


def tensors_of(network: Filter) -> dict[str, NDArray[np.float32]]:
    """The weights by the names of `FirstStageConfig.shapes`."""
    names = {"mean": "features.mean", "scale": "features.scale"}
    return {
        names.get(name, name): value.numpy().copy() for name, value in network.state_dict().items()
    }


def _initialize(network: Filter, lists: Sequence[Example]) -> None:
    """Features at mean 0 and deviation 1, and a lexical ranker to start from."""
    seen = np.concatenate([one.features for one in lists])
    network.mean.copy_(torch.from_numpy(seen.mean(axis=0)))
    network.scale.copy_(torch.from_numpy(seen.std(axis=0) + 1e-3))
    weight = torch.zeros(len(FEATURES))
    weight[FEATURES.index("covered_here")] = 10.0
    weight[FEATURES.index("bm25")] = 5.0
    with torch.no_grad():
        network.direct.weight.copy_((weight * network.scale)[None])


def _batches(lists: Sequence[Example], size: int, draw: random.Random) -> list[list[int]]:
    order = sorted(
        range(len(lists)), key=lambda place: (len(lists[place].features) // 6, draw.random())
    )
    batches = [order[first : first + size] for first in range(0, len(order), size)]
    draw.shuffle(batches)
    return batches


def _loss(scores: Tensor, batch: FilterBatch) -> Tensor:
    weighed = (scores + batch.log_weight).masked_fill(~batch.present, -1e4)
    shares = weighed.log_softmax(1).masked_fill(~batch.answer, -1e4)
    return -shares.logsumexp(1).mean()


def card(
    layout: FirstStageConfig, recipe: FilterRecipe, *, questions: int, sets: Sequence[str]
) -> str:
    """What the model is, what it was made of, and how to make it again; measures are added."""
    settings = ", ".join(f"{name} {value}" for name, value in asdict(recipe).items())
    return f"""# cosinet: the first stage that comes with askline

A fast filter: it puts the sentence that answers a question among the first of up to thousands of
candidates, whatever order they come in, for a dearer ranker to choose from. English.

- Cosinet's two convolutions (Bonadiman & Moschitti, 2020) with {layout.filters} filters of width
  {layout.width} over frozen {layout.dimensions}-dimensional word vectors, [q*c ; q-c];
- learned weights for the question's words, over the best match that a candidate has for each;
- {len(FEATURES)} direct features, among them BM25 and neighboring words;
- a second look: nearness to what the best candidates say, the more the longer the list.

A score depends on the whole list, for rarity is counted in it, and not on its order.

## Data and licenses

Trained on {questions:,} questions of {", ".join(f"`{name}`" for name in sets)}: SQuADShifts (CC BY
4.0) and SQuAD 1.1 (CC BY-SA 4.0), each question with the sentences of its paragraph, alone or among
up to 300 others of the same source. No WikiQA, no TrecQA, no SQuAD dev.

Word vectors: distilled from `sentence-transformers/all-MiniLM-L6-v2` (Apache-2.0), which encoded
each of the 80,000 most frequent words of GloVe 6B's list (PDDL) by itself; reduced by principal
components, 8 bits a number. A word without a vector gets one made from its letters: it equals
itself and is close to nothing else.

## Recipe

Softmax over the list, {settings}. Make it again:

    python -m research.recipes --data DIR --out DIR
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
    """Train the first-stage filter on openly licensed sets and write its folder."""
    torch.set_num_threads(threads)
    vectors, vocabulary, recipe = WordVectors.load(), Vocabulary(), FilterRecipe(seed=seed)
    lists: list[Example] = []
    for number, group in enumerate(GROUPS):
        sets = [_part(data.load_dataset(name, root=root)) for name in group]
        drawn = examples(sets, vectors, vocabulary, seed=number)
        with click.progressbar(drawn, sum(map(len, sets)), label=", ".join(group)) as bar:
            lists.extend(bar)
    layout = FirstStageConfig(dimensions=vectors.dimensions)
    with click.progressbar(length=100, label="Training") as bar:
        network = fit(
            lists,
            vocabulary.table(vectors),
            layout,
            recipe,
            on_step=lambda step: bar.update(100 * step.done // step.total - bar.pos),
        )
    names = [name for group in GROUPS for name in group]
    text = card(layout, recipe, questions=len(lists), sets=names)
    tensors = tensors_of(network)
    folder = write_folder(
        Path(out), config=layout.to_config(), tensors=tensors, card=text, vectors=vectors
    )
    click.echo(f"Wrote {folder}.", err=True)


if __name__ == "__main__":
    main()
