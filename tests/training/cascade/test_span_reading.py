from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.data import read_paragraphs, to_question_set
from askline.errors import InputError
from askline.training.cascade.cascade_examples import answer_spans, span_examples, token_spans
from askline.training.cascade.cascade_network import CascadeNetwork
from askline.training.cascade.span_reading import best_spans, read_spans, span_loss, text_windows
from askline.training.packing import PairTemplate, TokenTable, pack
from research.benchmarks.span_answers import measure_reading, read_texts

TEXTS = ["who ?", "jane austen wrote emma .", "", "paris"]


def test_best_span_is_the_best_of_all(tokenizer: Any) -> None:
    table, template = TokenTable.of(TEXTS, tokenizer), PairTemplate.of(tokenizer)
    batch = pack(table, np.zeros(3, int), np.array([1, 2, 3]), template)
    ends = torch.randn(len(batch.tokens), 2, generator=torch.Generator().manual_seed(1))
    found = best_spans(ends, batch)
    places = range(4, 9)  # [CLS] who ? [SEP] jane … [SEP]
    first, last = max(
        ((i, j) for i, j in product(places, places) if i <= j),
        key=lambda pair: float(ends[pair[0], 0] + ends[pair[1], 1]),
    )
    assert found[0, :2].tolist() == [first - 4, last - 4]
    assert found[0, 2] == pytest.approx(float(ends[first, 0] + ends[last, 1]))
    assert found[0, 3] == pytest.approx(float(ends[0].sum()))
    assert found[1, :2].tolist() == [-1, -1]  # an empty text
    assert found[2, :2].tolist() == [0, 0]


def test_reading_loss_looks_at_the_span_or_at_the_first_token(tokenizer: Any) -> None:
    table, template = TokenTable.of(TEXTS, tokenizer), PairTemplate.of(tokenizer)
    batch = pack(table, np.zeros(2, int), np.array([1, 1]), template)
    size = len(batch.tokens) // 2
    ends = torch.zeros(len(batch.tokens), 2)
    ends[5, 0] = ends[6, 1] = 50.0  # "austen wrote" in the first
    ends[size] = 50.0  # nothing in the second
    right, wrong = torch.tensor([[1, 2], [-1, -1]]), torch.tensor([[0, 0], [-1, -1]])
    assert span_loss(ends, batch, right, torch.ones(2)) < 1e-5
    assert span_loss(ends, batch, wrong, torch.ones(2)) > 10
    assert span_loss(ends, batch, wrong, torch.tensor([0.0, 1.0])) < 1e-5


def test_question_tokens_are_no_answer(tokenizer: Any) -> None:
    table, template = TokenTable.of(TEXTS, tokenizer), PairTemplate.of(tokenizer)
    batch = pack(table, np.zeros(1, int), np.array([3]), template)
    ends = torch.zeros(len(batch.tokens), 2)
    ends[1] = 50.0  # a question token: shut, so what is left shares evenly
    loss = span_loss(ends, batch, torch.tensor([[0, 0]]), torch.ones(1))
    assert loss == pytest.approx(float(np.log(2)), abs=1e-4)


def test_windows_overlap_and_cover(tokenizer: Any) -> None:
    table = TokenTable.of(["who ?", "paris " * 50, "", "emma"], tokenizer)
    template = PairTemplate.of(tokenizer)
    rows = np.array([1, 2, 3])
    owners, starts, lengths = text_windows(
        table, np.zeros(3, int), rows, template, limit=25, overlap=8
    )
    assert owners.tolist() == [0, 0, 0, 0, 1, 2]
    assert starts.tolist() == [0, 12, 24, 36, 0, 0]
    assert lengths.tolist() == [20, 20, 20, 14, 0, 1]


def test_a_long_text_is_read_window_by_window(network: CascadeNetwork, tokenizer: Any) -> None:
    text = "jane austen wrote emma . " * 8
    table, template = TokenTable.of(["who ?", text], tokenizer), PairTemplate.of(tokenizer)
    rows = np.zeros(1, int)
    whole = read_spans(network, table, template, rows, rows + 1, limit=60)
    parts = read_spans(network, table, template, rows, rows + 1, limit=30, stride=8)
    assert whole.shape == parts.shape == (1, 4)
    assert 0 <= parts[0, 0] <= parts[0, 1] < 40


def test_token_spans_cover_the_characters(tokenizer: Any) -> None:
    texts = ["jane austen wrote emma .", "paris", "paris"]
    spans = token_spans(texts, [(5, 17), (-1, -1), (7, 9)], tokenizer)
    assert spans.tolist() == [[1, 2], [-1, -1], [-1, -1]]


def test_answer_spans_lie_in_the_answer_sentence(squad_file: Path, tokenizer: Any) -> None:
    found = read_paragraphs(squad_file)
    golds = {asked.id: asked.answers for each in found.paragraphs for asked in each.questions}
    spans = answer_spans(to_question_set(found).questions, golds, tokenizer)
    # "emma is a novel of JANE AUSTEN ." and "jane austen was born in 1775 ."
    assert [each.tolist() for each in spans[:2]] == [[[5, 6]], [[5, 5]]]
    unknown = answer_spans(to_question_set(found).questions, {}, tokenizer)
    assert unknown[0].tolist() == [[-1, -1]]


def test_reading_examples_hold_their_answer(squad_file: Path, tokenizer: Any) -> None:
    reading = span_examples(read_paragraphs(squad_file).paragraphs, tokenizer)
    assert len(reading) == 4
    texts = reading.table
    random = np.random.default_rng(0)
    for limit in (18, 384):
        object.__setattr__(reading, "limit", limit)
        drawn = reading.draw(np.arange(4), random, wrong=0.0)
        for row, (first, last) in enumerate(drawn.spans):
            at = texts.offsets[drawn.paragraphs[row]] + drawn.window.start[row]
            tokens = texts.tokens[at + first : at + last + 1]
            gold = ["jane austen", "1775", "in france", "1920"][row]
            assert tokenizer.decode(tokens) == gold
            assert last < drawn.window.length[row]


def test_wrong_paragraphs_have_no_answer(squad_file: Path, tokenizer: Any) -> None:
    reading = span_examples(read_paragraphs(squad_file).paragraphs, tokenizer)
    assert (reading.others >= 0).tolist() == [True, True, True, False]  # Dune has one paragraph
    drawn = reading.draw(np.arange(4), np.random.default_rng(0), wrong=1.0)
    assert drawn.spans[:3].max() == -1
    assert drawn.spans[3].min() >= 0


def test_reading_without_questions_is_refused(tokenizer: Any) -> None:
    with pytest.raises(InputError, match="got none"):
        span_examples([], tokenizer)


def test_answers_are_parts_of_the_text(
    network: CascadeNetwork, tokenizer: Any, squad_file: Path
) -> None:
    text = "Jane Austen wrote Emma."
    (answer, empty) = read_texts(network, tokenizer, [("who ?", text), ("who ?", "")])
    assert 0 <= answer.start < answer.end <= len(text)
    assert (empty.start, empty.end) == (0, 0)
    assert read_texts(network, tokenizer, []) == []
    measured = measure_reading(network, tokenizer, read_paragraphs(squad_file).paragraphs)
    assert measured.keys() == {"EM", "F1"}
