from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError
from askline.training.transformer.pair_sets import (
    TextTable,
    encode_pairs,
    token_batches,
)
from askline.types import Question, QuestionSet


def test_pairs_keep_questions_labels_and_order(tokenizer: Any, questions: QuestionSet) -> None:
    pairs = encode_pairs(questions, tokenizer)
    assert len(pairs) == 4
    assert pairs.offsets.tolist() == [0, 3, 5, 7, 8]
    assert pairs.labels.tolist() == [1, 0, 0, 0, 1, 0, 1, 0]
    assert pairs.rows([2, 0]).tolist() == [5, 6, 0, 1, 2]
    first = tokenizer.decode(pairs.tokens[0])
    assert first == "[CLS] who wrote emma? [SEP] jane austen wrote emma. [SEP]"


def test_collate_pads_to_the_longest(tokenizer: Any, questions: QuestionSet) -> None:
    pairs = encode_pairs(questions, tokenizer)
    rows = pairs.rows([0])
    batch = pairs.collate(rows, "cpu")
    assert batch["input_ids"].shape == (3, int(pairs.lengths(rows).max()))
    assert batch["attention_mask"].sum(1).tolist() == pairs.lengths(rows).tolist()
    assert (batch["input_ids"][batch["attention_mask"] == 0] == tokenizer.pad_token_id).all()


def test_long_pairs_are_cut(tokenizer: Any, questions: QuestionSet) -> None:
    pairs = encode_pairs(questions, tokenizer, max_length=9)
    assert max(map(len, pairs.tokens)) == 9


def test_a_set_without_candidates_is_refused(tokenizer: Any) -> None:
    with pytest.raises(InputError, match="no candidates"):
        encode_pairs(QuestionSet("bare", (Question("Q", "who ?", ()),)), tokenizer)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=50), st.integers(1, 200))
def test_every_row_is_in_one_batch_within_the_token_budget(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths)
    batches = list(token_batches(sizes, budget))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * sizes[batch].max() <= budget


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
@pytest.mark.parametrize("max_length", [48, 20, 15])
def test_pairs_are_joined_as_the_tokenizer_does_it(
    tokenizer: Any, question: str, candidate: str, max_length: int
) -> None:
    table = TextTable.encode([question, candidate], tokenizer, max_length=max_length)
    pairs = table.pairs([(0, [1])])
    expected = tokenizer([question], [candidate], truncation="longest_first", max_length=max_length)
    assert pairs.tokens[0].tolist() == expected["input_ids"][0]
    assert pairs.segments is not None
    assert pairs.segments[0].tolist() == expected["token_type_ids"][0]


def test_labels_and_sizes_follow_the_lists(tokenizer: Any) -> None:
    table = TextTable.encode([SHORT, "dune .", "emma ."], tokenizer)
    pairs = table.pairs([(0, [1, 2]), (0, []), (0, [2])], [1, 0, 0.5], name="three")
    assert (pairs.name, len(pairs), len(table)) == ("three", 3, 3)
    assert pairs.offsets.tolist() == [0, 2, 2, 3]
    assert pairs.labels.tolist() == [1, 0, 0.5]
    assert not table.pairs([(0, [1])]).labels.any()


def test_every_question_of_a_set_is_encoded(tokenizer: Any, questions: QuestionSet) -> None:
    pairs = encode_pairs(questions, tokenizer)
    assert np.diff(pairs.offsets).tolist() == [3, 2, 2, 1]
    assert pairs.labels.tolist() == [1, 0, 0, 0, 1, 0, 1, 0]


def test_a_table_of_a_set_without_candidates_is_refused(tokenizer: Any) -> None:
    with pytest.raises(InputError, match="no candidates"):
        encode_pairs(QuestionSet("bare", (Question("Q1", "who ?", ()),)), tokenizer)
