"""
Tokenization: tokenizer files, and texts as windows of tokens with character offsets.

An encoder takes a few hundred tokens at a time, so a longer text becomes overlapping windows. Each
phrase belongs to the one window that has the most context around it: no phrase is found twice, and
none is lost at a boundary. Offsets are characters of the text as given, whatever the tokenizer does
to accents, case or spaces.
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

MAX_PHRASE_TOKENS = 40
"""99.97 % of the answers in SQuADShifts are not longer."""
_MAX_QUESTION_TOKENS = 64  # one of the 27,626 questions in SQuADShifts has more
_PIECE_CHARACTERS = 50_000  # tokenized at a time, to save memory on long texts
_WHITE_SPACE = re.compile(r"\s")
_FIRST_UNSPACED_CODE = 0x2E80  # scripts from here on write words without spaces
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]


# Tokenizers


def load_tokenizer(folder: str | PathLike[str]) -> Any:
    """
    The tokenizer of a folder, an object with methods of `tokenizers.Tokenizer`.

    A WordPiece tokenizer of BERT needs no further library; all others need `tokenizers`. Truncation
    and padding are switched off: the files of many sentence encoders truncate at 128 tokens, which
    would silently lose the rest of a text.
    """
    path = Path(folder).expanduser() / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{path} is missing. Copy the folder again.")
    try:
        return _WordPieceTokenizer(WordPiece.load(path), path)
    except ModelError:
        return _load_with_library(path)


def tokenize_question(text: str, tokenizer: Any) -> Ints:
    """The tokens of a question with special tokens; the end of a very long one is cut."""
    ids = tokenizer.encode(text).ids
    return np.array([*ids[: _MAX_QUESTION_TOKENS - 1], ids[-1]][: len(ids)], np.int32)


def _load_with_library(path: Path) -> Any:
    library = require_extra("tokenizers", purpose="Reading this tokenizer", extra="phrases")
    try:
        tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"{path} is not a tokenizer ({error}).") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@dataclass(frozen=True, slots=True)
class _Encoding:
    ids: list[int]
    offsets: list[tuple[int, int]]


class _WordPieceTokenizer:
    """WordPiece with the method names of `tokenizers.Tokenizer`."""

    def __init__(self, word_piece: WordPiece, path: Path) -> None:
        self._word_piece, self._path = word_piece, path

    def encode(self, text: str, *, add_special_tokens: bool = True) -> _Encoding:
        tokens = self._word_piece.tokens_with_offsets(text)
        ids = [token_id for token_id, _, _ in tokens]
        offsets = [(start, end) for _, start, end in tokens]
        if not add_special_tokens:
            return _Encoding(ids, offsets)
        cls_id, sep_id = self._word_piece.cls_id, self._word_piece.sep_id
        return _Encoding([cls_id, *ids, sep_id], [(0, 0), *offsets, (0, 0)])

    def get_vocab_size(self) -> int:
        return max(self._word_piece.vocabulary.values()) + 1

    def token_to_id(self, token: str) -> int | None:
        return self._word_piece.vocabulary.get(token)

    def to_str(self) -> str:
        """The content of the tokenizer file."""
        return self._path.read_text("utf-8")


# Windows


@dataclass(frozen=True, slots=True, eq=False)
class TokenWindow:
    """A part of a text as tokens, special tokens included; every array is (tokens,)."""

    tokens: Ints
    starts: Ints
    """The first character of each token in the text; 0 for a special token."""
    ends: Ints
    """The character after each token; 0 for a special token."""
    may_start: Flags
    """Whether a phrase may start with this token: a word starts here, in the window's own part."""
    may_end: Flags
    """Whether a phrase may end with this token: a word ends here."""

    def __len__(self) -> int:
        return len(self.tokens)


def cut_windows(
    text: str, tokenizer: Any, *, size: int = 384, overlap: int = 128
) -> list[TokenWindow]:
    """
    The windows of a text, in order; an empty list for a text without tokens.

    `tokenizer` has the methods of a `tokenizers.Tokenizer`. `size` includes the special tokens. The
    longest phrase must fit into half of the overlap.
    """
    return list(iterate_windows(text, tokenizer, size=size, overlap=overlap))


def iterate_windows(
    text: str, tokenizer: Any, *, size: int = 384, overlap: int = 128
) -> Iterator[TokenWindow]:
    """The same one by one, for texts whose windows do not fit into memory together."""
    before, after = _special_tokens(tokenizer)
    capacity = size - len(before) - len(after)
    if overlap < 2 * MAX_PHRASE_TOKENS or capacity <= overlap:
        raise InputError(
            f"overlap must be from {2 * MAX_PHRASE_TOKENS} to under {capacity} "
            f"(size less special tokens), got {overlap}."
        )
    tokens, starts, ends = _tokenize(text, tokenizer)
    characters = _CharacterProperties(text)
    starts, ends = characters.without_spaces(starts, characters.ends_after_marks(ends))
    word_starts, word_ends = characters.word_boundaries(starts, ends)
    for first, last, own_first, own_last in _window_ranges(len(tokens), capacity, overlap):
        own = np.zeros(last - first, bool)
        own[own_first - first : own_last - first] = True
        body = slice(first, last)
        yield TokenWindow(
            np.concatenate([before, tokens[body], after]),
            _pad(starts[body], before, after),
            _pad(ends[body], before, after),
            _pad(word_starts[body] & own, before, after),
            _pad(word_ends[body], before, after),
        )


