"""
Token sequences: pairs of a question and a candidate, passages as windows, and spans of tokens.

A pair becomes `[CLS] question [SEP] candidate [SEP]`. A candidate that does not fit into the
maximum sequence length becomes several overlapping sequences; it is never truncated. A candidate of
more than `MAX_CANDIDATE_TOKENS` tokens keeps the sequences with the highest BM25 score, from
anywhere in it, so that the cost of a candidate has an upper bound.

A passage becomes `[CLS] question [SEP] title M sentence M sentence … [SEP]`. M is a marker token in
front of each sentence. A passage that does not fit into one window becomes several, which share one
sentence with each neighbor. A sentence that does not fit alone becomes several overlapping pieces,
each in a window of its own. Nothing of a sentence is left out, except of one that is longer than
`MAX_CANDIDATE_TOKENS`.

The span reader's start and end logits for a sequence become the most probable answer span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..models.cascade_config import ContextConfig
from ..types import Passage
from .numpy_ops import IntArray
from .tokenizer import WordPiece

__all__ = [
    "MAX_CANDIDATE_TOKENS",
    "MAX_SEQUENCE_LENGTH",
    "READER_MAX_SEQUENCE_LENGTH",
    "Piece",
    "TokenSequences",
    "TokenSpan",
    "Windows",
    "best_span",
    "best_windows",
    "window_starts",
]

MAX_SEQUENCE_LENGTH = 256
"""In tokens, as in training; a model with fewer positions has less."""
READER_MAX_SEQUENCE_LENGTH = 384
"""The same for a span reader with an adapter, as in its training."""
MAX_CANDIDATE_TOKENS = 6_144
"""
Tokens of a candidate's sequences together: 24 sequences of 256 tokens. With the question and the
overlap of the sequences, that is about 18,000 characters of English.
"""
_BM25_K1 = 1.5
_SPECIAL_TOKENS = 3  # [CLS] question [SEP] candidate [SEP]


@dataclass(frozen=True, slots=True, eq=False)
class TokenSequences:
    """The sequences of all candidates, in the candidates' order, at least one per candidate."""

    prefixes: tuple[IntArray, ...]
    """Per sequence, the token ids of [CLS], the question and [SEP]."""
    suffixes: tuple[IntArray, ...]
    """Per sequence, the token ids of its part of the candidate and of [SEP]."""
    candidate: IntArray
    """Per sequence, the number of its candidate."""
    start: IntArray
    """Per sequence, the candidate's token at which it starts."""
    lengths: IntArray

    @classmethod
    def for_question(
        cls, tokenizer: WordPiece, question: str, candidates: Sequence[str], *, positions: int
    ) -> TokenSequences:
        """The sequences of one question's candidates; see `for_requests`."""
        return cls.for_requests(tokenizer, [(question, candidates)], positions=positions)

    @classmethod
    def for_requests(
        cls,
        tokenizer: WordPiece,
        requests: Iterable[tuple[str, Sequence[str]]],
        *,
        positions: int,
        max_length: int = MAX_SEQUENCE_LENGTH,
    ) -> TokenSequences:
        """
        Tokenize several questions and their candidates, each text once.

        Candidates are numbered consecutively over all requests. `positions` is the number of
        position embeddings. A question is truncated to half of a sequence (126 tokens).
        """
        overlap, max_length = max_length // 4, min(max_length, positions)
        max_windows = MAX_CANDIDATE_TOKENS // max_length
        prefixes, suffixes = list[IntArray](), list[IntArray]()
        owners, starts = list[int](), list[int]()
        numbers = count()
        for question, candidates in requests:
            question_ids = tokenizer.token_ids(question)[: (max_length - _SPECIAL_TOKENS) // 2]
            prefix = np.array([tokenizer.cls_id, *question_ids, tokenizer.sep_id], np.int64)
            room = max_length - _SPECIAL_TOKENS - len(question_ids)
            for candidate, number in zip(candidates, numbers, strict=False):
                token_ids = tokenizer.token_ids(candidate)
                windows = list(window_starts(len(token_ids), room, overlap))
                if len(windows) > max_windows:
                    windows = best_windows(question_ids, token_ids, windows, room, max_windows)
                for start in windows:
                    part = [*token_ids[start : start + room], tokenizer.sep_id]
                    suffixes.append(np.array(part, np.int64))
                    prefixes.append(prefix)
                    owners.append(number)
                    starts.append(start)
        lengths = [len(prefix) + len(own) for prefix, own in zip(prefixes, suffixes, strict=True)]
        return cls(
            tuple(prefixes),
            tuple(suffixes),
            np.array(owners, np.int64),
            np.array(starts, np.int64),
            np.array(lengths, np.int64),
        )

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.suffixes)

    def tokens(self, candidates: int) -> IntArray:
        """(candidates,): the tokens of each candidate's sequences together."""
        return np.bincount(self.candidate, self.lengths, candidates).astype(np.int64)

    def batch(self, sequences: IntArray) -> tuple[IntArray, IntArray]:
        """Token ids and token types, (batch, tokens), of sequences that all have one length."""
        token_ids = np.empty((len(sequences), int(self.lengths[sequences[0]])), np.int64)
        token_types = np.zeros_like(token_ids)
        for row, sequence in enumerate(sequences.tolist()):
            begin = len(self.prefixes[sequence])
            token_ids[row, :begin] = self.prefixes[sequence]
            token_ids[row, begin:] = self.suffixes[sequence]
            token_types[row, begin:] = 1
        return token_ids, token_types


