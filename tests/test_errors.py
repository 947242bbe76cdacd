from __future__ import annotations

import inspect
import pickle

import pytest

from askline import errors
from askline.corpus.lock import BusyError
from askline.errors import (
    AsklineError,
    DataError,
    MissingExtraError,
    Problem,
    UnknownNameError,
)

_SPECIAL: list[AsklineError] = [
    DataError([Problem("a.tsv", 3, "no label")] * 25),
    UnknownNameError("ranker", "cosnet", ["cosinet", "cascade"]),
    MissingExtraError("Training", "train"),
]
_PLAIN = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, AsklineError) and kind not in map(type, _SPECIAL)
]


@pytest.mark.parametrize(
    "error",
    [*_SPECIAL, *(kind("what and why") for kind in (*_PLAIN, BusyError))],
    ids=lambda error: type(error).__name__,
)
def test_every_error_comes_whole_out_of_another_process(error: AsklineError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)


def test_the_problems_of_a_file_come_along() -> None:
    error = _SPECIAL[0]
    assert isinstance(error, DataError)
    assert pickle.loads(pickle.dumps(error)).problems == error.problems
