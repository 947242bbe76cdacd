from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askline.errors import InputError
from askline.training.transformer.pairs import token_batches
from askline.training.transformer.texts import encode_pairs
from askline.types import Question, QuestionSet


def test_pairs_keep_questions_labels_and_order(tokeniser: Any, questions: QuestionSet) -> None:
    pairs = encode_pairs(questions, tokeniser)
    assert len(pairs) == 4
    assert pairs.offsets.tolist() == [0, 3, 5, 7, 8]
    assert pairs.labels.tolist() == [1, 0, 0, 0, 1, 0, 1, 0]
    assert pairs.rows([2, 0]).tolist() == [5, 6, 0, 1, 2]
    first = tokeniser.decode(pairs.tokens[0])
    assert first == "[CLS] who wrote emma? [SEP] jane austen wrote emma. [SEP]"


def test_collate_pads_to_the_longest(tokeniser: Any, questions: QuestionSet) -> None:
    pairs = encode_pairs(questions, tokeniser)
    rows = pairs.rows([0])
    batch = pairs.collate(rows, "cpu")
    assert batch["input_ids"].shape == (3, int(pairs.lengths(rows).max()))
    assert batch["attention_mask"].sum(1).tolist() == pairs.lengths(rows).tolist()
    assert (batch["input_ids"][batch["attention_mask"] == 0] == tokeniser.pad_token_id).all()


def test_long_pairs_are_cut(tokeniser: Any, questions: QuestionSet) -> None:
    pairs = encode_pairs(questions, tokeniser, max_tokens=9)
    assert max(map(len, pairs.tokens)) == 9


def test_a_set_without_candidates_is_refused(tokeniser: Any) -> None:
    with pytest.raises(InputError, match="no candidates"):
        encode_pairs(QuestionSet("bare", (Question("Q", "who ?", ()),)), tokeniser)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=50), st.integers(1, 200))
def test_batches_hold_every_place_once_within_the_budget(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths)
    batches = list(token_batches(sizes, budget))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * sizes[batch].max() <= budget
