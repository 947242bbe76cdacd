"""
WordPiece tokenization as BERT does it, in plain Python, from a model's `tokenizer.json`.

A text is split at white space, and the tokens of each part are cached: sentences of one language
repeat the same words, so most of a text costs a dictionary lookup. Special tokens such as "[SEP]"
inside a text are read as plain characters.
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

_NOT_SPACE = re.compile(r"\S+")
_MAX_CACHED_PARTS = 65_536  # a full cache is emptied
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
            tokens = cache.get(part) or self._tokenize_part(part)
            ids += tokens[0]
        return ids

    def tokens_with_offsets(self, text: str) -> list[Token]:
        """The same tokens with offsets: a token was read from `text[start:end]`."""
        cleaned = _remove_control_characters(text)
        offset = [at for at, one in enumerate(text) if cleaned == text or not _is_control(one)]
        return [
            (id_, offset[match.start() + start], offset[match.start() + end - 1] + 1)
            for match in _NOT_SPACE.finditer(cleaned)
            for id_, start, end in (
                self._cache.get(match.group()) or self._tokenize_part(match.group())
            )[1]
        ]

    def _tokenize_part(self, part: str) -> _Part:
        """Tokenize a part without white space, and cache the result."""
        tokens: list[Token] = []
        word: list[tuple[str, int]] = []
        for at, one in enumerate(part):
            for character in self._normalize(one):
                if _is_ideograph(one) or _is_punctuation(character):
                    tokens += self._tokenize_word(word)
                    tokens += self._tokenize_word([(character, at)])
                    word = []
                else:
                    word.append((character, at))
        tokens += self._tokenize_word(word)
        if len(self._cache) >= _MAX_CACHED_PARTS:
            self._cache.clear()
        cached = self._cache[part] = ([id_ for id_, _, _ in tokens], tokens)
        return cached

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

    def _normalize(self, one: str) -> str:
        if self.strip_accents:
            decomposed = unicodedata.normalize("NFD", one)
            one = "".join(mark for mark in decomposed if unicodedata.category(mark) != "Mn")
        return "".join(character.lower() for character in one) if self.lowercase else one


def _remove_control_characters(text: str) -> str:
    """The text without control and format characters; white space stays as it is."""
    if text.isprintable() and "\ufffd" not in text:
        return text
    return "".join(one for one in text if not _is_control(one))


def _is_control(one: str) -> bool:
    return one == "\ufffd" or (unicodedata.category(one)[0] == "C" and one not in "\t\n\r")


def _is_punctuation(one: str) -> bool:
    if one.isascii():
        return one.isprintable() and not one.isalnum() and one != " "
    return unicodedata.category(one)[0] == "P"


def _is_ideograph(one: str) -> bool:
    return any(first <= ord(one) <= last for first, last in _IDEOGRAPHS)


def _read_entries(path: Path) -> dict[str, Any]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
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
