from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from askline.errors import InputError
from askline.training.transformer.pairs import encode_texts
from askline.training.transformer.texts import TextTable, encode_pairs
from askline.types import Question, QuestionSet

LONG = "jane austen wrote emma . " * 4
SHORT = "who wrote dune ?"


@pytest.mark.parametrize(
    ("question", "candidate"),
    [
        (SHORT, "frank herbert wrote dune ."),
        (SHORT, LONG),
        (LONG, SHORT),
        (LONG, LONG),
        (SHORT, ""),
    ],
    ids=["short", "long candidate", "long question", "both long", "empty candidate"],
)
@pytest.mark.parametrize("max_tokens", [48, 20, 15])
def test_pairs_are_joined_as_the_tokeniser_does_it(
    tokeniser: Any, question: str, candidate: str, max_tokens: int
) -> None:
    table = TextTable.encode([question, candidate], tokeniser, max_tokens=max_tokens)
    pairs = table.pairs([(0, [1])])
    expected = encode_texts([(question, candidate)], tokeniser, sizes=[1], max_tokens=max_tokens)
    assert pairs.tokens[0].tolist() == expected.tokens[0].tolist()
    assert pairs.segments is not None
    assert expected.segments is not None
    assert pairs.segments[0].tolist() == expected.segments[0].tolist()


def test_labels_and_sizes_follow_the_lists(tokeniser: Any) -> None:
    table = TextTable.encode([SHORT, "dune .", "emma ."], tokeniser)
    pairs = table.pairs([(0, [1, 2]), (0, []), (0, [2])], [1, 0, 0.5], name="three")
    assert (pairs.name, len(pairs), len(table)) == ("three", 3, 3)
    assert pairs.offsets.tolist() == [0, 2, 2, 3]
    assert pairs.labels.tolist() == [1, 0, 0.5]
    assert not table.pairs([(0, [1])]).labels.any()


def test_every_question_of_a_set_is_encoded(tokeniser: Any, questions: QuestionSet) -> None:
    pairs = encode_pairs(questions, tokeniser)
    assert np.diff(pairs.offsets).tolist() == [3, 2, 2, 1]
    assert pairs.labels.tolist() == [1, 0, 0, 0, 1, 0, 1, 0]


def test_a_set_without_candidates_is_refused(tokeniser: Any) -> None:
    with pytest.raises(InputError, match="no candidates"):
        encode_pairs(QuestionSet("bare", (Question("Q1", "who ?", ()),)), tokeniser)
