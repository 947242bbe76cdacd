"""
A text as token windows that know their characters.

An encoder takes a few hundred tokens at a time, so a longer text becomes windows that overlap, and
each phrase belongs to the one window that sees most around it: no phrase comes twice and none is
lost at a seam. Offsets are characters of the text as it was given, whatever the tokeniser did to
accents, case or spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

__all__ = ["LONGEST", "Window", "cut_windows", "each_window", "overlap_for"]

LONGEST = 40
"""Tokens of the longest phrase; 99.97 % of the answers in SQuADShifts have no more."""
_PIECE = 50_000  # characters tokenised at a time, so that 10 MB need no gigabyte of tokens
_SPACE = re.compile(r"\s")
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Tokens of a stretch of text, one row of each array a token, special tokens included."""

    tokens: Ints
    starts: Ints
    """First character of each token in the text; 0 for a special token."""
    ends: Ints
    opens: Flags
    """Whether a phrase may begin at this token: a word begins here, and it is this window's own."""
    closes: Flags
    """Whether a phrase may end with this token: a word ends here."""

    def __len__(self) -> int:
        return len(self.tokens)


def cut_windows(text: str, tokeniser: Any, *, size: int = 384, overlap: int = 128) -> list[Window]:
    """
    The windows of a text, in order; none where the text has no token.

    `tokeniser` is a `tokenizers.Tokenizer`, `size` counts the special tokens in. Half the overlap
    must hold the longest phrase.
    """
    return list(each_window(text, tokeniser, size=size, overlap=overlap))


def each_window(
    text: str, tokeniser: Any, *, size: int = 384, overlap: int = 128
) -> Iterator[Window]:
    """The same one by one, for texts too long to hold the windows of."""
    before, after = _special(tokeniser)
    room = size - len(before) - len(after)
    if overlap < 2 * LONGEST or room <= overlap:
        raise InputError(
            f"overlap must be from {2 * LONGEST} to under {room} (size less special tokens), "
            f"got {overlap}."
        )
    tokens, starts, ends = _tokens(text, tokeniser)
    ends = _with_marks(text, ends)
    opens, closes = _edges(text, starts, ends)
    for first, last, own_first, own_last in _cuts(len(tokens), room, overlap):
        own = np.zeros(last - first, bool)
        own[own_first - first : own_last - first] = True
        body = slice(first, last)
        yield Window(
            np.concatenate([before, tokens[body], after]),
            _pad(starts[body], before, after),
            _pad(ends[body], before, after),
            _pad(opens[body] & own, before, after),
            _pad(closes[body], before, after),
        )


def overlap_for(size: int) -> int:
    """The overlap of windows of this size: a third of the usual ones, less where they are small."""
    return max(2 * LONGEST, min(128, size - 64))


def _cuts(count: int, room: int, overlap: int) -> Iterator[tuple[int, int, int, int]]:
    """First and last token of each window, then of the part that is its own."""
    first = own_first = 0
    while own_first < count:
        last = min(first + room, count)
        own_last = count if last == count else last - overlap // 2
        yield first, last, own_first, own_last
        own_first, first = own_last, own_last - overlap // 2


def _tokens(text: str, tokeniser: Any) -> tuple[Ints, Ints, Ints]:
    ids: list[Ints] = [np.zeros(0, np.int32)]
    offsets: list[Ints] = [np.zeros((0, 2), np.int32)]
    for start, piece in _pieces(text):
        found = tokeniser.encode(piece, add_special_tokens=False)
        ids.append(np.array(found.ids, np.int32))
        offsets.append(np.array(found.offsets, np.int32).reshape(-1, 2) + start)
    places = np.concatenate(offsets)
    return np.concatenate(ids), places[:, 0].copy(), places[:, 1].copy()


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The text cut at white space, where no token is."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + _PIECE)
        end = space.start() if space and space.start() < start + 2 * _PIECE else start + 2 * _PIECE
        yield start, text[start:end]
        start = end


def _special(tokeniser: Any) -> tuple[Ints, Ints]:
    """What the tokeniser puts before and after one text."""
    plain = tokeniser.encode("a", add_special_tokens=False).ids
    whole = tokeniser.encode("a").ids
    at = next((at for at in range(len(whole)) if whole[at : at + len(plain)] == plain), len(whole))
    after = whole[at + len(plain) :]
    return np.array(whole[:at], np.int32), np.array(after, np.int32)


def _with_marks(text: str, ends: Ints) -> Ints:
    """Ends behind the combining marks that belong to the last letter, which tokenisers drop."""
    if text.isascii():
        return ends
    codes, places = _characters(text)
    marks = np.array([unicodedata.combining(chr(code)) > 0 for code in codes.tolist()], bool)
    if not marks.any():
        return ends
    behind = np.where(np.append(marks[places], False), len(text), np.arange(len(text) + 1))
    behind = np.minimum.accumulate(behind[::-1])[::-1]  # the next place without a mark
    return behind[ends].astype(np.int32)


def _characters(text: str) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The characters that occur, and for each place which of them stands there."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    known, places = np.unique(codes, return_inverse=True)
    return known, places.ravel()


def _edges(text: str, starts: Ints, ends: Ints) -> tuple[Flags, Flags]:
    """Tokens that begin and that end a word; a token without characters does neither."""
    known, places = _characters(text)
    # Scripts from 0x2E80 on write their words without spaces: any character may begin one.
    joins = np.array([chr(code).isalnum() and code < 0x2E80 for code in known.tolist()], bool)
    inner = joins[places]
    inside = np.zeros(len(text) + 1, bool)
    inside[1:-1] = inner[:-1] & inner[1:]  # both sides of a place belong to one word
    filled = ends > starts
    return ~inside[starts] & filled, ~inside[ends] & filled


def _pad(values: NDArray[Any], before: Ints, after: Ints) -> NDArray[Any]:
    """Zeros for the special tokens."""
    return np.pad(values, (len(before), len(after)))
