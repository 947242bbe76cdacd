"""
Tokenisers as files: `tokenizer.json`, whatever the family.

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
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.tokenizer import WordPiece
from ..errors import InputError, ModelError, require_extra

__all__ = [
    "MAX_PHRASE_TOKENS",
    "TokenWindow",
    "cut_windows",
    "default_overlap",
    "iterate_windows",
    "load_tokenizer",
    "tokenize_question",
]

_LONGEST_QUESTION = 64  # tokens; one of SQuADShifts' 27,626 questions has more


def load_tokenizer(folder: str | PathLike[str]) -> Any:
    """
    What makes tokens of a text, with the methods of a `tokenizers.Tokenizer` that are used here.

    BERT's own WordPiece is read without that library, which every other family needs. Nothing is
    cut and nothing padded: files of sentence encoders often say to cut at 128 tokens, which would
    lose the text behind without a word.
    """
    path = Path(folder).expanduser() / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{path} is missing. Copy the folder again.")
    try:
        return _Plain(WordPiece.load(path), path)
    except ModelError:
        return _from_library(path)


def tokenize_question(text: str, tokeniser: Any) -> NDArray[np.int32]:
    """A question with its special tokens; what a very long one says at its end is not read."""
    ids = tokeniser.encode(text).ids
    return np.array([*ids[: _LONGEST_QUESTION - 1], ids[-1]][: len(ids)], np.int32)


def _from_library(path: Path) -> Any:
    library = require_extra("tokenizers", purpose="Reading this tokeniser", extra="phrases")
    try:
        tokeniser = library.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise ModelError(f"{path} is no tokeniser ({error}).") from error
    tokeniser.no_truncation()
    tokeniser.no_padding()
    return tokeniser


@dataclass(frozen=True, slots=True)
class _Encoding:
    ids: list[int]
    offsets: list[tuple[int, int]]


class _Plain:
    """WordPiece behind the library's methods."""

    def __init__(self, pieces: WordPiece, path: Path) -> None:
        self._pieces, self._path = pieces, path

    def encode(self, text: str, *, add_special_tokens: bool = True) -> _Encoding:
        found = self._pieces.tokens_with_offsets(text)
        ids = [number for number, _, _ in found]
        offsets = [(start, end) for _, start, end in found]
        if not add_special_tokens:
            return _Encoding(ids, offsets)
        return _Encoding(
            [self._pieces.cls_id, *ids, self._pieces.sep_id], [(0, 0), *offsets, (0, 0)]
        )

    def get_vocab_size(self) -> int:
        return max(self._pieces.vocabulary.values()) + 1

    def to_str(self) -> str:
        """The text of the file it came from."""
        return self._path.read_text("utf-8")


MAX_PHRASE_TOKENS = 40
"""Tokens of the longest phrase; 99.97 % of the answers in SQuADShifts have no more."""
_PIECE = 50_000  # characters tokenised at a time, so that 10 MB need no gigabyte of tokens
_SPACE = re.compile(r"\s")
_SPACELESS = 0x2E80
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TokenWindow:
    """Tokens of a stretch of text, one row of each array a token, special tokens included."""

    tokens: Ints
    starts: Ints
    """First character of each token in the text; 0 for a special token."""
    ends: Ints
    may_start: Flags
    """Whether a phrase may begin at this token: a word begins here, and it is this window's own."""
    may_end: Flags
    """Whether a phrase may end with this token: a word ends here."""

    def __len__(self) -> int:
        return len(self.tokens)


def cut_windows(
    text: str, tokeniser: Any, *, size: int = 384, overlap: int = 128
) -> list[TokenWindow]:
    """
    The windows of a text, in order; none where the text has no token.

    `tokeniser` is a `tokenizers.Tokenizer`, `size` counts the special tokens in. Half the overlap
    must hold the longest phrase.
    """
    return list(iterate_windows(text, tokeniser, size=size, overlap=overlap))


