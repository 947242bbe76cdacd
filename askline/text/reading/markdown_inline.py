"""The text of a markdown block without the marks for emphasis, code, links and images."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape

from .offsets import TextBuilder

__all__ = ["shown_pieces"]

Cut = tuple[int, int, str]
"""Start, end, and what stands there instead."""

# Code spans and links are looked for within bounds, which keeps the time linear.
_TOKEN = re.compile(
    r"""\\(?P<escaped>[!-/:-@\[-`{-~])
    | (?P<ticks>`+) (?: (?P<code> (?!`).{1,2000}?(?<!`) ) (?P=ticks)(?!`) )?
    | \[\^[^\[\]\s]{1,99}\](?!:)(?P<note>)
    | (?P<open> !?\[ )
    | \](?P<target> \( [ ]* (?: <[^<>\n]*> | [^\s()]* (?:\([^\s()]*\)[^\s()]*)* )
                    (?: \s+ (?: "[^"]*" | '[^']*' ) )? \s* \)
                  | \[ [^\[\]]{0,99} \] )?(?P<close>)
    | (?P<run> \*+ | _+ | ~~ )
    | <(?P<link> [a-z][a-z0-9+.-]+:[^\s<>]* | [\w.+-]+@[\w.-]+ )>
    | < (?: !--.*?--> | /?[a-z][\w-]*(?:\s[^<>]*)?/?> )(?P<tag>)
    | &(?: \#\d{1,7} | \#x[0-9a-f]{1,6} | [a-z][a-z0-9]{1,31} );(?P<entity>)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_MARKS = re.compile(r"[\\`\[*_~<&]")
_PIECE = re.compile(r"\n|[^\n]+")


def shown_pieces(source: str, lines: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """
    The pieces that a reader would see, each with its span of the source.

    The lines of the block come without white space at their ends, one line break between them.
    """
    block = TextBuilder()
    for start, end in lines:
        line = source[start:end]
        start += len(line) - len(line.lstrip())
        if block.length:
            block.add("\n", block.segments.end(block.length), start)
        block.add(line.strip(), start, start + len(line.strip()))
    text = block.text()
    position = 0
    for start, end, instead in (*_cuts(text), (len(text), len(text), "")):
        for piece in _PIECE.finditer(text, position, start):
            yield piece[0], *block.segments.span(*piece.span())
        if instead:
            yield instead, *block.segments.span(start, end)
        position = end


def _cuts(text: str) -> list[Cut]:
    """What the block does not show, in order."""
    if not _MARKS.search(text):
        return []
    cuts: list[Cut] = []
    brackets: list[tuple[int, int]] = []
    runs: list[_Run] = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        kind = token.lastgroup
        if kind == "escaped":
            cuts.append((start, start + 1, ""))
        elif kind == "code":
            cuts += [(start, token.start("code"), ""), (token.end("code"), end, "")]
        elif kind == "open":
            brackets.append((start, end))
        elif kind == "close" and brackets:
            opening = brackets.pop()
            if token["target"]:
                cuts += [(*opening, ""), (start, end, "")]
        elif kind == "run":
            runs.append(_Run(text, start, end))
        elif kind == "link":
            cuts += [(start, start + 1, ""), (end - 1, end, "")]
        elif kind in ("tag", "note"):
            cuts.append((start, end, ""))
        elif kind == "entity":
            cuts.append((start, end, unescape(token[0])))
    return sorted([*cuts, *_emphasis(runs)])


class _Run:
    """A row of equal marks that may open or close emphasis, as CommonMark's flanking rules say."""

    def __init__(self, text: str, start: int, end: int) -> None:
        before, after = text[start - 1 : start], text[end : end + 1]
        self.mark = text[start]
        self.start, self.end = start, end
        left = bool(after.strip()) and (after.isalnum() or not before.isalnum())
        right = bool(before.strip()) and (before.isalnum() or not after.isalnum())
        self.opens = left and not (self.mark == "_" and before.isalnum())
        self.closes = right and not (self.mark == "_" and after.isalnum())


def _emphasis(runs: Sequence[_Run]) -> Iterator[Cut]:
    """The marks that have a partner; the others are text."""
    open_runs: dict[str, list[_Run]] = {"*": [], "_": [], "~": []}
    for run in runs:
        waiting = open_runs[run.mark]
        while run.closes and waiting and run.start < run.end:
            opener = waiting[-1]
            size = min(opener.end - opener.start, run.end - run.start)
            yield opener.end - size, opener.end, ""
            yield run.start, run.start + size, ""
            opener.end -= size
            run.start += size
            if opener.start == opener.end:
                waiting.pop()
        if run.opens and run.start < run.end:
            waiting.append(run)
