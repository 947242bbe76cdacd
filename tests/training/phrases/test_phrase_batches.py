"""Batches made ahead of their use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from askline.training.phrases.phrase_training import prefetch


def test_the_same_items_in_the_same_order() -> None:
    assert list(prefetch(iter(range(20)), count=3)) == list(range(20))


@pytest.mark.parametrize("items", [[], [None], [None, 1]], ids=["none", "one", "fewer than ahead"])
def test_few_items(items: list[object]) -> None:
    assert list(prefetch(items)) == items


def test_prefetch_prepares_a_limited_number_of_items() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for item in range(100):
            made.append(item)
            yield item

    some = prefetch(items(), count=3)
    assert next(some) == 0
    some.close()  # type: ignore[attr-defined]
    assert len(made) <= 4


def test_an_error_comes_at_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    some = prefetch(items())
    assert next(some) == 1
    with pytest.raises(ValueError, match="no more"):
        next(some)
