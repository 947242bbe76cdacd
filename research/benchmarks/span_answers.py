"""Answers of a reader in torch, with character offsets, and their exact match and F1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from askline.data import Paragraph
from askline.evaluation import score_phrases
from askline.training.cascade.cascade_network import CascadeNetwork
from askline.training.cascade.span_reading import read_spans
from askline.training.packing import PairTemplate, TokenTable

__all__ = [
    "ReadAnswer",
    "measure_reading",
    "read_texts",
]


class ReadAnswer(NamedTuple):
    """An answer: `text[start:end]`."""

    start: int
    end: int
    score: float
    """Sum of the start and end logits."""
    none: float
    """The same sum for "no answer"."""


def read_texts(
    network: CascadeNetwork, tokenizer: Any, pairs: Sequence[tuple[str, str]]
) -> list[ReadAnswer]:
    """The best span of each (question, text); empty for a text without tokens."""
    if not pairs:
        return []
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(text, len(numbers)) for text in pair] for pair in pairs]
    texts = list(numbers)
    questions, paragraphs = np.array(rows, np.int64).T
    table, template = TokenTable.of(texts, tokenizer), PairTemplate.of(tokenizer)
    found = read_spans(network, table, template, questions, paragraphs)
    places = _places({row: texts[row] for row in paragraphs.tolist()}, tokenizer)
    answers = []
    for row, (first, last, score, none) in zip(paragraphs.tolist(), found, strict=True):
        start, end = (
            (places[row][int(first)][0], places[row][int(last)][1]) if first >= 0 else (0, 0)
        )
        answers.append(ReadAnswer(start, end, float(score), float(none)))
    return answers


def measure_reading(
    network: CascadeNetwork, tokenizer: Any, paragraphs: Sequence[Paragraph]
) -> dict[str, float]:
    """EM and F1 in percent over the questions with an answer, as in SQuAD 1.1."""
    asked = [
        (question, paragraph.text)
        for paragraph in paragraphs
        for question in paragraph.questions
        if question.answers
    ]
    found = read_texts(network, tokenizer, [(question.text, text) for question, text in asked])
    return score_phrases(
        {
            question.id: text[answer.start : answer.end]
            for (question, text), answer in zip(asked, found, strict=True)
        },
        {question.id: [gold.text for gold in question.answers] for question, _ in asked},
    ).percent


def _places(texts: dict[int, str], tokenizer: Any) -> dict[int, list[tuple[int, int]]]:
    """Character offsets of each token of each text."""
    found = tokenizer(
        list(texts.values()), add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )["offset_mapping"]
    return dict(zip(texts, found, strict=True))
