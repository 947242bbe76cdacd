"""
The marks inside a block of Markdown: which characters of its source are shown.

CommonMark's emphasis, code spans, links, images, tags and entities, and what sites add to it:
formulas, emoji and icon names, attribute lists, template expressions and comments of JSX. The
length of code spans and links is limited, which keeps the time linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from html import unescape
from typing import NamedTuple

from .markup import LineSpan, Replacement, plain_formula
from .offsets import TextBuilder

__all__ = [
    "MarkdownBlock",
    "is_link_list",
    "join_lines",
    "normalize_label",
    "visible_pieces",
]

# The pattern starts with a character set, because `re` then skips all other characters quickly.
# The number of repetitions of a group is limited, because `re` keeps each in memory.
_TOKEN = re.compile(
    r"""[\\`!\[\]*_~<&{:] (?:
      (?<=\\) (?P<escaped>[!-/:-@\[-`{-~]|(?=\n))
    | (?<=`) (?P<ticks>`*) (?: (?P<code> (?!`).{1,2000}?(?<!`) ) `(?P=ticks)(?!`) )?
    | (?<=\[) \^[^\[\]\s]{1,99}\](?!:)(?P<note>)
    | (?P<open> (?<=!)\[ | (?<=\[) )
    | (?<=\])(?P<target> \( \s* (?=\S) (?: <[^<>\n]*> | [^\s()]* (?:\([^\s()]*\)[^\s()]*){0,99} )
                    (?: \s+ (?: "[^"]*" | '[^']*' ) )? \s* \)
                  | \( (?: \s+ (?: "[^"]*" | '[^']*' ) )? \s* \)
                  | \[ [^\[\]]{0,99} \] )?(?P<close>)
    | (?P<run> (?<=\*)\** | (?<=_)_* | (?<=~)~ )
    | (?<=<) (?:
        (?P<link> [a-z][a-z0-9+.-]+:[^\s<>]* | [\w.+-]+@[\w.-]+ )>
      | !--(?P<comment>)
      | (?: /?[a-z][\w.:-]*
            (?: \s (?: [^<>"'{}] | "[^"]{0,500}" | '[^']{0,500}' | \{[^{}]{0,500}\} ){0,300} )?
            /?>
          | /?[a-z][\w-]*(?:\s[^<>]{0,2000})?/?> | /?> ) (?P<tag>)
      )
    | (?<=&) (?: \#\d{1,7} | \#x[0-9a-f]{1,6} | [a-z][a-z0-9]{1,31} );(?P<entity>)
    | (?<=\{) (?: /\*.{0,500}?\*/ | \{.{0,500}?\}(?=\}) | %.{0,500}?%
        | :?[ ]{0,3}(?: [.\#][\w-] | (?:target|rel|width|height|style|class|id|title|align|loading
            |data-[\w-]+|download|markdown)\b(?=[ =}]) )[^{}\n]{0,300} ) \}(?P<attributes>)
    | (?<![^\s(|>]:)(?<=:) [a-z][a-z0-9_+-]{1,60}:(?P<emoji>)(?![\w:])
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# One character set, because `re` then skips all other characters quickly.
_MARKS = re.compile(r"[\\`\[*_~<&{:]")
# What is between two prices or two names of variables is no formula.
_FORMULA = re.compile(
    r"(?<![\w$\\])(?P<mark>\$\$?)(?=[^\s$\d]|\d[^$]{0,200}[\\^_{]|[\d.]{1,20}\$)(?P<body>[^$`]{1,500})(?<![\s\\])"
    r"(?P=mark)(?![\w$])"
)
_FORMULA_MARKS = re.compile(r"[\\^_={]")
_PIECE = re.compile(r"\n|[^\n]+")
_LETTER = re.compile(r"[^\W\d_]")
_LINK_STARTS = ("[", "!", "<", "*", "_", ":", "`", "|")
_ENUMERATION = re.compile(r"(?:\d{1,3}\.){1,6}\d{0,3}\s+")


class MarkdownBlock(NamedTuple):
    """The source of a block, and where it comes from."""

    text: str
    spans: Callable[[int, int], tuple[int, int]]
    """From the start and end of a part of the text to its span in the source."""


def join_lines(source: str, lines: Sequence[LineSpan]) -> MarkdownBlock:
    """The lines of a block without white space at either end, joined by single line breaks."""
    if len(lines) == 1:  # much faster, and many blocks are one line
        line = source[slice(*lines[0])].rstrip()
        text = line.lstrip()
        shift = lines[0][0] + len(line) - len(text)
        return MarkdownBlock(text, lambda start, end: (start + shift, end + shift))
    block = TextBuilder()
    for start, end in lines:
        line = source[start:end]
        start += len(line) - len(line.lstrip())
        if block.length:
            block.add("\n", block.segments.end(block.length), start)
        block.add(line.strip(), start, start + len(line.strip()))
    return MarkdownBlock(block.text(), block.segments.span)


def visible_pieces(block: MarkdownBlock, labels: Collection[str]) -> list[tuple[str, int, int]]:
    """
    The pieces of a block that are shown, each with its span in the source.

    `labels` are those of the link definitions of the document, as `normalize_label` returns them.
    """
    text, spans = block
    pieces: list[tuple[str, int, int]] = []
    position = 0
    replacements, _ = _find_marks(text, labels)
    has_breaks = "\n" in text
    if text and not (replacements or has_breaks):
        return [(text, *spans(0, len(text)))]
    for start, end, replacement in (*replacements, (len(text), len(text), "")):
        if has_breaks:
            for piece in _PIECE.finditer(text, position, start):
                pieces.append((piece[0], *spans(*piece.span())))
        elif start > position:
            pieces.append((text[position:start], *spans(position, start)))
        if replacement:
            # The first character stands for the whole span, so that no two spans overlap.
            left, right = spans(start, end)
            pieces.append((replacement[0], left, right))
            if len(replacement) > 1:
                pieces.append((replacement[1:], right, right))
        position = end
    return pieces


def is_link_list(text: str, labels: Collection[str]) -> bool:
    """Whether a block has images or links into the site, and no words outside of them."""
    number = _ENUMERATION.match(text) if text[:1].isdecimal() else None
    if not text.startswith(_LINK_STARTS, number.end() if number else 0):
        return False
    replacements, links = _find_marks(text, labels)
    if not links:
        return False
    position = 0
    for start, end in sorted([*links, *((start, end) for start, end, _ in replacements)]):
        if start > position and _LETTER.search(text, position, start):
            return False
        position = max(position, end)
    return not _LETTER.search(text, position)


def normalize_label(label: str) -> str:
    """The form in which the labels of link definitions are compared."""
    return " ".join(label.casefold().split())


def _find_marks(
    text: str, labels: Collection[str]
) -> tuple[list[Replacement], list[tuple[int, int]]]:
    """
    The spans of a block that are not shown as they are, in order.

    Also the spans of images and of links into the site: lists of links to other sites are content.
    """
    formulas = _formulas(text) if "$" in text else []
    first = _MARKS.search(text)
    if not first:
        return formulas, []
    found: list[Replacement] = []
    formulas.reverse()  # the next one is the last
    links: list[tuple[int, int]] = []
    brackets: list[tuple[int, int]] = []
    runs: list[_DelimiterRun] = []
    last_comment_end = text.rfind("-->")
    position = max(first.start() - 1, 0)  # an image starts with the character before
    while token := _TOKEN.search(text, position):
        start, position = token.span()
        while formulas and formulas[-1][1] <= start:
            found.append(formulas.pop())
        if formulas and formulas[-1][0] < start:
            position = formulas[-1][1]
            continue
        while formulas and formulas[-1][0] < position:
            formulas.pop()  # in a code span or a tag
        end = position
        kind = token.lastgroup
        if kind == "escaped":
            found.append((start, start + 1, ""))
        elif kind == "code":
            found += [(start, token.start("code"), ""), (token.end("code"), end, "")]
        elif kind == "open":
            brackets.append((start, end))
        elif kind == "close" and brackets:
            opening = brackets.pop()
            if token["target"] or (
                labels
                and start - opening[1] <= 99
                and normalize_label(text[opening[1] : start]) in labels
            ):
                found += [(*opening, ""), (start, end, "")]
                if text[opening[0]] == "!" or "://" not in (token["target"] or ""):
                    links.append((opening[0], end))
        elif kind == "run":
            runs.append(_DelimiterRun(text, start, end))
        elif kind == "link":
            found += [(start, start + 1, ""), (end - 1, end, "")]
        elif kind == "comment":
            if last_comment_end >= end:
                position = text.index("-->", end) + 3
                found.append((start, position, ""))
        elif kind in ("tag", "note", "attributes", "emoji"):
            found.append((start, end, ""))
        elif kind == "entity":
            found.append((start, end, unescape(token[0])))
    return sorted([*found, *formulas, *_emphasis(runs)]), links


def _formulas(text: str) -> list[Replacement]:
    """Formulas of TeX between dollar signs, with the text to show."""
    return [
        (*found.span(), plain_formula(found["body"]))
        for found in _FORMULA.finditer(text)
        if _FORMULA_MARKS.search(found["body"]) or " " not in found["body"]
    ]


class _DelimiterRun:
    """Equal marks in a row that may open or close emphasis by CommonMark's flanking rules."""

    def __init__(self, text: str, start: int, end: int) -> None:
        before, after = text[start - 1 : start], text[end : end + 1]
        self.mark = text[start]
        self.start, self.end = start, end
        left = bool(after.strip()) and (after.isalnum() or not before.isalnum())
        right = bool(before.strip()) and (before.isalnum() or not after.isalnum())
        self.opens = left and not (self.mark == "_" and before.isalnum())
        self.closes = right and not (self.mark == "_" and after.isalnum())


def _emphasis(runs: Sequence[_DelimiterRun]) -> Iterator[Replacement]:
    """The marks that form pairs; all other marks are text."""
    open_runs: dict[str, list[_DelimiterRun]] = {"*": [], "_": [], "~": []}
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
