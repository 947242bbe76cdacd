"""
Files of documentation as sections: headings with those above them, and the sentences below.

The sentences and the paths of headings come from askline's own readers, so that training text looks
like text at run time. Template calls of site generators are removed before, and FAQs in YAML are
turned into Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from askline.errors import AsklineError
from askline.text.readers import ParsedDocument, iter_sentences, read_document
from askline.text.readers.kinds import CELL_SEPARATOR

__all__ = ["Item", "Section", "clean_markup", "faq_markdown", "iter_plain", "read_sections"]

_MAX_BYTES = 1_500_000
_NUMBER = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?(?:[A-Z]?\d+(?:\.\d+)*\.?"
    r"|[A-Z]\.\d+(?:\.\d+)*\.?|[IVX]+\.)\s+(?=\w)",
    re.I,
)
_TRAILING = re.compile(r"\s*(?:¶|#|\{#[^}]*\}|\[#[^\]]*\]|\[edit\]|§)\s*$")
_QUESTION_MARK = re.compile(r"^\s*(?:Q(?:uestion)?\s*\d*\s*[.:)]|\(?\d+[.)])\s*", re.I)
_ANSWER_MARK = re.compile(r"^\s*A(?:nswer)?\s*\d*\s*[.:)]\s+", re.I)
_TERM = re.compile(
    r"(-{1,2}[A-Za-z0-9?][^:]{0,70}?|[^\s:.,;][^:.;!?]{0,48}?(?:\([^)]*\))?)(?::| [-–—]+) (?=\S)"
)


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
    """What stands before the description in an entry of a list; only for the first item."""


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
    except (AsklineError, OSError):
        return []
    return [section for section in _sections(document) if section.items]


def _clean_heading(text: str) -> str:
    """A heading without its number, its link mark and the `Q:` before a question."""
    text = _TRAILING.sub("", " ".join(text.split())).replace("\\&", "").replace("\\-", "-")
    text = _NUMBER.sub("", text)
    return _QUESTION_MARK.sub("", text).strip(" *_`\u200b") if text.endswith("?") else text.strip()


def _sections(document: ParsedDocument) -> list[Section]:
    title = _clean_heading(document.title)
    is_faq = bool(re.search(r"\bfaqs?\b|frequently[ -]asked", f"{document.path} {title}", re.I))
    section = Section((), title)
    found = [section]
    block_ends = [block.end for block in document.blocks]
    last_block = -1
    at = 0
    for span in iter_sentences(document):
        while at < len(block_ends) and block_ends[at] <= span.start:
            at += 1
        text = document.text[span.start : span.end]
        headings = tuple(_clean_heading(heading) for heading in span.headings)
        above = headings if not title or title in headings[:1] else (title, *headings)
        if span.kind == "heading":
            heading = _clean_heading(text)
            section = Section(above if heading != title else (), heading)
            found.append(section)
            last_block = -1
            continue
        is_first = at != last_block
        last_block = at
        is_whole = is_first and (at == len(block_ends) or span.end >= block_ends[at] - 1)
        if span.kind == "row":
            text = CELL_SEPARATOR.join(" ".join(cell.split()) for cell in text.split("\n"))
        elif span.kind != "code":
            text = " ".join(text.split())
        if is_whole and span.kind == "sentence" and _is_faq_question(text, is_faq):
            # A question that stands alone is the heading of an entry in many FAQs.
            section = Section(above, _clean_heading(text))
            found.append(section)
            continue
        if is_first and span.kind == "sentence" and (is_faq or section.heading.endswith("?")):
            text = _ANSWER_MARK.sub("", text)
        term = _TERM.match(text) if is_first else None
        section.items.append(Item(text, span.kind, at, is_first, term[1].strip() if term else ""))
    return found


def _is_faq_question(text: str, is_faq: bool) -> bool:
    marked = bool(_QUESTION_MARK.match(text))
    return text.endswith("?") and len(text) > 12 and (is_faq or marked)


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
        if line.startswith("title: "):
            out.append(f"# {line[7:].strip(' |>')}")
            continue
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
