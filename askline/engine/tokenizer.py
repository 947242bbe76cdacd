"""
WordPiece tokenization as BERT does it, in plain Python, from a model's `tokenizer.json`.

A text is split at white space, and the tokens of each part are cached: sentences of one language
repeat the same words, so most of a text costs a dictionary lookup. Special tokens such as "[SEP]"
inside a text are read as plain characters.

A part without white space can be as long as the text. A long part is split once more, at characters
that are tokens of their own wherever they stand, so that its cost and the cache stay small.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import ModelError

__all__ = [
    "WordPiece",
]

_NOT_SPACE = re.compile(r"\S+")
_MAX_CACHED_PARTS = 65_536  # a full cache is emptied
_MAX_CACHED_LENGTH = 100  # characters; a longer part is rarely repeated, and may be very long
_COMPONENTS = {
    "model": "WordPiece",
    "normalizer": "BertNormalizer",
    "pre_tokenizer": "BertPreTokenizer",
}
# The CJK ideographs that are words of their own, as BERT's authors list them.
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

Token = tuple[int, int, int]
"""A token's id, and its start and end in the text."""
_Part = tuple[list[int], list[Token]]  # the ids alone, which are needed most often, and the tokens


@dataclass(frozen=True, slots=True, eq=False)
class WordPiece:
    """A WordPiece vocabulary and its rules. Threads may share one."""

    vocabulary: Mapping[str, int]
    cls_id: int
    sep_id: int
    unknown_id: int
    lowercase: bool = True
    strip_accents: bool = True
    prefix: str = "##"
    """Before a token that continues a word."""
    max_word_length: int = 100
    """In characters; longer words become the unknown token."""
    _cache: dict[str, _Part] = field(default_factory=dict, repr=False)
    _characters: dict[str, list[tuple[str, bool]]] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> WordPiece:
        """Read a `tokenizer.json`; raises ModelError if it is not BERT's WordPiece."""
        entries = _read_entries(Path(path))
        model, normalizer = entries["model"], entries["normalizer"]
        vocabulary: dict[str, int] = model["vocab"]
        special = ("[CLS]", "[SEP]", model["unk_token"])
        missing = [token for token in special if vocabulary.get(token) is None]
        if missing:
            raise ModelError(f"{path} must have {', '.join(missing)} in its vocabulary.")
        lowercase = bool(normalizer.get("lowercase", True))
        strip = normalizer.get("strip_accents")
        return cls(
            vocabulary,
            cls_id=vocabulary["[CLS]"],
            sep_id=vocabulary["[SEP]"],
            unknown_id=vocabulary[model["unk_token"]],
            lowercase=lowercase,
            strip_accents=lowercase if strip is None else bool(strip),
            prefix=model.get("continuing_subword_prefix", "##"),
            max_word_length=model.get("max_input_chars_per_word", 100),
        )

    def token_ids(self, text: str) -> list[int]:
        """The ids of a text's tokens, without special tokens."""
        cache, ids = self._cache, list[int]()
        for part in _remove_control_characters(text).split():
            tokens = cache.get(part)
            if tokens is not None:
                ids += tokens[0]
            else:
                for _, piece in self._pieces(part):
                    ids += self._tokens_of(piece)[0]
        return ids

    def tokens_with_offsets(self, text: str) -> list[Token]:
        """The same tokens with offsets: a token was read from `text[start:end]`."""
        cleaned = _remove_control_characters(text)
        offset: Sequence[int] = range(len(text))
        if cleaned != text:
            offset = [at for at, one in enumerate(text) if not _is_control(one)]
        return [
            (id_, offset[at + start], offset[at + end - 1] + 1)
            for match in _NOT_SPACE.finditer(cleaned)
            for begin, piece in self._pieces(match.group())
            for at in (match.start() + begin,)
            for id_, start, end in self._tokens_of(piece)[1]
        ]

    def count_tokens(self, texts: Iterable[str], *, limit: int) -> int:
        """The number of tokens of all texts; counting ends once there are more than `limit`."""
        cache, count = self._cache, 0
        for text in texts:
            for part in _remove_control_characters(text).split():
                tokens = cache.get(part)
                if tokens is not None:
                    count += len(tokens[0])
                    continue
                for _, piece in self._pieces(part):
                    count += len(self._tokens_of(piece)[0])
                    if count > limit:
                        return count
            if count > limit:
                return count
        return count

    def _pieces(self, part: str) -> Iterator[tuple[int, str]]:
        """
        A part, or the pieces of a long part with their offsets.

        Tokenized one by one, the pieces give the same tokens as the whole part.
        """
        if len(part) <= _MAX_CACHED_LENGTH:
            yield 0, part
            return
        pattern = _long_part_pattern(ascii_only=part.isascii(), strip_accents=self.strip_accents)
        for match in pattern.finditer(part):
            yield match.start(), match.group()

    def _tokens_of(self, piece: str) -> _Part:
        """The tokens of a piece, from the cache if it is there."""
        cached = self._cache.get(piece)
        if cached is not None:
            return cached
        if self._is_unknown_word(piece):
            return [self.unknown_id], [(self.unknown_id, 0, len(piece))]
        tokens = self._tokenize_piece(piece)
        found = ([id_ for id_, _, _ in tokens], tokens)
        if len(piece) <= _MAX_CACHED_LENGTH:
            if len(self._cache) >= _MAX_CACHED_PARTS:
                self._cache.clear()
            self._cache[piece] = found
        return found

    def _is_unknown_word(self, piece: str) -> bool:
        """
        Whether a piece is certainly one word that is too long, without tokenizing it.

        A long piece has no separator of the Basic Multilingual Plane in it.
        """
        too_long = max(self.max_word_length, _MAX_CACHED_LENGTH)
        return len(piece) > too_long and piece.isalnum() and max(piece) <= "\uffff"

    def _tokenize_piece(self, piece: str) -> list[Token]:
        """Tokenize a piece without white space, character by character."""
        tokens: list[Token] = []
        word: list[tuple[str, int]] = []
        for at, one in enumerate(piece):
            for character, is_word in self._characters_of(one):
                if is_word:
                    tokens += self._tokenize_word(word)
                    tokens += self._tokenize_word([(character, at)])
                    word = []
                else:
                    word.append((character, at))
        return tokens + self._tokenize_word(word)

    def _tokenize_word(self, word: list[tuple[str, int]]) -> list[Token]:
        """
        Longest match first; a word that cannot be covered becomes the unknown token.

        `word` has characters with their offsets.
        """
        if not word:
            return []
        text = "".join(character for character, _ in word)
        unknown = [(self.unknown_id, word[0][1], word[-1][1] + 1)]
        if len(text) > self.max_word_length:
            return unknown
        tokens, start = list[Token](), 0
        while start < len(text):
            prefix = self.prefix if start else ""
            for end in range(len(text), start, -1):
                id_ = self.vocabulary.get(prefix + text[start:end])
                if id_ is not None:
                    break
            else:
                return unknown
            tokens.append((id_, word[start][1], word[end - 1][1] + 1))
            start = end
        return tokens

    def _characters_of(self, one: str) -> list[tuple[str, bool]]:
        """A character as the vocabulary has it, and whether it is a word of its own."""
        found = self._characters.get(one)
        if found is None:
            normalized = self._normalize(one)
            found = [(each, _is_ideograph(one) or _is_punctuation(each)) for each in normalized]
            if len(self._characters) >= _MAX_CACHED_PARTS:
                self._characters.clear()
            self._characters[one] = found
        return found

    def _normalize(self, one: str) -> str:
        if self.strip_accents:
            one = _strip_accents(one)
        return "".join(character.lower() for character in one) if self.lowercase else one