def iterate_windows(
    text: str, tokeniser: Any, *, size: int = 384, overlap: int = 128
) -> Iterator[TokenWindow]:
    """The same one by one, for texts too long to hold the windows of."""
    before, after = _special(tokeniser)
    room = size - len(before) - len(after)
    if overlap < 2 * MAX_PHRASE_TOKENS or room <= overlap:
        raise InputError(
            f"overlap must be from {2 * MAX_PHRASE_TOKENS} to under {room} "
            f"(size less special tokens), got {overlap}."
        )
    tokens, starts, ends = _tokens(text, tokeniser)
    characters = _Characters(text)
    starts, ends = characters.without_spaces(starts, characters.behind_marks(ends))
    opens, closes = characters.edges(starts, ends)
    for first, last, own_first, own_last in _cuts(len(tokens), room, overlap):
        own = np.zeros(last - first, bool)
        own[own_first - first : own_last - first] = True
        body = slice(first, last)
        yield TokenWindow(
            np.concatenate([before, tokens[body], after]),
            _pad(starts[body], before, after),
            _pad(ends[body], before, after),
            _pad(opens[body] & own, before, after),
            _pad(closes[body], before, after),
        )


def default_overlap(size: int) -> int:
    """The overlap of windows of this size: a third of the usual ones, less where they are small."""
    return max(2 * MAX_PHRASE_TOKENS, min(128, size - 64))


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


class _Characters:
    """What the characters of a text say about its words; each that occurs is looked up once."""

    def __init__(self, text: str) -> None:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        known, places = np.unique(codes, return_inverse=True)
        marks = np.array([_is_mark(code) for code in known.tolist()], bool)
        # Scripts from 0x2E80 on write their words without spaces: any character may begin one.
        letters = np.array([chr(code).isalnum() for code in known.tolist()], bool)
        joins = (letters | marks) & (known < _SPACELESS)
        spaces = np.array([chr(code).isspace() for code in known.tolist()], bool)
        self._spaces: Flags = spaces[places.ravel()]
        self._marks: Flags = marks[places.ravel()]
        self._joins: Flags = joins[places.ravel()]

    def behind_marks(self, ends: Ints) -> Ints:
        """Ends behind the marks that belong to the last character, which tokenisers drop."""
        if not self._marks.any():
            return ends
        count = len(self._marks)
        behind = np.where(np.append(self._marks, False), count, np.arange(count + 1))
        behind = np.minimum.accumulate(behind[::-1])[::-1]  # the next place without a mark
        return behind[ends].astype(np.int32)

    def without_spaces(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """Places of the words alone: SentencePiece counts the space before a word to it."""
        count = len(self._spaces)
        spaces = np.append(self._spaces, False)
        if not spaces[starts].any():
            return starts, ends
        ahead = np.where(spaces, count, np.arange(count + 1))
        ahead = np.minimum.accumulate(ahead[::-1])[::-1]
        back = np.where(np.append(False, self._spaces), 0, np.arange(count + 1))
        first = ahead[starts].astype(np.int32)
        last = np.maximum.accumulate(back)[ends].astype(np.int32)
        return first, np.maximum(first, last)

    def edges(self, starts: Ints, ends: Ints) -> tuple[Flags, Flags]:
        """Tokens that begin and that end a word; a token without characters does neither."""
        inside = np.zeros(len(self._joins) + 1, bool)
        # Both sides of a place belong to one word, or a mark to what stands before it.
        inside[1:-1] = (self._joins[:-1] & self._joins[1:]) | self._marks[1:]
        filled = ends > starts
        return ~inside[starts] & filled, ~inside[ends] & filled


def _is_mark(code: int) -> bool:
    """Whether it belongs to the character before: accents, vowel signs, an emoji's colour."""
    return unicodedata.category(chr(code))[0] == "M" or 0x1F3FB <= code <= 0x1F3FF


def _pad(values: NDArray[Any], before: Ints, after: Ints) -> NDArray[Any]:
    """Zeros for the special tokens."""
    return np.pad(values, (len(before), len(after)))
