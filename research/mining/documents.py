"""
Files of documentation as sections: headings with their levels, and the sentences below them.

The sentences come from askline's own readers, so that training text looks like text at run time.
The readers mark headings but not their levels. The level is found in the original, beside the
heading: `##`, `<h2>`, an underline, `.SS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from askline.errors import AsklineError
from askline.text.readers import ParsedDocument, iter_sentences, read_document
from askline.text.readers.document import CELL_SEPARATOR

__all__ = [
    "Item",
    "Section",
    "clean_heading",
    "clean_markup",
    "faq_markdown",
    "iter_plain",
    "read_sections",
]

_MAX_BYTES = 1_500_000
_MARKERS = {
    "markdown": re.compile(r"(#{1,6})[ \t]*(?:\S*[*_`\[]*)?$"),
    "asciidoc": re.compile(r"(={1,6})[ \t]+\S*$"),
    "org": re.compile(r"^(\*{1,6})[ \t]+"),
}
_HTML_LEVEL = re.compile(r"<h([1-6])\b", re.I)
_HTML_TAG = re.compile(r"<(/?)(dt|dd|p|li|td|th|h[1-6]|div|pre)\b", re.I)
_UNDERLINE = re.compile(r"^[^\n]*\n([=\-~^\"'`#*+.:_<>])\1{2,}[ \t]*$", re.M)
_MAN_LEVEL = re.compile(r"\.[ \t]*(SH|SS|Sh|Ss)\b")
_NUMBER = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?(?:[A-Z]?\d+(?:\.\d+)*\.?"
    r"|[A-Z]\.\d+(?:\.\d+)*\.?|[IVX]+\.)\s+(?=\w)",
    re.I,
)
_TRAILING = re.compile(r"\s*(?:¶|#|\{#[^}]*\}|\[#[^\]]*\]|\u00b6|\[edit\]|§)\s*$")
_QUESTION_MARK = re.compile(r"^\s*(?:Q(?:uestion)?\s*\d*\s*[.:)]|\(?\d+[.)])\s*", re.I)
_ANSWER_MARK = re.compile(r"^\s*A(?:nswer)?\s*\d*\s*[.:)]\s+", re.I)


@dataclass(slots=True)
class Item:
    """A sentence, a row of a table or a block of code."""

    text: str
    kind: str
    block: int
    """Items of one paragraph or list item have one number."""
    first: bool
    """Whether this is the first item of its block."""
    term: str = ""
    """What a definition list or an option list puts before the description, for the first item."""


@dataclass(slots=True)
class Section:
    """The text between two headings."""

    path: tuple[str, ...]
    """The headings above, from the document's title down, without `heading`."""
    heading: str
    items: list[Item] = field(default_factory=list)