def default_overlap(size: int) -> int:
    """The overlap for windows of this size: 128 tokens, or less for small windows."""
    return max(2 * MAX_PHRASE_TOKENS, min(128, size - 64))


def _window_ranges(count: int, capacity: int, overlap: int) -> Iterator[tuple[int, int, int, int]]:
    """For each window its token range, then the range of tokens that belong to it alone."""
    first = own_first = 0
    while own_first < count:
        last = min(first + capacity, count)
        own_last = count if last == count else last - overlap // 2
        yield first, last, own_first, own_last
        own_first, first = own_last, own_last - overlap // 2


def _tokenize(text: str, tokenizer: Any) -> tuple[Ints, Ints, Ints]:
    ids: list[Ints] = [np.zeros(0, np.int32)]
    offsets: list[Ints] = [np.zeros((0, 2), np.int32)]
    for start, piece in _pieces(text):
        found = tokenizer.encode(piece, add_special_tokens=False)
        ids.append(np.array(found.ids, np.int32))
        offsets.append(np.array(found.offsets, np.int32).reshape(-1, 2) + start)
    places = np.concatenate(offsets)
    return np.concatenate(ids), places[:, 0].copy(), places[:, 1].copy()


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The text in pieces with their offsets, cut at white space, where no token is cut."""
    start = 0
    while start < len(text):
        space = _WHITE_SPACE.search(text, start + _PIECE_CHARACTERS)
        end = (
            space.start()
            if space and space.start() < start + 2 * _PIECE_CHARACTERS
            else start + 2 * _PIECE_CHARACTERS
        )
        yield start, text[start:end]
        start = end


def _special_tokens(tokenizer: Any) -> tuple[Ints, Ints]:
    """The special tokens before and after a text."""
    plain = tokenizer.encode("a", add_special_tokens=False).ids
    whole = tokenizer.encode("a").ids
    at = next((at for at in range(len(whole)) if whole[at : at + len(plain)] == plain), len(whole))
    after = whole[at + len(plain) :]
    return np.array(whole[:at], np.int32), np.array(after, np.int32)


class _CharacterProperties:
    """Properties of the characters of a text; each distinct character is looked up once."""

    def __init__(self, text: str) -> None:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        known, places = np.unique(codes, return_inverse=True)
        marks = np.array([_is_mark(code) for code in known.tolist()], bool)
        # In a script without spaces, a word may start at any character.
        letters = np.array([chr(code).isalnum() for code in known.tolist()], bool)
        joins = (letters | marks) & (known < _FIRST_UNSPACED_CODE)
        spaces = np.array([chr(code).isspace() for code in known.tolist()], bool)
        self._spaces: Flags = spaces[places.ravel()]
        self._marks: Flags = marks[places.ravel()]
        self._joins: Flags = joins[places.ravel()]

    def ends_after_marks(self, ends: Ints) -> Ints:
        """Move ends behind combining marks of the last character, which tokenizers drop."""
        if not self._marks.any():
            return ends
        count = len(self._marks)
        behind = np.where(np.append(self._marks, False), count, np.arange(count + 1))
        behind = np.minimum.accumulate(behind[::-1])[::-1]  # the next position without a mark
        return behind[ends].astype(np.int32)

    def without_spaces(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """Offsets without spaces: SentencePiece includes the space before a word."""
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

    def word_boundaries(self, starts: Ints, ends: Ints) -> tuple[Flags, Flags]:
        """Whether each token starts and whether it ends a word; empty tokens do neither."""
        inside = np.zeros(len(self._joins) + 1, bool)
        # Inside a word: both neighbors are word characters, or a mark follows its character.
        inside[1:-1] = (self._joins[:-1] & self._joins[1:]) | self._marks[1:]
        filled = ends > starts
        return ~inside[starts] & filled, ~inside[ends] & filled


def _is_mark(code: int) -> bool:
    """Whether it combines with the character before: accents, vowel signs, skin tones."""
    return unicodedata.category(chr(code))[0] == "M" or 0x1F3FB <= code <= 0x1F3FF


def _pad(values: NDArray[Any], before: Ints, after: Ints) -> NDArray[Any]:
    """Add zeros for the special tokens."""
    padded = np.zeros(len(before) + len(values) + len(after), values.dtype)
    padded[len(before) : len(before) + len(values)] = values
    return padded
