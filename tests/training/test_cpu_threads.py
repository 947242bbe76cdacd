from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from askline.models.light_config import (
    CompareAggregateConfig,
    CosinetConfig,
    LightConfig,
    RelationalCNNConfig,
)
from askline.models.word_vectors import WordVectors
from askline.training.light.encoded_questions import encode_questions
from askline.training.light.light_training import LightRecipe, train_light_ranker
from askline.training.optimizer import CpuThreads, cpu_threads, split_in_halves
from askline.types import QuestionSet

CPU = torch.device("cpu")
SMALL = CosinetConfig(dimensions=16, filters=12, list_hidden=8, list_layer="birnn")


@pytest.fixture(params=[1, 2, 3], ids=lambda count: f"{count}-threads")
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_are_in_the_order_of_the_parts(threads: int) -> None:
    with cpu_threads(CPU) as both:
        assert both.map(lambda number: number * 2, range(50)) == [2 * n for n in range(50)]
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads


def test_two_threads_work_at_once_if_torch_has_several(threads: int) -> None:
    together = threading.Barrier(min(threads, 2), timeout=10)
    with cpu_threads(CPU) as both:
        assert len(both.map(lambda _: together.wait(), range(min(threads, 2)))) == min(threads, 2)


def test_without_a_pool_the_calling_thread_does_all_work() -> None:
    assert set(CpuThreads().map(lambda _: threading.get_ident(), range(5))) == {
        threading.get_ident()
    }


@pytest.mark.parametrize("bad", [0, 1], ids=["first", "last"])
def test_after_an_error_torch_has_its_threads_again(threads: int, bad: int) -> None:
    with pytest.raises(ZeroDivisionError), cpu_threads(CPU) as both:
        both.map(lambda number: 1 / (number - bad), range(2))
    assert torch.get_num_threads() == threads


def test_halves_have_about_equal_work_and_every_row_once() -> None:
    work = np.array([5, 9, 1, 3, 7, 2])
    first, second = split_in_halves(np.array([5, 1, 0, 3, 2]), work)
    assert sorted([*first, *second]) == [0, 1, 2, 3, 5]
    assert abs(work[first].sum() - work[second].sum()) <= 2


def test_rows_without_work_are_divided_and_one_row_is_one_part() -> None:
    assert [part.tolist() for part in split_in_halves(np.arange(2), np.zeros(2, np.int64))] == [
        [0],
        [1],
    ]
    assert [part.tolist() for part in split_in_halves(np.array([4]), np.arange(5))] == [[4]]


@pytest.mark.parametrize(
    "layout",
    [
        SMALL,
        CompareAggregateConfig(dimensions=16, gate=10, filters=8, list_hidden=8, list_layer="rnn"),
        RelationalCNNConfig(dimensions=16, filters=8),
    ],
    ids=lambda one: one.kind,
)
def test_the_weights_do_not_depend_on_the_number_of_threads(
    threads: int, layout: LightConfig, vectors: WordVectors, train_questions: QuestionSet
) -> None:
    numbers = encode_questions(train_questions, vectors, layout)
    recipe = LightRecipe(epochs=2, batch_size=16, dropout=0.2)
    many = train_light_ranker(layout, numbers, recipe).network.state_dict()
    torch.set_num_threads(1)
    one = train_light_ranker(layout, numbers, recipe).network.state_dict()
    assert all(torch.equal(many[name], one[name]) for name in one)


@pytest.mark.parametrize("loss", ["list", "point"])
def test_gradients_of_halves_sum_to_those_of_the_step(
    loss: str,
    vectors: WordVectors,
    train_questions: QuestionSet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = encode_questions(train_questions, vectors, SMALL)
    recipe = LightRecipe(epochs=1, batch_size=7, loss=loss)  # type: ignore[arg-type]
    halved = train_light_ranker(SMALL, numbers, recipe)
    monkeypatch.setattr(
        "askline.training.light.light_training.split_in_halves", lambda rows, _: [rows]
    )
    whole = train_light_ranker(SMALL, numbers, recipe)
    assert halved.history[0].loss == pytest.approx(whole.history[0].loss, abs=1e-5)
    # A list's chances do not change with the bias of the score: its gradient is rounding alone.
    blind = {"score.bias"} if loss == "list" else set()
    theirs = dict(whole.network.named_parameters())
    for name, ours in halved.network.named_parameters():
        if name not in blind:
            torch.testing.assert_close(ours, theirs[name], atol=1e-6, rtol=1e-4)
