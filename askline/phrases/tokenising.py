"""Tokenisers as files: `tokenizer.json`, whatever the family."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, require_extra
from ..runtime.wordpiece import WordPiece

__all__ = ["load_tokeniser", "question_tokens"]

_LONGEST_QUESTION = 64  # tokens; one of SQuADShifts' 27,626 questions has more


def load_tokeniser(folder: str | PathLike[str]) -> Any:
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


def question_tokens(text: str, tokeniser: Any) -> NDArray[np.int32]:
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
        found = self._pieces.pieces(text)
        ids = [number for number, _, _ in found]
        offsets = [(start, end) for _, start, end in found]
        if not add_special_tokens:
            return _Encoding(ids, offsets)
        return _Encoding(
            [self._pieces.first, *ids, self._pieces.separator], [(0, 0), *offsets, (0, 0)]
        )

    def get_vocab_size(self) -> int:
        return max(self._pieces.vocabulary.values()) + 1

    def to_str(self) -> str:
        """The text of the file it came from."""
        return self._path.read_text("utf-8")
