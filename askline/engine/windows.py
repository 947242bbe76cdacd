"""
Passages as token windows: `[CLS] question [SEP] title M sentence M sentence … [SEP]`.

M is a marker token in front of each sentence. A passage that does not fit into one window becomes
several, which share one sentence with each neighbor. A sentence that does not fit alone becomes
several overlapping pieces, each in a window of its own. Nothing of a sentence is left out, except
of one that is longer than `MAX_CANDIDATE_TOKENS`, as in `sequences.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..models.cascade_config import ContextConfig
from ..types import Passage
from .numpy_ops import IntArray
from .sequences import MAX_CANDIDATE_TOKENS, best_windows, window_starts
from .tokenizer import WordPiece

__all__ = ["Piece", "Windows"]

_MAX_QUESTION = 126  # tokens, as for independent candidates
_SPECIAL_TOKENS = 3  # [CLS] question [SEP] … [SEP]
_TITLE_SHARE = 3  # a title gets at most a third of what the question leaves
_OVERLAP_SHARE = 4  # of two pieces of one sentence, as a share of the window


class Piece(NamedTuple):
    """A sentence in a window, or a part of a long sentence: tokens `begin` to `end` - 1."""

    sentence: int
    begin: int
    """The position of the marker; the sentence's tokens follow it."""
    end: int
    start: int
    """The sentence's own token that comes first."""


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """The windows of all passages, in the passages' order, at least one per passage."""

    token_ids: tuple[IntArray, ...]
    second: IntArray
    """Per window, the position after the question's [SEP], where token type 1 begins."""
    passage: IntArray
    """Per window, the number of its passage."""
    pieces: tuple[tuple[Piece, ...], ...]
    """Per window, its sentences, numbered over all passages. They follow each other directly."""
    lengths: IntArray

    @classmethod
    def for_requests(
        cls,
        tokenizer: WordPiece,
        config: ContextConfig,
        requests: Iterable[tuple[str, Sequence[Passage]]],
    ) -> Windows:
        """Tokenize several questions and their passages, each text once."""
        token_ids, second = list[IntArray](), list[int]()
        owners, pieces = list[int](), list[tuple[Piece, ...]]()
        passage_number = sentence_number = 0
        for question, passages in requests:
            longest = min(_MAX_QUESTION, (config.max_length - _SPECIAL_TOKENS) // 2)
            question_ids = tokenizer.token_ids(question)[:longest]
            prefix = [tokenizer.cls_id, *question_ids, tokenizer.sep_id]
            for passage in passages:
                room = config.max_length - _SPECIAL_TOKENS - len(question_ids)
                longest = min(config.max_title, room // _TITLE_SHARE)
                title_ids = tokenizer.token_ids(passage.title)[:longest] if longest else []
                sentences = [tokenizer.token_ids(sentence) for sentence in passage.sentences]
                room -= len(title_ids)
                for window in _windows(sentences, question_ids, room, config.max_length):
                    ids, own = [*prefix, *title_ids], list[Piece]()
                    for number, start, end in window:
                        begin = len(ids)
                        ids += [config.marker, *sentences[number][start:end]]
                        own.append(Piece(sentence_number + number, begin, len(ids), start))
                    token_ids.append(np.array([*ids, tokenizer.sep_id], np.int64))
                    second.append(len(prefix))
                    owners.append(passage_number)
                    pieces.append(tuple(own))
                passage_number += 1
                sentence_number += len(sentences)
        return cls(
            tuple(token_ids),
            np.array(second, np.int64),
            np.array(owners, np.int64),
            tuple(pieces),
            np.array([len(ids) for ids in token_ids], np.int64),
        )

    def __len__(self) -> int:
        """The number of windows."""
        return len(self.token_ids)

    def batch(self, windows: IntArray) -> tuple[IntArray, IntArray]:
        """Token ids and token types, (batch, tokens), of windows that all have one length."""
        numbers = windows.tolist()
        token_ids = np.stack([self.token_ids[number] for number in numbers])
        token_types = np.arange(token_ids.shape[1]) >= self.second[windows][:, None]
        return token_ids, token_types.astype(np.int64)


_Part = tuple[int, int, int]  # a sentence of the passage, and its tokens from start to end


def _windows(
    sentences: Sequence[Sequence[int]], question_ids: Sequence[int], room: int, max_length: int
) -> Iterator[list[_Part]]:
    """The sentences of each window; `room` is what the question and the title leave."""
    if not sentences:
        yield []
        return
    sizes = [1 + len(ids) for ids in sentences]  # with the marker
    first = 0
    while first < len(sizes):
        if sizes[first] > room:
            yield from _pieces(first, sentences[first], question_ids, room, max_length)
            first += 1
            continue
        last = first  # the sentences up to the next one that does not fit alone
        while last < len(sizes) and sizes[last] <= room:
            last += 1
        for begin, end in _balanced_ranges(sizes[first:last], room):
            yield [(first + at, 0, len(sentences[first + at])) for at in range(begin, end)]
        first = last


def _balanced_ranges(sizes: Sequence[int], room: int) -> list[tuple[int, int]]:
    """
    As few ranges as possible, of similar size; neighbors share one sentence where both fit.

    Without balance, the last window would often hold a sentence or two with little context.
    """
    ranges = _greedy_ranges(sizes, room)
    if len(ranges) == 1:
        return ranges
    low, high = max(sizes), room  # the smallest room with as few ranges
    while low < high:
        middle = (low + high) // 2
        if len(_greedy_ranges(sizes, middle)) > len(ranges):
            low = middle + 1
        else:
            high = middle
    return _greedy_ranges(sizes, low)


def _greedy_ranges(sizes: Sequence[int], room: int) -> list[tuple[int, int]]:
    ranges, begin = list[tuple[int, int]](), 0
    while True:
        end, used = begin, 0
        while end < len(sizes) and used + sizes[end] <= room:
            used += sizes[end]
            end += 1
        ranges.append((begin, end))
        if end == len(sizes):
            return ranges
        shares_last = end - 1 > begin and sizes[end - 1] + sizes[end] <= room
        begin = end - 1 if shares_last else end


def _pieces(
    number: int, ids: Sequence[int], question_ids: Sequence[int], room: int, max_length: int
) -> Iterator[list[_Part]]:
    """A sentence that is longer than a window, one piece per window."""
    length = room - 1  # without the marker
    starts = list(window_starts(len(ids), length, max_length // _OVERLAP_SHARE))
    most = MAX_CANDIDATE_TOKENS // max_length
    if len(starts) > most:
        starts = best_windows(question_ids, ids, starts, length, most)
    for start in starts:
        yield [(number, start, start + length)]
