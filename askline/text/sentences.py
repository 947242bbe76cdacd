"""
Sentences, as exact character offsets into the text they were found in.

Lines come first: a blank line, a heading and a list item each end what stood before them, while any
other line break is white space, so that hard-wrapped paragraphs stay whole. Within such a block
every mark that may end a sentence is judged by the words on either side of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["split_sentences"]

_ITEM = re.compile(r"\s*(?:[-*+•‣▪–—]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")

_MARK = re.compile(
    r"""
    (?<![.!?…])
    (?P<mark> [.!?…؟۔।॥።։]+ (?:\ \.)*
      (?P<close> (?: ['"”’»)\]}] | [ \u00a0\u202f]» | \ '' | \[\d{1,3}\] )* )
      (?= \s+ (?P<open> (?: ["'“‘«(\[¿¡`—–-] \s? )* ) (?P<next> \w* ) )
    | (?: [。！？｡] ['"”’」』）】〉》)]* )+
    )
    """,
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*$")
_REACH = 24  # characters looked at before a full stop: longer than any abbreviation

_TITLES = frozenset(
    "mr mrs ms dr prof st gen col sgt capt lt rev hon sen rep gov pres mt ft vs e.g i.e cf viz adm maj "
    "cmdr mme mmes mlle mlles mm mgr me".split()
)
_BEFORE_NUMBER = frozenset(
    "no nos p pp vol vols ch chap sec sect art fig figs eq jan feb mar apr jun jul aug sep sept oct "
    "nov dec n r c ca approx op".split()
)
_MAY_END = frozenset(
    "inc ltd corp co cos jr sr etc al bros llc esq ave blvd dept est univ ph.d m.d b.a m.a av env ex "
    "éd vol chap ibid".split()
)
_STARTERS = frozenset(
    "a an the this that these those he she it they we you i his her its their our in on at by for from "
    "with as after before during when while since although however but and if there then some many most "
    "le la les un une des il elle ils elles ce cette ces en dans".split()
)
_COMPANIES = frozenset("inc corp co ltd".split())


def split_sentences(text: str) -> list[tuple[int, int]]:
    """
    The spans of the sentences, in order: `text[start:end]` is a sentence.

    Spans do not overlap, are never empty, have no white space at either end, and together hold
    every character that is not white space. The time taken grows linearly with the text.
    """
    spans: list[tuple[int, int]] = []
    for start, scan, end in _blocks(text):
        for cut in _cuts(text, scan, end):
            _append(spans, text, start, cut)
            start = cut
        _append(spans, text, start, end)
    return spans


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end].rstrip()
    stripped = piece.lstrip()
    if stripped:
        spans.append((start + len(piece) - len(stripped), start + len(piece)))


def _blocks(text: str) -> Iterator[tuple[int, int, int]]:
    """(start, where to look for marks, end) of each piece that no sentence may cross."""
    start = scan = position = 0
    for line in text.splitlines(keepends=True):
        after = position + len(line)
        item, heading = _ITEM.match(line), _HEADING.match(line)
        if item or heading or line.isspace():
            yield start, scan, position
            start, scan = position, position + (item.end() if item else 0)
        if heading:
            yield start, scan, after
            start = scan = after
        position = after
    yield start, scan, position


def _cuts(text: str, scan: int, end: int) -> Iterator[int]:
    for match in _MARK.finditer(text, scan, end):
        if match["next"] is None or _ends_sentence(text, match):
            yield match.end()


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    following = match["next"]
    at = match.start()
    mark = match["mark"]
    if not following:
        return True
    lower = following[0].islower()
    if not mark.startswith(".") or mark.startswith(".."):
        return not lower and following.lower() not in _COMPANIES
    if at and text[at - 1].isspace():
        return True
    found = _LAST_WORD.search(text, max(0, at - _REACH), at)
    if found is None:
        return not lower
    word = found[0]
    folded = word.lower()
    if folded in _TITLES:
        return False
    if folded in _BEFORE_NUMBER and (lower or following[0].isdigit()):
        return False
    if folded in _MAY_END or "." in word or (len(word) == 1 and word.isalpha()):
        return not lower and following.lower() in _STARTERS
    return not (lower and match["close"])