def _remove_control_characters(text: str) -> str:
    """The text without control and format characters; white space stays as it is."""
    if text.replace("\n", "").isprintable() and "\ufffd" not in text:
        return text
    return "".join(one for one in text if not _is_control(one))


def _is_control(one: str) -> bool:
    return one == "\ufffd" or (unicodedata.category(one)[0] == "C" and one not in "\t\n\r")


def _is_punctuation(one: str) -> bool:
    if one.isascii():
        return one.isprintable() and not one.isalnum() and one != " "
    return unicodedata.category(one)[0] == "P"


def _strip_accents(one: str) -> str:
    decomposed = unicodedata.normalize("NFD", one)
    return "".join(mark for mark in decomposed if unicodedata.category(mark) != "Mn")


@cache
def _long_part_pattern(*, ascii_only: bool, strip_accents: bool) -> re.Pattern[str]:
    """
    The pieces of a long part: characters that are words of their own, and what is between them.

    These are punctuation and ideographs of the Basic Multilingual Plane. Others are left to
    `_tokenize_piece`.
    """
    last = 0x80 if ascii_only else 0x10000
    separators = [
        one
        for one in map(chr, range(0x21, last))
        if not one.isalnum()
        and (normalized := _strip_accents(one) if strip_accents else one)
        and all(map(_is_punctuation, normalized))
    ]
    ranges = (
        ""
        if ascii_only
        else "".join(f"{chr(first)}-{chr(end)}" for first, end in _IDEOGRAPHS if end < last)
    )
    class_ = re.escape("".join(separators)) + ranges
    return re.compile(f"[{class_}]|[^{class_}]+")


def _is_ideograph(one: str) -> bool:
    return any(first <= ord(one) <= last for first, last in _IDEOGRAPHS)


def _read_entries(path: Path) -> dict[str, Any]:
    try:
        entries = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ModelError(f"No {path.name} in {path.parent}. Copy the folder again.") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a JSON object: {error}") from error
    types = [
        (entries.get(component) or {}).get("type") if isinstance(entries, dict) else None
        for component in _COMPONENTS
    ]
    if types != list(_COMPONENTS.values()):
        expected = list(_COMPONENTS.values())
        raise ModelError(f"{path} must be a tokenizer of {expected}, got {types}.")
    return dict(entries)
