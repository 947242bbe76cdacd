from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from askline.errors import ModelError
from askline.training.packing import PairTemplate, TokenRange, TokenTable, pack

TEXTS = ["who wrote emma ?", "jane austen wrote emma .", "paris", "", "where is the city ?"]
FIRST, SECOND = np.array([0, 0, 4]), np.array([1, 2, 3])


@pytest.fixture
def table(tokenizer: Any) -> TokenTable:
    return TokenTable.of(TEXTS, tokenizer)


@pytest.fixture
def template(tokenizer: Any) -> PairTemplate:
    return PairTemplate.of(tokenizer)


def test_template_has_the_special_tokens_of_the_tokenizer(
    tokenizer: Any, template: PairTemplate
) -> None:
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert [part.tolist() for part in (template.before, template.between, template.after)] == [
        [first],
        [last],
        [last],
    ]
    assert template.segments == (0, 0, 0, 1, 1)
    assert template.extra == 3


def test_template_needs_a_tokenizer_that_knows_words() -> None:
    class Mute:
        def __call__(self, *texts: str) -> Any:
            class Found(dict[str, Any]):
                def sequence_ids(self, _: int) -> list[None]:
                    return [None, None]

            return Found(input_ids=[1, 2])

    with pytest.raises(ModelError, match="must know the words"):
        PairTemplate.of(Mute())


def test_packed_pairs_are_those_of_the_tokenizer(
    tokenizer: Any, table: TokenTable, template: PairTemplate
) -> None:
    batch = pack(table, FIRST, SECOND, template)
    pairs = [TEXTS[row] for row in FIRST], [TEXTS[row] for row in SECOND]
    expected = tokenizer(*pairs, padding=True, return_tensors="pt")
    for name, value in batch.padded().items():
        assert torch.equal(value, expected[name]), name
    assert len(batch) == 3
    assert batch.in_second.sum() == 5 + 1 + 0
    assert batch.second.tolist() == [6, 6, 7]


def test_long_texts_are_truncated_at_the_end(table: TokenTable, template: PairTemplate) -> None:
    batch = pack(table, FIRST[:1], SECOND[:1], template, limit=9)
    assert len(batch.tokens) == 9
    shorter = pack(table, FIRST[:1], SECOND[:1], template, first_limit=2)
    assert len(shorter.tokens) == 3 + 2 + 5


def test_window_takes_a_part_of_the_second_text(table: TokenTable, template: PairTemplate) -> None:
    window = TokenRange(np.array([1]), np.array([2]))
    batch = pack(table, FIRST[:1], SECOND[:1], template, window=window)
    whole = pack(table, FIRST[:1], SECOND[:1], template)
    assert torch.equal(batch.tokens[batch.in_second], whole.tokens[whole.in_second][1:3])


def test_keep_gathers_sequences_in_the_given_order(
    table: TokenTable, template: PairTemplate
) -> None:
    batch = pack(table, FIRST, SECOND, template)
    part, chosen = batch.keep(torch.tensor([2, 0]))
    direct = pack(table, FIRST[[2, 0]], SECOND[[2, 0]], template)
    for name in ("tokens", "segments", "positions", "owners", "starts", "second", "in_second"):
        assert torch.equal(getattr(part, name), getattr(direct, name)), name
    assert torch.equal(batch.tokens[chosen], part.tokens)


def test_tables_add_up(tokenizer: Any, table: TokenTable) -> None:
    both = table + TokenTable.of(["paris", "the city"], tokenizer)
    assert len(both) == len(TEXTS) + 2
    rows = np.array([len(TEXTS), 2])
    assert both.lengths(rows).tolist() == [1, 1]
    assert both.tokens[both.offsets[len(TEXTS)]] == table.tokens[table.offsets[2]]