def read_sections(path: Path) -> list[Section]:
    """The sections of a file in order; an empty list if it cannot be read."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return []
        document = read_document(path)
        if not document.encoding:
            return []
        original = path.read_bytes().decode(document.encoding)
        return _without_empty(_sections(document, original))
    except (AsklineError, OSError, UnicodeError, ValueError):
        return []


def clean_heading(text: str) -> str:
    """A heading without its number and its link mark."""
    text = _TRAILING.sub("", " ".join(text.split())).replace("\\&", "").replace("\\-", "-")
    text = _NUMBER.sub("", text)
    return _QUESTION_MARK.sub("", text).strip(" *_`\u200b") if text.endswith("?") else text.strip()


def _without_empty(sections: list[Section]) -> list[Section]:
    return [section for section in sections if section.items]


def _sections(document: ParsedDocument, original: str) -> list[Section]:
    title = clean_heading(document.title)
    faq = bool(re.search(r"\bfaqs?\b|frequently[ -]asked", f"{document.path} {title}", re.I))
    stack: list[tuple[int, str]] = [(0, title)] if title else []
    section = Section((), title)
    found = [section]
    underlines: list[str] = []
    block_ends = [block.end for block in document.blocks]
    block = -1
    at = 0
    term = ""
    for span in iter_sentences(document):
        while at < len(block_ends) and block_ends[at] <= span.start:
            at += 1
        text = document.text[span.start : span.end]
        where = document.span(span.start, span.end) or (span.start, span.end)
        if span.kind == "heading":
            heading = clean_heading(text)
            level = _level(document.kind, original, where[0], underlines)
            if heading == title and len(found) == 1 and not section.items:
                stack = [(level, heading)]
                continue
            while stack and stack[-1][0] >= level:
                stack.pop()
            section = Section(tuple(name for _, name in stack), heading)
            stack.append((level, heading))
            found.append(section)
            block, term = -1, ""
            continue
        if span.kind == "row":
            text = CELL_SEPARATOR.join(" ".join(cell.split()) for cell in text.split("\n"))
        new = at != block
        block = at
        if span.kind != "code":
            text = " ".join(text.split())
        last = at == len(block_ends) or span.end >= block_ends[at] - 1
        if new and last and span.kind == "sentence":
            # A question that stands alone is the heading of a FAQ entry in many documents.
            marked = _QUESTION_MARK.match(text)
            if text.endswith("?") and len(text) > 12 and (faq or marked):
                while stack and stack[-1][0] >= 8:
                    stack.pop()
                section = Section(tuple(name for _, name in stack), clean_heading(text))
                stack.append((8, section.heading))
                found.append(section)
                continue
            if document.kind == "html" and _tag(original, where[0]) == "dt":
                text = text.rstrip("¶ ")
                term = f"{term}, {text}" if term else text
                continue
        if span.kind == "sentence" and new:
            text = _ANSWER_MARK.sub("", text) if faq or section.heading.endswith("?") else text
        if term and len(term) < 160:
            section.items.append(Item(f"{term.rstrip(':')}: {text}", span.kind, at, True, term))
        else:
            text = re.sub(r"^(\S.{0,60}?)\s*:\s+(?=\S)", r"\1: ", text) if new else text
            section.items.append(Item(text, span.kind, at, new, _term(text) if new else ""))
        term = ""
    return found


def _term(text: str) -> str:
    """`--foo` of `--foo: Do foo.`, `bar` of `bar - does bar.`; empty if there is none."""
    found = re.match(
        r"(-{1,2}[A-Za-z0-9?][^:]{0,70}?|[^\s:.,;][^:.;!?]{0,48}?(?:\([^)]*\))?)(?::|"
        r" [-–—]+) (?=\S)",
        text,
    )
    return found[1].strip() if found else ""


def _tag(original: str, start: int) -> str:
    """The last block tag before an offset of an HTML page."""
    tag = ""
    for found in _HTML_TAG.finditer(original, max(0, start - 300), start):
        tag = found[2].lower() if not found[1] else ""
    return tag


def _level(kind: str, original: str, start: int, underlines: list[str]) -> int:
    if kind == "html":
        levels = [
            int(found[1]) for found in _HTML_LEVEL.finditer(original, max(0, start - 400), start)
        ]
        return levels[-1] if levels else 2
    if kind == "manpage":
        line = original.rfind("\n", 0, start) + 1
        found = _MAN_LEVEL.match(original, line) or _MAN_LEVEL.match(
            original, original.rfind("\n", 0, max(line - 1, 0)) + 1
        )
        return 2 if found and found[1] in ("SS", "Ss") else 1
    line = original.rfind("\n", 0, start) + 1
    if kind in _MARKERS:
        marked = _MARKERS[kind].search(original[line:start])
        if marked:
            return len(marked[1])
    under = _UNDERLINE.match(original, line)
    if under:
        mark = under[1]
        if kind == "markdown":
            return 1 if mark == "=" else 2
        if mark not in underlines:
            underlines.append(mark)
        return 1 + underlines.index(mark)
    return 2


_PRODUCTS = {
    "dotcom": "GitHub",
    "github": "GitHub",
    "actions": "GitHub Actions",
    "ghe_server": "GitHub Enterprise Server",
    "vscode": "VS Code",
    "vscode_shortname": "VS Code",
    "copilot": "Copilot",
    "copilot_short": "Copilot",
}
"""Names behind the variables of one template language; any other variable names itself."""
_CLEANERS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"<!--.*?-->", re.S), ""),
    (re.compile(r"[ \t]*\{/\*.*?\*/\}", re.S), ""),
    (re.compile(r"kb(?:style)?\(([^)]*)\)"), r"\1"),
    (
        re.compile(r"\{\{[<%]\s*/?\s*(?:glossary_tooltip|term)[^}]*?text=\"([^\"]*)\"[^}]*\}\}"),
        r"\1",
    ),
    (re.compile(r"\{\{[<%]\s*skew\s+currentVersion\s*[%>]\}\}"), "the current version"),
    (re.compile(r"\{\{[<%].*?[%>]\}\}", re.S), ""),
    (
        re.compile(
            r"\{\{(?:\w*xref|\w*[Ee]lement|CSS\w*|JS\w*|HTTP\w*|glossary|Glossary"
            r"|SVG\w*)\(\s*\"([^\"]*)\"(?:\s*,\s*\"([^\"]+)\")?[^)}]*\)\}\}"
        ),
        lambda found: f"`{found[2] or found[1]}`",
    ),
    (re.compile(r"\{\{[A-Za-z].*?\}\}", re.S), ""),
    (
        re.compile(
            r"\{%-?\s*(?:if|else|elsif|end|for|include|data reusables|note|warning|tip|raw"
            r"|capture|assign|comment|render|webui|cli|mac|linux|windows|desktop"
            r"|api)[^%]*%\}"
        ),
        "",
    ),
    (
        re.compile(r"\{%-?\s*data variables\.(?:\w+\.)*(?:prodname_|company_)?(\w+)\s*-?%\}"),
        lambda found: _PRODUCTS.get(found[1], found[1].replace("_", " ").title()),
    ),
    (re.compile(r"<xref:([^>?]+)(?:\?[^>]*)?>"), r"`\1`"),
    (re.compile(r"^(?:import|export) .*(?:from .*|;)$", re.M), ""),
    (re.compile(r"^\s*</?[A-Z]\w*(?:[^>\n]*\n){0,4}?[^>\n]*/?>\s*$", re.M), ""),
    (re.compile(r"</?[A-Z]\w*(?:\s[^<>]*)?/?>"), ""),
    (re.compile(r"^> ?\[!\w+\][ \t]*$", re.M), ">"),
    (re.compile(r"\[!INCLUDE\s*\[([^\]\n]*)\]\([^)]*\)\]", re.I), r"\1"),
    (re.compile(r"\[!(?:div|code|VIDEO|NOTE)[^\n]*"), ""),
    (re.compile(r"^:::.*$", re.M), ""),
    (re.compile(r"^(?:---8<---|!!! |\?\?\? ).*$", re.M), ""),
    (re.compile(r"[ \t]*\{[:#][^}\n]*\}[ \t]*$", re.M), ""),
)


def clean_markup(text: str) -> str:
    """Markdown without comments, template calls and components, which no reader of a page sees."""
    for pattern, instead in _CLEANERS:
        text = pattern.sub(instead, text)
    return text


def faq_markdown(text: str) -> str:
    """A FAQ in YAML (`- question:`, `answer: |`) as Markdown; empty if the text is none."""
    out: list[str] = []
    mode, indent = "", 0
    for line in text.splitlines():
        found = re.match(r"(\s*(?:- )?)(question|answer):\s*(.*)$", line)
        if found:
            mode, indent = found[2], len(found[1])
            value = re.sub(r"^[|>][+-]?\d?\s*$", "", found[3]).strip("'\"")
            out.append("")
            out.append(f"## {value}" if mode == "question" and value else value)
            mode = "heading" if mode == "question" and not value else mode
        elif mode == "heading" and line.strip():
            out.append(f"## {line.strip()}")
            mode = "question"
        elif mode == "answer":
            out.append(
                line.strip() if len(line) - len(line.lstrip()) <= indent + 4 else line[indent:]
            )
    return "\n".join(out) if any(line.startswith("## ") for line in out) else ""


def iter_plain(sections: list[Section]) -> Iterator[str]:
    """All sentences, to look words up in."""
    for section in sections:
        for item in section.items:
            if item.kind == "sentence":
                yield item.text