def window_starts(tokens: int, room: int, overlap: int) -> Iterator[int]:
    """
    The tokens at which a candidate's sequences start.

    The last sequence ends with the last token and is as long as the others. Neighboring sequences
    overlap, so that no sentence is cut in both of them.
    """
    step = room - min(overlap, room // 3)
    last = max(0, tokens - room)
    yield from range(0, last, step)
    yield last


def best_windows(
    question_ids: Sequence[int],
    token_ids: Sequence[int],
    starts: Sequence[int],
    room: int,
    keep: int,
) -> list[int]:
    """
    The starts of the `keep` windows with the highest BM25 score, in ascending order.

    The windows are the collection, and all have the same length. Of equal windows, the earlier ones
    are kept. The cost is one pass over the candidate per distinct question token.
    """
    tokens, begins = np.asarray(token_ids), np.asarray(starts)
    scores = np.zeros(len(begins))
    for question_id in sorted(set(question_ids)):
        counted = np.concatenate([[0], np.cumsum(tokens == question_id)])
        frequency = counted[np.minimum(begins + room, len(tokens))] - counted[begins]
        windows = int(np.count_nonzero(frequency))
        idf = np.log1p((len(begins) - windows + 0.5) / (windows + 0.5))
        scores += idf * frequency / (frequency + _BM25_K1)
    best = np.argsort(-scores, kind="stable")[:keep]
    return [int(start) for start in np.sort(begins[best])]


_MAX_QUESTION = 126  # tokens, as for independent candidates
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


_MAX_SPAN_TOKENS = 30  # 99.9 % of SQuAD's answers are shorter


class TokenSpan(NamedTuple):
    """The first and last token of a span, and the log probabilities as in `askline.types.Span`."""

    start: int
    end: int
    score: float
    no_answer: float

    def shifted(self, by: int) -> TokenSpan:
        """The same span, with tokens counted from another one."""
        return self._replace(start=self.start + by, end=self.end + by)


def best_span(logits: NDArray[np.float32], begin: int) -> TokenSpan | None:
    """
    The most probable span of a candidate whose tokens go from `begin` to the last but one.

    `logits` is (tokens, 2): start and end. The first token means "no answer here". Only it and the
    candidate's tokens share the probability. None if the candidate has no tokens.
    """
    allowed = np.concatenate([logits[:1], logits[begin:-1]]).astype(np.float64)
    count = len(allowed) - 1
    if count < 1:
        return None
    log_probabilities = allowed - np.logaddexp.reduce(allowed, axis=0)
    starts, ends = log_probabilities[1:, 0], log_probabilities[1:, 1]
    scores = starts[:, None] + ends[None, :]  # (first, last)
    place = np.arange(count)
    length = place[None, :] - place[:, None]
    scores[(length < 0) | (length >= _MAX_SPAN_TOKENS)] = -np.inf
    first, last = divmod(int(scores.argmax()), count)
    no_answer = float(log_probabilities[0].sum())
    return TokenSpan(begin + first, begin + last, float(scores[first, last]), no_answer)
