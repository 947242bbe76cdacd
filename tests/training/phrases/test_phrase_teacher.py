from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.data.squad import Paragraph
from askline.training.phrases.phrase_examples import make_material
from askline.training.phrases.phrase_teacher import (
    Reader,
    cross_read,
    join_pairs,
    label_pairs,
    read,
    readings,
    train_reader,
)
from askline.training.phrases.phrase_training import PhraseRecipe
from askline.training.transformer.pair_network import read_encoder


def _start(folder: Path) -> Reader:
    torch.manual_seed(0)
    return Reader(read_encoder(folder, plain=False)[0])


@pytest.fixture(scope="module")
def reader(bert_folder: Path, paragraphs: list[Paragraph], tokeniser: Any) -> Reader:
    network = _start(bert_folder)
    material = make_material(paragraphs, tokeniser, size=128, overlap=80)
    train_reader(network, readings(material), PhraseRecipe(epochs=25, rate=2e-3, batch=5))
    return network


def test_a_reader_learns_to_point_at_the_answer(
    reader: Reader, paragraphs: list[Paragraph], tokeniser: Any
) -> None:
    material = readings(make_material(paragraphs, tokeniser, size=128, overlap=80))
    right = 0
    for one, (first, last) in zip(material, read(reader, material, batch=2), strict=True):
        assert len(first) == len(last) == len(one.window)
        assert np.exp(first).sum() == pytest.approx(1, abs=1e-3)
        right += [int(first.argmax()), int(last.argmax())] in one.spans.tolist()
    assert right >= 4


def test_reading_together_is_reading_alone(
    reader: Reader, paragraphs: list[Paragraph], tokeniser: Any
) -> None:
    material = readings(make_material(paragraphs, tokeniser, size=128, overlap=80))
    together = read(reader, material)
    for one, (first, _) in zip(material, together, strict=True):
        assert read(reader, [one])[0][0] == pytest.approx(first, abs=1e-3)


def test_nobody_teaches_what_it_has_learnt(
    bert_folder: Path, paragraphs: list[Paragraph], tokeniser: Any
) -> None:
    material = make_material(paragraphs, tokeniser, size=128, overlap=80)
    recipe = PhraseRecipe(epochs=1, rate=1e-3, batch=4)
    (first, second), tables = cross_read(partial(_start, bert_folder), material, recipe)
    assert [len(table) for table in tables] == [len(one.questions) for one in material]
    for one, table in zip(material, tables, strict=True):
        unseen = second if one.paragraph % 2 == 0 else first
        mine = read(unseen, readings([one]))
        assert table[0][0] == pytest.approx(mine[0][0], abs=1e-4)


def test_pairs_become_paragraphs_that_say_where_each_sentence_stands() -> None:
    pairs = [("who ?", "Emma is a novel."), ("what ?", "Emma is a novel."), ("?", "A" * 790)]
    first, second = join_pairs(pairs)
    assert first.text == "Emma is a novel."
    assert [first.text[a:b] for _, _, (a, b) in first.questions] == ["Emma is a novel."] * 2
    assert len(second.text) == 790
    assert [name for name, _, _ in second.questions] == ["pair-2"]
    assert join_pairs([]) == []


def test_readers_mark_only_what_they_are_sure_of(reader: Reader, tokeniser: Any) -> None:
    pairs = join_pairs([("who wrote emma ?", "Jane Austen wrote Emma. Emma is a novel.")])
    windows: dict[str, Any] = {"size": 128, "overlap": 80}
    (found,) = label_pairs([reader, reader], pairs, tokeniser, sure=0.2, **windows)
    ((span,),) = [asked.spans for asked in found.material.questions]
    window = found.material.window
    assert found.text[window.starts[span[0]] : window.ends[span[1]]] == "Jane Austen"
    assert len(found.tables) == 1
    assert label_pairs([reader], pairs, tokeniser, sure=1.01, **windows) == []
