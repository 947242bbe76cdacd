from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install 'askline[train]'")

from askline.models.layouts import CosinetLayout  # noqa: E402
from askline.models.vectors import WordVectors  # noqa: E402
from askline.training import Recipe, encode, train  # noqa: E402
from askline.training.hands import ahead, each, many_hands  # noqa: E402
from askline.types import QuestionSet  # noqa: E402


@pytest.fixture(params=[1, 2, 3], ids=lambda count: f"{count}-threads")
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_pieces_come_back_in_their_order(threads: int) -> None:
    with many_hands():
        assert each(lambda number: number * 2, range(50)) == [2 * number for number in range(50)]
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads


def test_what_is_begun_ahead_comes_in_its_order(threads: int) -> None:
    with many_hands():
        assert list(ahead(lambda number: number * 2, range(20))) == [2 * n for n in range(20)]
        assert list(ahead(lambda number: number, [])) == []


def test_as_many_work_at_once_as_torch_had_threads(threads: int) -> None:
    together = threading.Barrier(threads, timeout=10)
    with many_hands():
        assert len(each(lambda _: together.wait(), range(threads))) == threads


def test_without_hands_this_thread_does_all() -> None:
    assert set(each(lambda _: threading.get_ident(), range(5))) == {threading.get_ident()}


@pytest.mark.parametrize("bad", [0, 7], ids=["first", "last"])
def test_a_failure_is_raised_and_torch_gets_its_threads_back(threads: int, bad: int) -> None:
    with pytest.raises(ZeroDivisionError), many_hands():
        each(lambda number: 1 / (number - bad), range(8))
    assert torch.get_num_threads() == threads


def test_the_weights_do_not_depend_on_the_number_of_threads(
    threads: int, vectors: WordVectors, train_questions: QuestionSet
) -> None:
    layout = CosinetLayout(dimensions=16, filters=160, list_hidden=8, list_layer="birnn")
    numbers, recipe = encode(train_questions, vectors, layout), Recipe(epochs=2, batch=16)
    many = train(layout, numbers, recipe).network.state_dict()
    torch.set_num_threads(1)
    one = train(layout, numbers, recipe).network.state_dict()
    assert all(torch.equal(many[name], one[name]) for name in one)
