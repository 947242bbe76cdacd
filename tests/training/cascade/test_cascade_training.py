from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.data import read_paragraphs
from askline.errors import InputError
from askline.training.cascade.cascade_examples import (
    CandidateList,
    WholeCandidateLists,
    span_examples,
)
from askline.training.cascade.cascade_network import (
    CascadeDevSet,
    CascadeNetwork,
    CascadeShape,
    measure,
    score_pairs,
)
from askline.training.cascade.cascade_training import (
    CascadePhase,
    CascadeRecipe,
    add_hard_negatives,
    anchored,
    split_step,
    train_cascade,
)
from askline.training.checkpoint import Epoch
from askline.training.losses import CascadeObjective
from askline.types import QuestionSet

RECIPE = CascadeRecipe(epochs=2, learning_rate=5e-3, batch_size=2, paragraphs=2)
SHAPE = CascadeShape((1, 2, 4))


class KilledError(Exception):
    pass


@pytest.fixture
def phase(tokenizer: Any, questions: QuestionSet, squad_file: Path) -> CascadePhase:
    reading = span_examples(read_paragraphs(squad_file).paragraphs, tokenizer)
    return CascadePhase(WholeCandidateLists(questions, tokenizer), RECIPE, reading)


@pytest.fixture
def dev(tokenizer: Any, questions: QuestionSet) -> CascadeDevSet:
    return CascadeDevSet.of(questions, tokenizer)


def start(folder: Path) -> CascadeNetwork:
    torch.manual_seed(2)
    return CascadeNetwork.start(folder, SHAPE)


def without_dropout(network: CascadeNetwork) -> CascadeNetwork:
    for part in network.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return network


@pytest.mark.slow
def test_training_learns_at_every_depth(
    bert_folder: Path, phase: CascadePhase, dev: CascadeDevSet
) -> None:
    network = start(bert_folder)
    recipe = CascadeRecipe(
        objective=CascadeObjective(distil=0.3), epochs=40, learning_rate=5e-3, batch_size=4
    )
    history = train_cascade(network, [CascadePhase(phase.lists, recipe)], dev=dev)
    assert list(history[0].dev) == [
        *("MAP", "P@1", "MAP at 2", "P@1 at 2", "MAP at 1", "P@1 at 1"),
    ]
    assert history[-1].loss < history[0].loss
    last = measure(network, dev)
    assert last == history[-1].dev
    assert min(last["MAP"], last["MAP at 2"], last["MAP at 1"]) == 100.0


@pytest.mark.slow
def test_interrupted_training_ends_with_the_same_weights(
    tmp_path: Path, bert_folder: Path, phase: CascadePhase, dev: CascadeDevSet
) -> None:
    phases = [phase, CascadePhase(phase.lists, CascadeRecipe(epochs=1, batch_size=3))]
    whole = start(bert_folder)
    expected = train_cascade(whole, phases, dev=dev)
    for stop in (1, 2):  # inside a phase, and between two
        path = tmp_path / f"{stop}.pt"

        def kill(epoch: Epoch, stop: int = stop) -> None:
            if epoch.number == stop:
                raise KilledError

        with pytest.raises(KilledError):
            train_cascade(start(bert_folder), phases, dev=dev, checkpoint=path, on_epoch=kill)
        again = start(bert_folder)
        history = train_cascade(again, phases, dev=dev, checkpoint=path)
        assert [epoch.dev for epoch in history] == [epoch.dev for epoch in expected]
        for name, value in whole.state_dict().items():
            assert torch.equal(value, again.state_dict()[name]), name


def test_gradients_do_not_depend_on_the_token_budget(
    bert_folder: Path, phase: CascadePhase
) -> None:
    results = []
    for tokens in (40, 10_000):
        recipe = CascadeRecipe(
            objective=CascadeObjective(point=0), epochs=1, batch_size=3, max_tokens=tokens
        )
        lists = _Answerable(phase.lists)
        network = without_dropout(start(bert_folder))
        train_cascade(network, [CascadePhase(lists, recipe)])
        results.append(network.state_dict())
    for name, value in results[0].items():
        if name.startswith("encoder."):
            assert torch.allclose(value, results[1][name], atol=2e-4), name


class _Answerable:
    """The first three questions: lists of the same weight in every piece."""

    def __init__(self, source: Any) -> None:
        self.name, self.table, self.template = source.name, source.table, source.template
        self.source = source

    def __len__(self) -> int:
        return 3

    def draw(self, place: int, random: np.random.Generator) -> CandidateList:
        found: CandidateList = self.source.draw(place, random)
        return found


def test_a_time_limit_ends_a_phase(bert_folder: Path, phase: CascadePhase) -> None:
    steps: list[int] = []
    recipe = CascadeRecipe(epochs=3, batch_size=1, max_seconds=1e-6)
    history = train_cascade(
        start(bert_folder),
        [CascadePhase(phase.lists, recipe)],
        on_step=lambda step: steps.append(step.done),
    )
    assert len(history) == 3
    assert steps == [1, 5, 9]  # the first of four in every epoch


def test_a_frozen_encoder_stays_as_it_is(bert_folder: Path, phase: CascadePhase) -> None:
    network = start(bert_folder)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    recipe = CascadeRecipe(epochs=1, learning_rate=1e-2, batch_size=2, paragraphs=2, frozen=True)
    train_cascade(network, [CascadePhase(phase.lists, recipe, phase.paragraphs)])
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]) == name.startswith("encoder."), name
    assert all(weight.requires_grad for weight in network.parameters())


