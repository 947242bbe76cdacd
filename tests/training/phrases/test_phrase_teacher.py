from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from askline.data.squad import Paragraph
from askline.training.phrases.contrastive_training import make_example
from askline.training.phrases.phrase_teacher import (
    PhraseTeacher,
    cross_train_teachers,
    join_pairs,
    mark_answers,
    soften_answers,
    teacher_inputs,
    teacher_tables,
    train_teacher,
)
from askline.training.phrases.phrase_training import PhraseRecipe, answer_windows
from askline.training.transformer.pair_network import read_encoder


def _start(folder: Path) -> PhraseTeacher:
    torch.manual_seed(0)
    return PhraseTeacher(read_encoder(folder, plain=False)[0])


@pytest.fixture(scope="module")
def reader(bert_folder: Path, paragraphs: list[Paragraph], tokenizer: Any) -> PhraseTeacher:
    network = _start(bert_folder)
    material = answer_windows(paragraphs, tokenizer, size=128, overlap=80)
    train_teacher(
        network, teacher_inputs(material), PhraseRecipe(epochs=25, learning_rate=2e-3, batch_size=5)
    )
    return network


def test_a_reader_learns_to_point_at_the_answer(
    reader: PhraseTeacher, paragraphs: list[Paragraph], tokenizer: Any
) -> None:
    material = teacher_inputs(answer_windows(paragraphs, tokenizer, size=128, overlap=80))
    right = 0
    for one, (first, last) in zip(material, teacher_tables(reader, material, batch=2), strict=True):
        assert len(first) == len(last) == len(one.window)
        assert np.exp(first).sum() == pytest.approx(1, abs=1e-3)
        right += [int(first.argmax()), int(last.argmax())] in one.spans.tolist()
    assert right >= 4


def test_teacher_tables_do_not_depend_on_the_batch(
    reader: PhraseTeacher, paragraphs: list[Paragraph], tokenizer: Any
) -> None:
    material = teacher_inputs(answer_windows(paragraphs, tokenizer, size=128, overlap=80))
    together = teacher_tables(reader, material)
    for one, (first, _) in zip(material, together, strict=True):
        assert teacher_tables(reader, [one])[0][0] == pytest.approx(first, abs=1e-3)


def test_a_teacher_scores_only_windows_that_it_was_not_trained_on(
    bert_folder: Path, paragraphs: list[Paragraph], tokenizer: Any
) -> None:
    material = answer_windows(paragraphs, tokenizer, size=128, overlap=80)
    recipe = PhraseRecipe(epochs=1, learning_rate=1e-3, batch_size=4)
    (first, second), tables = cross_train_teachers(partial(_start, bert_folder), material, recipe)
    assert [len(table) for table in tables] == [len(one.questions) for one in material]
    for one, table in zip(material, tables, strict=True):
        unseen = second if one.paragraph % 2 == 0 else first
        mine = teacher_tables(unseen, teacher_inputs([one]))
        assert table[0][0] == pytest.approx(mine[0][0], abs=1e-4)


def test_pairs_are_joined_to_paragraphs_with_sentence_offsets() -> None:
    pairs = [("who ?", "Emma is a novel."), ("what ?", "Emma is a novel."), ("?", "A" * 790)]
    first, second = join_pairs(pairs)
    assert first.text == "Emma is a novel."
    assert [first.text[a:b] for _, _, (a, b) in first.questions] == ["Emma is a novel."] * 2
    assert len(second.text) == 790
    assert [name for name, _, _ in second.questions] == ["pair-2"]
    assert join_pairs([]) == []


def test_teachers_mark_only_probable_answers(reader: PhraseTeacher, tokenizer: Any) -> None:
    pairs = join_pairs([("who wrote emma ?", "Jane Austen wrote Emma. Emma is a novel.")])
    windows: dict[str, Any] = {"size": 128, "overlap": 80}
    (found,) = mark_answers([reader, reader], pairs, tokenizer, min_probability=0.2, **windows)
    ((span,),) = [asked.spans for asked in found.window.questions]
    window = found.window.window
    assert found.text[window.starts[span[0]] : window.ends[span[1]]] == "Jane Austen"
    assert len(found.tables) == 1
    assert mark_answers([reader], pairs, tokenizer, min_probability=1.01, **windows) == []


def _uniform_tables(count: int, tokens: int) -> list[tuple[Any, Any]]:
    flat = np.full(tokens, -np.log(tokens), np.float32)
    return [(flat, flat)] * count


def test_softened_answers_keep_their_share(paragraphs: list[Paragraph], tokenizer: Any) -> None:
    one = answer_windows(paragraphs, tokenizer, size=128, overlap=80)[0]
    tables = _uniform_tables(2, len(one.window))
    answers = [tuple(span) for asked in one.questions for span in asked.spans.tolist()]
    soft = soften_answers(one, tables, 0.6, count=3)
    spans, shares = soft.spans()
    found = dict(zip(map(tuple, spans.tolist()), shares.tolist(), strict=True))
    assert sum(found.values()) == pytest.approx(1)
    assert all(found[span] >= 0.4 / 2 - 1e-6 for span in answers)
    assert len(found) > len(answers)
    for first, last in found:
        assert one.window.may_start[first]
        assert one.window.may_end[last]
    assert [(asked.id, asked.spans.tolist()) for asked in soft.questions] == [
        (asked.id, asked.spans.tolist()) for asked in one.questions
    ]


def test_softened_answers_follow_the_teacher(paragraphs: list[Paragraph], tokenizer: Any) -> None:
    one = answer_windows(paragraphs, tokenizer, size=128, overlap=80)[1]
    ((answer,),) = [asked.spans.tolist() for asked in one.questions]
    first = np.full(len(one.window), -20, np.float32)
    last = first.copy()
    first[answer[0]] = last[answer[1]] = 0.0
    soft = soften_answers(one, [(first, last)], 0.6)
    spans, shares = soft.spans()
    assert shares[spans.tolist().index(answer)] == pytest.approx(1, abs=1e-4)
    unchanged = soften_answers(one, [(first, last)], 0.0).spans()
    assert unchanged[1].max() == pytest.approx(1)


def test_soft_answers_are_no_answers_of_an_example(
    paragraphs: list[Paragraph], tokenizer: Any
) -> None:
    one = answer_windows(paragraphs, tokenizer, size=128, overlap=80)[0]
    tables = _uniform_tables(2, len(one.window))
    nothing = np.zeros((0, 2), np.int32), np.zeros(0, np.float32)
    hard, soft = (
        make_example(given, nothing, paragraphs[0].text, normalize=str.lower)
        for given in (one, soften_answers(one, tables, 0.6))
    )
    assert soft.spans.tolist() == hard.spans.tolist()
    assert soft.correct.tolist() == hard.correct.tolist()
