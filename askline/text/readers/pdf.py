"""
Paragraphs, headings and running heads, from the places of the lines on the pages of a pdf.

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
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .document import BlockKind, Blocks, Content, UnreadableError

__all__ = [
    "_Box",
    "_Line",
    "_Paragraph",
    "_drop_running_heads",
    "_find_paragraphs",
    "read_pdf",
]

_HEADING = 1.15  # times the size of the body text
_LONGEST_HEADING = 200  # characters; larger type for more than this is a lead, not a heading
_OTHER_SIZE = 0.12  # lines whose sizes differ by more do not belong together
_WIDE_STEP = 1.3  # times the usual step from line to line
_SHORT_LINE = 0.75  # of the width of the column
_RUNNING = 3  # pages that share a line at their edge, counted without digits
_CONTINUES = (",", "-", "–", "—", "(", "/", "&")


class _Box(NamedTuple):
    """Where a line stands. It is two lines where a word was cut: then its ends differ in height."""

    left: float
    top: float
    bottom: float
    right: float
    last_bottom: float


class _Line(NamedTuple):
    """The text of a line, and where it stands if that is known."""

    text: str
    box: _Box | None = None

    @property
    def size(self) -> float:
        """The height of its type, 0 where it is not known."""
        return self.box.top - self.box.bottom if self.box else 0.0


class _Paragraph(NamedTuple):
    """Lines that belong together."""

    text: str
    kind: BlockKind


def _find_paragraphs(pages: Sequence[Sequence[_Line]]) -> Iterator[list[_Paragraph]]:
    """The paragraphs of each page, in order."""
    body = _body_size(pages)
    for page in pages:
        found: list[_Paragraph] = []
        for column in _columns(page):
            for lines in _cut(column):
                found.append(_paragraph(lines, body))
        yield found


def _drop_running_heads(pages: Sequence[Sequence[_Line]]) -> list[list[_Line]]:
    """The pages without first and last lines that several share, and without page numbers."""
    body = _body_size(pages)
    edges = Counter(
        key for page in pages for key in {_without_digits(line) for line in (*page[:1], *page[-1:])}
    )
    needed = max(_RUNNING, len(pages) // 10)

    def running(line: _Line) -> bool:
        small = line.size <= body * _HEADING
        return small and edges[_without_digits(line)] >= needed

    cleaned = []
    for page in pages:
        first = 1 if page and running(page[0]) else 0
        last = len(page) - 1 if len(page) > first and running(page[-1]) else len(page)
        cleaned.append(list(page[first:last]))
    return cleaned


def _without_digits(line: _Line) -> str:
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", line.text)


def _body_size(pages: Sequence[Sequence[_Line]]) -> float:
    """The height of type that most characters have."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size, 1)] += len(line.text)
    return max(sizes, key=lambda size: sizes[size], default=0.0)


def _columns(page: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Runs of lines that go down the page: a line further up starts the next column."""
    column: list[_Line] = []
    for line in page:
        if column and column[-1].box and line.box and line.box.bottom > column[-1].box.top:
            yield column
            column = []
        column.append(line)
    if column:
        yield column


def _cut(column: list[_Line]) -> Iterator[list[_Line]]:
    """A column cut into paragraphs."""
    boxes = [line.box for line in column if line.box]
    if len(boxes) < len(column):
        yield column
        return
    steps = [above.last_bottom - below.bottom for above, below in pairwise(boxes)]
    alike = [
        step
        for step, (above, below) in zip(steps, pairwise(column), strict=True)
        if not _differ(above, below)
    ]
    usual = sorted(alike)[len(alike) // 4] if alike else 0.0  # the gaps are among the larger ones
    left, right = min(box.left for box in boxes), max(box.right for box in boxes)
    full = left + (right - left) * _SHORT_LINE
    start = 0
    for at, step in enumerate(steps, 1):
        above, below = column[at - 1], column[at]
        short = boxes[at - 1].right < full and _looks_finished(above.text, below.text)
        if _differ(above, below) or short or step > usual * _WIDE_STEP:
            yield column[start:at]
            start = at
    yield column[start:]


def _differ(above: _Line, below: _Line) -> bool:
    return abs(above.size - below.size) > _OTHER_SIZE * max(above.size, below.size)


def _looks_finished(above: str, below: str) -> bool:
    return not above.endswith(_CONTINUES) and not below[:1].islower()


def _paragraph(lines: Sequence[_Line], body: float) -> _Paragraph:
    text = "\n".join(line.text for line in lines)
    large = min(line.size for line in lines) > body * _HEADING
    return _Paragraph(text, "heading" if large and len(text) < _LONGEST_HEADING else "text")


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
            raise UnreadableError("The pdf is encrypted. Save it without its password.") from error
        raise UnreadableError("It is no pdf, or damaged or cut short. Fetch it again.") from error
    try:
        pages = [_lines(document, number, pdfium.PdfiumError) for number in range(len(document))]
        title = " ".join(document.get_metadata_value("Title").split())
    finally:
        document.close()
    if not any(pages):
        count = f"{len(pages):,} pages" if len(pages) != 1 else "one page"
        raise UnreadableError(
            f"The pdf has no text in its {count}, as scans have not. "
            "Run it through text recognition first."
        )
    return _content(pages, title)


def _lines(document: Any, number: int, error: type[Exception]) -> list[_Line]:
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
                lines.append(_Line(raw.translate(_CONTROLS).strip(), box))
            start += len(raw) + 2
        return lines
    finally:
        text_page.close()
        page.close()


def _box(text_page: Any, raw: str, start: int) -> _Box:
    """The place of a line, from its first and its last character."""
    first = start + len(raw) - len(raw.lstrip())
    left, bottom, _, top = text_page.get_charbox(first, loose=True)
    _, last_bottom, right, _ = text_page.get_charbox(start + len(raw.rstrip()) - 1, loose=True)
    return _Box(left, top, bottom, right, last_bottom)


def _content(pages: Sequence[list[_Line]], title: str) -> Content:
    pieces: list[str] = []
    blocks = Blocks()
    starts = array("I")
    length = 0
    open_start = -1  # of a paragraph that may go on over the page break
    words = _words(pages)
    for page in _find_paragraphs(_drop_running_heads(pages)):
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


def _is_open(paragraph: _Paragraph, text: str) -> bool:
    return paragraph.kind == "text" and not text.endswith(_SENTENCE_ENDS)


def _words(pages: Sequence[list[_Line]]) -> Counter[str]:
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