@pytest.mark.slow
def test_an_anchored_cascade_ends_where_it_began_at_full_depth(
    bert_folder: Path, phase: CascadePhase, dev: CascadeDevSet
) -> None:
    def begun() -> CascadeNetwork:
        torch.manual_seed(2)
        return CascadeNetwork.start(bert_folder, CascadeShape((1, 2, 4), "mixed", reader=False))

    teacher = CascadeNetwork.start(bert_folder, CascadeShape((4,), reader=False)).eval()
    pairs = (dev.table, dev.template, dev.first, dev.second)
    wanted, apart = score_pairs(teacher, *pairs)[-1], []
    free = CascadeRecipe(
        objective=CascadeObjective(reading=0.0),
        epochs=20,
        learning_rate=1e-3,
        batch_size=4,
        paragraphs=0,
    )
    for recipe in (anchored(free), free):
        network = begun()
        own = {name: one.clone() for name, one in network.classifiers["4"].state_dict().items()}
        np.testing.assert_allclose(score_pairs(network, *pairs)[-1], wanted, atol=1e-5)
        early = score_pairs(network, *pairs)[0]
        train_cascade(network, [CascadePhase(phase.lists, recipe, teacher=teacher)])
        kept = network.classifiers["4"].state_dict()
        assert all(torch.equal(one, kept[name]) for name, one in own.items()) == recipe.keep_last
        assert np.abs(score_pairs(network, *pairs)[0] - early).max() > 0.02
        apart.append(np.abs(score_pairs(network, *pairs)[-1] - wanted).max())
    assert apart[0] < apart[1] / 2


@pytest.mark.slow
def test_a_cascade_learns_the_scores_of_its_teacher(
    bert_folder: Path, phase: CascadePhase, dev: CascadeDevSet
) -> None:
    teacher = start(bert_folder).eval()
    with torch.no_grad():
        teacher.classifiers["4"].out.weight.neg_()  # type: ignore[union-attr, operator]
    objective = CascadeObjective(distil=1.0, teach=1.0, from_teacher=1.0, reading=0.0)
    recipe = CascadeRecipe(objective=objective, epochs=60, learning_rate=5e-3, batch_size=4)
    network = without_dropout(start(bert_folder))
    train_cascade(network, [CascadePhase(phase.lists, recipe, teacher=teacher)])
    pairs = (dev.table, dev.template, dev.first, dev.second)
    wanted, found = score_pairs(teacher, *pairs)[-1], score_pairs(network, *pairs)
    assert all(np.corrcoef(row, wanted)[0, 1] > 0.9 for row in found)


def test_the_highest_scores_of_each_pool_become_negatives(
    network: CascadeNetwork, tokenizer: Any, phase: CascadePhase
) -> None:
    texts = phase.texts
    pool, other = np.arange(4), np.array([6, 7])
    bare = CandidateList(4, np.array([5]), np.ones(1, np.float32), np.full((1, 2), -1))
    one = bare._replace(pools=((pool, 2), (other[:0], 3), (other, 1)))
    mined, same = add_hard_negatives(network, texts, [one, bare], depth=2)
    scores, more = (
        score_pairs(network, *texts, np.full(len(own), 4), own, deepest=2)[-1]
        for own in (pool, other)
    )
    assert mined.candidates.tolist() == [5, *np.argsort(-scores)[:2], other[np.argmax(more)]]
    assert mined.labels.tolist() == [1, 0, 0, 0]
    assert len(mined.spans) == 4
    assert same.candidates.tolist() == [5]
    assert add_hard_negatives(network, texts, [bare], depth=2) == [bare]


def test_parts_of_a_step_are_a_partition(phase: CascadePhase) -> None:
    random = np.random.default_rng(0)
    drawn = [phase.lists.draw(place, random) for place in range(4)]
    assert phase.paragraphs is not None
    reading = phase.paragraphs.draw(np.arange(4), random)
    parts = split_step(phase.texts.table, drawn, reading, 30)
    assert len(parts) > 1
    assert [id(each) for part in parts for each in part.lists] == [id(each) for each in drawn]
    assert sum(part.share for part in parts) == pytest.approx(1)
    examples = [part.paragraphs for part in parts if part.paragraphs is not None]
    assert sum(len(each.questions) for each in examples) == 4
    assert len(split_step(phase.texts.table, drawn, None, 10**6)) == 1


def test_long_lists_keep_their_answers(tokenizer: Any, questions: QuestionSet) -> None:
    source = WholeCandidateLists(questions, tokenizer, most=2)
    drawn = [source.draw(place, np.random.default_rng(place)) for place in range(len(source))]
    assert [len(each.candidates) for each in drawn] == [2, 2, 2, 1]
    assert [each.labels.sum() for each in drawn] == [1, 1, 1, 0]


def test_the_random_state_of_the_caller_is_restored(bert_folder: Path, phase: CascadePhase) -> None:
    network = start(bert_folder)
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    train_cascade(network, [phase])
    assert torch.rand(1) == expected


def test_wrong_settings_are_refused(tokenizer: Any, bert_folder: Path) -> None:
    with pytest.raises(InputError, match="at least one set"):
        train_cascade(start(bert_folder), [])
    with pytest.raises(InputError, match="epochs must be positive, got 0"):
        CascadeRecipe(epochs=0)
    with pytest.raises(InputError, match="seed must not be negative, got -1"):
        CascadeRecipe(seed=-1)
    with pytest.raises(InputError, match="no question with candidates"):
        WholeCandidateLists(QuestionSet("bare", ()), tokenizer)
    with pytest.raises(InputError, match="no question with an answer"):
        CascadeDevSet.of(QuestionSet("bare", ()), tokenizer)
