"""
WordPiece, as BERT's encoders read text, from their `tokenizer.json`, in plain Python.

A text is split at white space, and each part is cut once and remembered: sentences of one language
meet the same parts again and again, so that a text costs little more than its split. Marks such as
"[SEP]" inside a text are read as plain characters, never as the mark.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import ModelError

__all__ = [
    "WordPiece",
]

_PART = re.compile(r"\S+")
_REMEMBERED = 65_536  # parts; beyond, the memory starts anew
# The ideographs that stand for words of their own, as BERT's authors list them.
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

Piece = tuple[int, int, int]
"""A piece's number in the vocabulary, and where it starts and ends in the text."""
_Cut = tuple[list[int], list[Piece]]  # the numbers alone, which are asked for most, and the pieces


@dataclass(frozen=True, slots=True, eq=False)
class WordPiece:
    """The vocabulary and its rules. What it remembers never changes what it gives."""

    vocabulary: Mapping[str, int]
    cls_id: int
    """The mark before a pair, whose state speaks for the whole."""
    sep_id: int
    unknown: int
    lower: bool = True
    strip_accents: bool = True
    prefix: str = "##"
    longest_word: int = 100
    _memory: dict[str, _Cut] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> WordPiece:
        """From a `tokenizer.json`; any other kind than BERT's own WordPiece is refused."""
        entries = _entries(Path(path))
        model, normaliser = entries["model"], entries["normalizer"]
        vocabulary: dict[str, int] = model["vocab"]
        marks = {mark: vocabulary.get(mark) for mark in ("[CLS]", "[SEP]", model["unk_token"])}
        missing = [mark for mark, number in marks.items() if number is None]
        if missing:
            raise ModelError(f"{path} must have {', '.join(missing)} in its vocabulary.")
        lower = bool(normaliser.get("lowercase", True))
        strip = normaliser.get("strip_accents")
        return cls(
            vocabulary,
            cls_id=vocabulary["[CLS]"],
            sep_id=vocabulary["[SEP]"],
            unknown=vocabulary[model["unk_token"]],
            lower=lower,
            strip_accents=lower if strip is None else bool(strip),
            prefix=model.get("continuing_subword_prefix", "##"),
            longest_word=model.get("max_input_chars_per_word", 100),
        )

    def token_ids(self, text: str) -> list[int]:
        """The pieces of a text, as their numbers."""
        remembered, found = self._memory, list[int]()
        for part in _clean(text).split():
            cut = remembered.get(part) or self._remember(part)
            found += cut[0]
        return found

    def tokens_with_offsets(self, text: str) -> list[Piece]:
        """The same pieces with their places: `text[start:end]` is what a piece was read from."""
        cleaned = _clean(text)
        place = [at for at, one in enumerate(text) if cleaned == text or not _is_unseen(one)]
        return [
            (number, place[match.start() + start], place[match.start() + end - 1] + 1)
            for match in _PART.finditer(cleaned)
            for number, start, end in (
                self._memory.get(match.group()) or self._remember(match.group())
            )[1]
        ]

    def _remember(self, part: str) -> _Cut:
        pieces = self._cut(part)
        if len(self._memory) >= _REMEMBERED:
            self._memory.clear()
        cut = self._memory[part] = ([number for number, _, _ in pieces], pieces)
        return cut

    def _cut(self, part: str) -> list[Piece]:
        """The pieces of a part without white space, with their places in it."""
        pieces: list[Piece] = []
        word: list[tuple[str, int]] = []
        for at, one in enumerate(part):
            for character in self._normalised(one):
                if _is_ideograph(one) or _is_punctuation(character):
                    pieces += self._word(word)
                    pieces += self._word([(character, at)])
                    word = []
                else:
                    word.append((character, at))
        return pieces + self._word(word)

    def _word(self, word: list[tuple[str, int]]) -> list[Piece]:
        """Longest pieces first; a word that does not come out in known pieces is unknown."""
        if not word:
            return []
        text = "".join(character for character, _ in word)
        whole = [(self.unknown, word[0][1], word[-1][1] + 1)]
        if len(text) > self.longest_word:
            return whole
        pieces, start = list[Piece](), 0
        while start < len(text):
            before = self.prefix if start else ""
            for end in range(len(text), start, -1):
                number = self.vocabulary.get(before + text[start:end])
                if number is not None:
                    break
            else:
                return whole
            pieces.append((number, word[start][1], word[end - 1][1] + 1))
            start = end
        return pieces

    def _normalised(self, one: str) -> str:
        if self.strip_accents:
            apart = unicodedata.normalize("NFD", one)
            one = "".join(mark for mark in apart if unicodedata.category(mark) != "Mn")
        return "".join(character.lower() for character in one) if self.lower else one


def _clean(text: str) -> str:
    """Without what nobody sees: control and format characters; white space stays as it is."""
    if text.isprintable() and "\ufffd" not in text:
        return text
    return "".join(one for one in text if not _is_unseen(one))


def _is_unseen(one: str) -> bool:
    return one == "\ufffd" or (unicodedata.category(one)[0] == "C" and one not in "\t\n\r")


def _is_punctuation(one: str) -> bool:
    if one.isascii():
        return one.isprintable() and not one.isalnum() and one != " "
    return unicodedata.category(one)[0] == "P"


def _is_ideograph(one: str) -> bool:
    return any(first <= ord(one) <= last for first, last in _IDEOGRAPHS)


def _entries(path: Path) -> dict[str, Any]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"No {path.name} in {path.parent}. Copy the folder again.") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a JSON object: {error}") from error
    kinds = [
        (entries.get(part) or {}).get("type") if isinstance(entries, dict) else None
        for part in ("model", "normalizer", "pre_tokenizer")
    ]
    wanted = ["WordPiece", "BertNormalizer", "BertPreTokenizer"]
    if kinds != wanted:
        raise ModelError(f"{path} must be a tokenizer of {wanted}, got {kinds}.")
    return dict(entries)
