"""
Pdf to text, by PDFium: pages in reading order, lines put together into paragraphs.

A pdf holds glyphs at places, no paragraphs; `pdf_layout` finds these from where the lines stand.
Running heads and page numbers are left out. A word that was cut at the end of a line is joined
again: the hyphen falls away between small letters, unless the document writes the word with a
hyphen elsewhere and never without. A sentence goes on over a page break where the next page starts
with a small letter. PDFium is not safe to use from several threads at once.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .content import Content, Unreadable
from .document import Blocks
from .pdf_layout import Box, Line, Paragraph, paragraphs, without_running_heads

__all__ = ["read_pdf"]

_CUT = "\ufffe"  # PDFium's mark for a hyphen at the end of a line, the next line following at once
_CUT_WORD = re.compile(rf"(\w*){_CUT}\s*(\w*)")
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), 127], " ")
_SENTENCE_ENDS = (".", "!", "?", ":", "…", "»", "”", '"')


def read_pdf(data: bytes) -> Content:
    """Text, blocks and title; the places are pages."""
    import pypdfium2 as pdfium  # here, for it takes longer to load than most texts to read

    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code == pdfium.raw.FPDF_ERR_PASSWORD:
            raise Unreadable("The pdf is encrypted. Save it without its password.") from error
        raise Unreadable("It is no pdf, or damaged or cut short. Fetch it again.") from error
    try:
        pages = [_lines(document, number, pdfium.PdfiumError) for number in range(len(document))]
        title = " ".join(document.get_metadata_value("Title").split())
    finally:
        document.close()
    if not any(pages):
        count = f"{len(pages):,} pages" if len(pages) != 1 else "one page"
        raise Unreadable(
            f"The pdf has no text in its {count}, as scans have not. "
            "Run it through text recognition first."
        )
    return _content(pages, title)


def _lines(document: Any, number: int, error: type[Exception]) -> list[Line]:
    """The lines of a page; a page that is damaged has none."""
    try:
        page = document[number]
        text_page = page.get_textpage()
    except error:
        return []
    try:
        text = text_page.get_text_range()
        # They differ where a page has characters beyond 16 bits: then boxes cannot be looked up.
        boxed = len(text) == text_page.count_chars()
        lines = []
        start = 0
        for raw in text.split("\r\n"):
            if raw.strip():
                box = _box(text_page, raw, start) if boxed else None
                lines.append(Line(raw.translate(_CONTROLS).strip(), box))
            start += len(raw) + 2
        return lines
    finally:
        text_page.close()
        page.close()


def _box(text_page: Any, raw: str, start: int) -> Box:
    """The place of a line, from its first and its last character."""
    first = start + len(raw) - len(raw.lstrip())
    left, bottom, _, top = text_page.get_charbox(first, loose=True)
    _, last_bottom, right, _ = text_page.get_charbox(start + len(raw.rstrip()) - 1, loose=True)
    return Box(left, top, bottom, right, last_bottom)


def _content(pages: Sequence[list[Line]], title: str) -> Content:
    pieces: list[str] = []
    blocks = Blocks()
    starts = array("I")
    length = 0
    open_start = -1  # of a paragraph that may go on over the page break
    words = _words(pages)
    for page in paragraphs(without_running_heads(pages)):
        starts.append(length)
        for number, paragraph in enumerate(page):
            text = _CUT_WORD.sub(lambda cut: _join(cut, words), paragraph.text)
            goes_on = not number and open_start >= 0 and text[:1].islower()
            if open_start >= 0 and not goes_on:
                blocks.add(open_start, length - 1, "text")
            start = open_start if goes_on else length
            pieces += (text, "\n")
            length += len(text) + 1
            open_start = -1
            if number == len(page) - 1 and _is_open(paragraph, text):
                open_start = start
            else:
                blocks.add(start, length - 1, paragraph.kind)
    if open_start >= 0:
        blocks.add(open_start, length - 1, "text")
    return Content("".join(pieces), blocks, "page", starts, title)


def _is_open(paragraph: Paragraph, text: str) -> bool:
    return paragraph.kind == "text" and not text.endswith(_SENTENCE_ENDS)


def _words(pages: Sequence[list[Line]]) -> Counter[str]:
    """How often each word stands whole, with its hyphens, on a page."""
    return Counter(
        word.lower()
        for page in pages
        for line in page
        for word in re.findall(r"\w+(?:-\w+)*", line.text)
    )


def _join(cut: re.Match[str], words: Counter[str]) -> str:
    before, after = cut.groups()
    joined, hyphened = before + after, f"{before}-{after}"
    if not (before[-1:].islower() and after[:1].islower()):
        return hyphened
    return hyphened if words[hyphened.lower()] and not words[joined.lower()] else joined
