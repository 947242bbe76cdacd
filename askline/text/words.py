"""
Word tokenization, as used by every lexical ranker.

The rule has the name `unicode-words`: normalize to NFKC, lowercase, take the maximal runs of
letters, digits and underscores. Punctuation is dropped and an apostrophe separates (`don't` becomes
`don`, `t`). Each Chinese, Japanese or Thai character is a word of its own, because these scripts
put no spaces between words.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

__all__ = [
    "STOP_WORDS",
    "TEXT_SEPARATOR",
    "TOKENIZER_NAME",
    "identifier_words",
    "identifier_words_flat",
    "normalize",
    "spaced_words",
    "split_identifiers",
    "split_words",
    "split_words_flat",
    "texts_with_identifiers",
]

TOKENIZER_NAME = "unicode-words"
"""The name under which model folders and result files cite this rule."""

TEXT_SEPARATOR = "\0"
"""Separates two texts in `split_words_flat`. It is not a word character, so no text produces it."""

STOP_WORDS = frozenset(
    """a an and are as at be been but by can could did do does for from had has have how i if in is
    it its may much many no not of on or should so than that the their them then there these they
    this those to us was we were what when where which while who whom whose why will with would you
    your

    au aux ce cela ces cette combien comment d dans de des du elle en est et il ils l la le les leur
    mais ne où ou par pas pour pourquoi qu quand que quel quelle quelles quels qui quoi sa se ses
    son sont sur un une""".split()
)
"""Words that say nothing about the subject of a question or a heading, question words included."""

_UNSPACED_SCRIPTS = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED_SCRIPTS}]|[^\W{_UNSPACED_SCRIPTS}]+")
# For ASCII the rule is one table lookup per byte: five times as fast as the pattern. A table for
# bytes has 256 entries.
_ASCII_TABLE = bytes(
    ord(chr(code).lower() if chr(code).isalnum() or code == ord("_") else " ")
    for code in range(128)
).ljust(256)


def split_words(text: str) -> list[str]:
    """The words of a text in order, with repetitions."""
    if text.isascii():
        return _spaced(text).split()
    return _WORD.findall(normalize(text))


def spaced_words(text: str) -> str:
    """The words of a text in order, separated by white space; faster than `split_words`."""
    if text.isascii():
        return _spaced(text)
    return " ".join(map(_spaced, text.splitlines()))  # most lines are pure ASCII


def _spaced(text: str) -> str:
    """The words of a line or a short text, separated by white space."""
    if text.isascii():
        return text.encode().translate(_ASCII_TABLE).decode()
    return " ".join(_WORD.findall(normalize(text)))


def split_identifiers(text: str) -> list[str]:
    """
    The words of a text, followed by the parts and the wholes of the identifiers in it.

    `max_retry_count` adds `max`, `retry` and `count`; `HTTPServer2` adds `http`, `server` and `2`;
    `foo.bar.baz` adds `foobarbaz` and `--dry-run` adds `dryrun`, because their parts are words
    already. Parts of one letter are left out.
    """
    return split_words(text) + identifier_words(text)


def identifier_words(text: str) -> list[str]:
    """What `split_identifiers` adds to the words of a text."""
    return [
        word
        for start, end in _identifier_tokens(text)
        for word in _identifier_words(text[start:end])
    ]


def texts_with_identifiers(texts: Sequence[str]) -> set[int]:
    """The positions of the texts that may have `identifier_words`; faster than text by text."""
    tokens = _identifier_tokens(" ".join(texts))
    if not tokens:
        return set()
    starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
    return {bisect_right(starts, start) - 1 for start, _ in tokens}


def identifier_words_flat(texts: Sequence[str]) -> list[tuple[int, str]]:
    """The `identifier_words` of all texts, each with the position of its text."""
    joined = " ".join(texts)
    starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
    return [
        (bisect_right(starts, start) - 1, word)
        for start, end in _identifier_tokens(joined)
        for word in _identifier_words(joined[start:end])
    ]


def _identifier_tokens(text: str) -> list[tuple[int, int]]:
    """The spans without white space, in order, that may contain identifiers."""
    shape = text.encode("ascii", "replace").translate(_SHAPES)
    tokens = set()
    for spot in _identifier_spots(shape):
        end, at = 0, shape.find(spot)
        while at >= 0:
            start = shape.rfind(b" ", 0, at) + 1
            end = shape.find(b" ", at)
            end = len(text) if end < 0 else end
            tokens.add((start, end))
            at = shape.find(spot, end)
    return [(start, end) for start, end in sorted(tokens) if end - start <= _MAX_TOKEN_CHARACTERS]


def _identifier_spots(shape: bytes) -> Iterator[bytes]:
    """The strings that identifiers contain, as far as they may be in a text of this shape."""
    for test, spots in _IDENTIFIER_SPOTS:
        if test.search(shape):
            yield from spots


# Identifiers are found by the classes of characters (a lower, A upper or digit), which is ten times
# as fast as searching all of a text for `_IDENTIFIER`.
_SHAPES = bytes(
    ord("a" if chr(code).islower() else "A")
    if code < 128 and chr(code).isalnum()
    else ord(" " if chr(code).isspace() else chr(code))
    for code in range(256)
)
# Most texts have none: a test that starts with one rare character is faster than the searches.
_IDENTIFIER_SPOTS = (
    (re.compile(rb"_"), (b"_",)),
    (re.compile(rb"A(?:(?<=aA)|Aa)"), (b"aA", b"AAa")),
    (re.compile(rb"\.(?=a)"), (b".a",)),
    (re.compile(rb"-(?=-a)"), (b"--a",)),
)
# An option (--dry-run), a dotted name, or a name of several parts.
_IDENTIFIER = re.compile(
    r"(?<![\w-])--?[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)+"
    r"|\b[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+"
    r"|\b(?=\w*(?:_|[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]{2}[0-9]))\w+"
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SEPARATOR = re.compile(r"[.-]+")
_MAX_TOKEN_CHARACTERS = 200  # longer strings without white space are data


@lru_cache(2**14)  # documentation repeats its identifiers
def _identifier_words(token: str) -> tuple[str, ...]:
    """The parts and wholes of the identifiers in a string without white space."""
    words: list[str] = []
    for match in _IDENTIFIER.finditer(token):
        words += _parts_and_whole(match.group())
    return tuple(words)


def _parts_and_whole(identifier: str) -> list[str]:
    """The parts of an identifier that are not words of the text, and the whole if it is none."""
    names = [name for name in _SEPARATOR.split(identifier) if name]
    words = []
    for name in names:
        parts = _PART.findall(name) if name.isascii() else name.split("_")
        if parts != [name]:
            words += [normalize(part) for part in parts if len(part) > 1 or part.isdigit()]
    if len(names) > 1:
        words.append(normalize("".join(names).replace("_", "")))
    return words


def split_words_flat(texts: Iterable[str]) -> list[str]:
    """The words of all texts in one list, `TEXT_SEPARATOR` between texts; faster than a loop."""
    return f" {TEXT_SEPARATOR} ".join(map(_spaced, texts)).split()


def normalize(text: str) -> str:
    """NFKC and lowercase, for comparing texts. Character offsets may change."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).lower()
